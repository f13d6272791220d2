"""A sandbox and production answer the same requests: each verdict says what production did, and strict has none.

Both have one clock, one signing key and one extension, and the sandbox knows its secret.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import httpx
import jwt
import pytest

from emulator.contract.parity import RULES, outcome_of, rule_of
from emulator.core import parity
from emulator.core.environment import PRODUCTION, STRICT
from emulator.core.extensions import Extension
from emulator.core.journal import FRAME
from emulator.core.keys import NEVER, Key
from emulator.core.settings import Limits, Settings
from support.journal import entry_of
from support.role_table import ROLES
from support.service import (
    CHANNEL,
    CLIENT_ID,
    OTHER_ID,
    PREVIOUS_SECRET,
    SECRET,
    Client,
    LiveServer,
    live_server,
    real_seconds,
    still_clock,
)
from support.socket_client import SocketClient

VERDICT = "x-emulator-production"
MINUTE, HOUR = 60_000, 3_600_000
PINS = 6
"""PINs per minute that an address requests, and as many wrong ones that a channel tries, in production."""
FORGED = b"no secret of the extension, at all"


class Twins(NamedTuple):
    """Both services, and a client of each."""

    sandbox: LiveServer
    production: LiveServer
    clients: tuple[Client, Client]

    def after(self, ms: int) -> int:
        """Return a time from now, in Unix seconds."""
        return (self.sandbox.service.clock.now() + ms) // 1000

    def send(self, method: str, path: str, body: object, header: str) -> str:
        """Send a request to both, compare the verdict with what production did, and return it."""
        headers = {"Authorization": header} if header else {}
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sandbox, production = (
            client.request(method, path, content=content, headers=headers) for client in self.clients
        )
        verdict = sandbox.headers.get(VERDICT, "")
        told = f"{method} {path} {header}\n  {verdict!r}, {sandbox.text} / {production.text}"
        assert VERDICT not in production.headers, told
        compare(verdict, sandbox.status_code, production.status_code, told)
        return verdict


def compare(verdict: str, sandbox: int, production: int, told: str) -> None:
    """Fail unless the verdict says how the status of production's response differs."""
    if not verdict:
        assert sandbox == production, told
    elif outcome_of(verdict) == parity.REFUSE:
        assert production == RULES[rule_of(verdict)].status != sandbox, told
    else:
        assert outcome_of(verdict) == parity.DIFFER, told  # never unknown, because the secrets are known


@contextmanager
def twins(*, rate: int = 0, client_rate: int = 0, strict: bool = False) -> Iterator[Twins]:
    """Run both services. A strict sandbox has the rules of production, with the same rates."""
    anonymous = replace(PRODUCTION.anonymous, address_pins=PINS, address_pin_attempts=PINS)
    limits = {"caller_rate": rate or PRODUCTION.caller_rate, "anonymous": anonymous}
    environment = replace(PRODUCTION, **limits)  # type: ignore[arg-type]
    settings = Settings(
        production=environment,
        extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET, PREVIOUS_SECRET))},
        limits=Limits(client_rate=client_rate),
    )
    chosen = replace(STRICT, **limits) if strict else settings.environment  # type: ignore[arg-type]
    with live_server(replace(settings, environment=chosen), clock=still_clock()) as sandbox:
        sandbox.freeze()
        with live_server(replace(settings, environment=environment), clock=sandbox.service.clock) as production:
            production.run(_share_key(sandbox, production))
            with Client(base_url=sandbox.url) as one, Client(base_url=production.url) as other:
                yield Twins(sandbox, production, (one, other))


async def _share_key(sandbox: LiveServer, production: LiveServer) -> None:
    """Let both sign with one key, so that production reads what the sandbox has signed."""
    key, text = Key("signing_key", "", ""), sandbox.service.key.value.encode()
    documents, now = production.service.engine.documents, sandbox.service.clock.now()
    await documents.update([key], lambda _: {key: text}, now=now, expires_at=NEVER)
    await production.service.key.sync()


def credentials(both: Twins, role: str) -> dict[str, str]:
    """Return an `Authorization` header with a valid token, and one for each mistake, by its name."""
    later, past = both.after(HOUR), both.after(-HOUR)
    valid = {"role": role, "channel_id": CHANNEL, "user_id": "5", "exp": later}
    changes: dict[str, dict[str, Any]] = {
        "valid": {},
        "anonymous": {"user_id": ...},
        "endless": {"exp": ...},
        "past": {"exp": past},
        "ms": {"exp": both.after(0) * 1000},
        "null exp": {"exp": None},
        "text exp": {"exp": "tomorrow"},
        "stage": {"allowed_stage": "sandbox"},
        "other stage": {"allowed_stage": "production"},
        "numeric stage": {"allowed_stage": 1},
        "other id": {"extension_id": OTHER_ID},
        "other app": {"app_id": OTHER_ID},
        "future": {"nbf": later},
        "refresh": {"use": "refresh"},
        "nul": {"user_id": "a\0b"},
        "unknown role": {"role": "moderator"},
        "several": {"allowed_stage": "sandbox", "extension_id": OTHER_ID, "exp": past},
    }
    claims = {
        kind: {name: value for name, value in (valid | change).items() if value is not ...}
        for kind, change in changes.items()
    }
    tokens = {kind: jwt.encode(each, SECRET) for kind, each in claims.items()}
    tokens |= {f"{kind}, forged": jwt.encode(claims[kind], FORGED) for kind in ("valid", "several")}
    identity = {name: str(value) for name, value in valid.items() if name != "exp"}
    tokens |= {
        "previous": jwt.encode(valid, PREVIOUS_SECRET),
        "unsigned": ".".join(map(_encoded, ({"alg": "none"}, valid))) + ".",
        "garbage": "nothing.like.this",
        "own": both.sandbox.service.tokens.issue(HOUR, extension_id=CLIENT_ID, **identity),
        "own, past": both.sandbox.service.tokens.issue(-HOUR, extension_id=CLIENT_ID, **identity),
    }
    return {
        **{kind: f"{CLIENT_ID} {token}" for kind, token in tokens.items()},
        **{"unregistered": f"{OTHER_ID} {tokens['valid']}", "bearer": f"Bearer {tokens['valid']}"},
        **{"alone": CLIENT_ID, "alone, unregistered": OTHER_ID, "none": ""},
    }


def _encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def receipt(both: Twins, id: str, key: bytes = SECRET, **claims: Any) -> dict[str, str]:
    data = {"transactionId": id, "userId": "5", "product": {"sku": "hat"}}
    return {"transactionReceipt": jwt.encode({"data": data, "exp": both.after(HOUR), **claims}, key)}


def calls(both: Twins, id: str) -> list[tuple[str, str, object]]:
    """Return a call for each rule, with its body. Purchases have this id."""
    return [
        ("GET", "/v1/e/vote", None),
        ("POST", "/v1/e/vote", {"value": 1}),
        ("POST", "/v1/e/vote", b"{"),
        ("DELETE", "/v1/e/vote?id=global-x", None),
        ("PUT", "/v1/e/authtoken", None),
        ("POST", "/v1/e/authtoken", {"role": "viewer", "extension_id": CLIENT_ID}),
        ("POST", "/v1/e/authtoken", {"role": "viewer", "extension_id": OTHER_ID}),
        ("POST", "/v1/e/pusher_broadcast", {"event": f"sandbox:{CLIENT_ID}:e", "data": {}, "target": "broadcast"}),
        ("POST", "/v1/e/bits/transactions", receipt(both, f"{id}-1")),
        ("POST", "/v1/e/bits/transactions", receipt(both, f"{id}-2", FORGED)),
        ("POST", "/v1/e/bits/transactions", receipt(both, f"{id}-3", exp=both.after(-HOUR))),
        ("POST", "/v1/e/bits/transactions", receipt(both, f"{id}-4", exp=None)),
        ("POST", "/v1/e/link/pin", {"identifier": CLIENT_ID}),
        ("POST", "/v1/e/pin", {"identifier": OTHER_ID}),
        ("POST", "/v1/e/validate_pin", {"pin": "AAAAAA"}),
        ("GET", "/v1/e/nothing", None),
        ("GET", "/_emulator/clock", None),
    ]


def verdicts(both: Twins, every: int = 1) -> set[str]:
    """Make each call with each (or each `every`th) credential, and return the verdicts. The role changes each time."""
    seen, headers = set(), {role: credentials(both, role) for role in ROLES}
    for at, kind in enumerate([*headers["viewer"]][::every]):
        for number, (method, path, body) in enumerate(calls(both, str(at))):
            both.sandbox.let_pass(MINUTE)
            seen.add(both.send(method, path, body, headers[ROLES[(at + number) % 4]][kind]))
    return seen


@pytest.mark.slow
def test_each_verdict_is_what_production_does():
    with twins() as both:
        seen = verdicts(both)

    rules = {parity.SIGNATURE, parity.STAGE, parity.EXP, parity.CLAIMS, parity.ENDPOINT, parity.REGISTRATION}
    assert {"", *rules, parity.ROLE, parity.RECEIPT} == seen


@pytest.mark.slow
def test_a_strict_sandbox_responds_as_production_does():
    with twins(strict=True) as both:
        seen = verdicts(both, every=2)
        rules = httpx.get(f"{both.sandbox.url}/_emulator/parity").json()["rules"]

    assert {"", parity.ENDPOINT} == seen  # the control API alone is not in production
    assert [] == rules


def burst(both: Twins, gap: int) -> set[str]:
    """Send more than the rates allow, also with tokens that only production refuses, and return the verdicts.

    `gap` is the time between the calls of one path and of the next, in ms.
    """
    seen = set()
    for kind, role in (("valid, forged", "viewer"), ("valid", "viewer"), ("valid", "broadcaster")):
        header = credentials(both, role)[kind]
        for path in ("vote", "validate_pin", "link/pin"):
            both.sandbox.let_pass(gap)
            body = {"pin": "AAAAAA", "value": 1}
            seen |= {both.send("POST", f"/v1/e/{path}", body, header) for _ in range(15)}
    return seen


@pytest.mark.slow
def test_rates_count_what_production_counts():
    with twins(rate=2) as both:
        assert {"", parity.SIGNATURE, parity.CALLER_RATE, parity.PIN_GUESSES} <= burst(both, MINUTE)
    with twins(client_rate=6) as both:
        assert parity.SANDBOX_ONLY_RATE in burst(both, 0)
    with twins(rate=2, strict=True) as both:
        assert {""} == burst(both, MINUTE)


# Sockets


def frame_verdict(both: Twins, games: list[SocketClient], action: str, target: str, data: list[Any]) -> str:
    """Send a message to both, compare the verdict on it with what production did, and return it."""
    replies = [game.request(action, target, each) for game, each in zip(games, data, strict=True)]
    sandbox, production = ((each["errors"][0]["status"] if "errors" in each else 200) for each in replies)
    verdict = next(each.production for each in both.sandbox.service.journal.newest() if each.kind == FRAME)
    # Where the token or PIN was refused, later messages come from a connection without rights.
    if not (verdict and action != "authenticate" and production == 401 != sandbox):
        compare(verdict, sandbox, production, f"{action} {target} {data}\n  {verdict!r}, {replies}")
    return verdict


def converse(both: Twins) -> set[str]:
    """Open a socket with each token, and with a PIN that is bound, unbound or wrong; return the verdicts."""
    headers = [credentials(both, "broadcaster")["valid"], CLIENT_ID]
    pins = [[client.post("/v1/e/link/pin", headers={"Authorization": each}).json()["pin"] for client in both.clients]
            for each in headers]  # fmt: skip
    logins = [[{"client_id": CLIENT_ID, "pin": each} for each in pair] for pair in (*pins, ["AAAAAA"] * 2)]
    for header in credentials(both, "viewer").values():
        logins.append([{"client_id": CLIENT_ID, "jwt": header.rpartition(" ")[2]}] * 2)
    seen = set()
    for login in logins:
        both.sandbox.let_pass(MINUTE)
        games = [SocketClient(both.sandbox), SocketClient(both.production)]
        seen.add(frame_verdict(both, games, "authenticate", "", login))
        for action, target, data in (
            ("set", "state", {"state_id": "extension", "state": {"a": 1}}),
            ("subscribe", "", {}),
            ("frobnicate", "", {}),
            *[("get", "state", {"state_id": "channel"})] * 12,
        ):
            seen.add(frame_verdict(both, games, action, target, [data, data]))
        for game in games:
            game.__exit__(None, None, None)
    return seen


@pytest.mark.slow
def test_each_verdict_on_a_message_is_what_production_does():
    with twins(rate=2) as both:
        rules = {parity.SIGNATURE, parity.STAGE, parity.EXP, parity.PIN_CHANNEL, parity.CALLER_RATE}
        assert {"", *rules} <= converse(both)
    with twins(rate=2, strict=True) as both:
        assert {""} == converse(both)


# serve --strict


LATER = real_seconds() + 3_600


@pytest.fixture(scope="module")
def running_strict() -> Iterator[LiveServer]:
    with live_server(Settings(STRICT, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as live:
        yield live


@pytest.fixture
def strict(running_strict: LiveServer) -> LiveServer:
    running_strict.empty()
    return running_strict


def test_the_control_api_stays(strict: LiveServer):
    voter = strict.client("viewer", user="1", channel=CHANNEL, exp=LATER)
    answer = voter.post("vote", json={"value": 1})
    body = {"method": "GET", "path": "/v1/e/vote", "client_id": CLIENT_ID, "role": "viewer", "channel_id": CHANNEL}
    called = httpx.post(f"{strict.url}/_emulator/call", json=body).json()

    assert 404 == httpx.post(f"{strict.url}/v1/e/authtoken", json={"role": "viewer"}).status_code
    assert 200 == entry_of(strict, answer)["status"]
    assert (200, 1) == (called["status"], called["body"]["count"])
    assert "sandbox" == httpx.get(f"{strict.url}/_emulator/ready").json()["environment"]
    assert 200 == httpx.get(f"{strict.url}/_emulator/ui/polls", headers={"Accept": "text/html"}).status_code


def test_a_config_store_is_listed_although_it_never_expires(strict: LiveServer):
    strict.client("broadcaster", channel=CHANNEL, exp=LATER).post("channel_config", json={"a": 1}).raise_for_status()

    [row] = httpx.get(f"{strict.url}/_emulator/contents/stores").json()["rows"]
    assert ("channel_config", CHANNEL, None) == (row["id"], row["channel_id"], row["expires_at"])
    assert 1 == httpx.get(f"{strict.url}/_emulator/contents").json()["stores"]
