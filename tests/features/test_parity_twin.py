"""A sandbox and production answer the same random requests: each verdict says what production did; strict has none.

Both have the same secrets, clock and data.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx
import jwt
import pytest

from emulator.contract.parity import RULES, outcome_of, rule_of
from emulator.core.callers import Caller
from emulator.core.environment import PRODUCTION, STRICT
from emulator.core.errors import BadRequest, Forbidden
from emulator.core.extensions import Extension
from emulator.core.journal import FRAME
from emulator.core.keys import NEVER, Key
from emulator.core.parity import (
    CALLER_RATE,
    CLAIMS,
    DIFFER,
    ENDPOINT,
    EXP,
    FREER_RATE,
    PIN_CHANNEL,
    REFUSE,
    REGISTRATION,
    SIGNATURE,
    STAGE,
)
from emulator.core.settings import Limits, Settings
from support.journal import entry_of
from support.role_table import ROLES, TABLE
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
SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000
RATE = 2
"""Requests per second of a caller in production. Its own 100 would take bursts of 500."""
PINS = 6
"""PINs per minute that an address requests, and as many wrong ones that a channel tries, in production."""
USERS = ("5", "6", "777", None)
ADDRESSES = ("192.0.2.1", "192.0.2.2", "198.51.100.7")
_ROW = re.compile(r"(GET|POST|PATCH|PUT|DELETE)\s+(\S+)\s+(?:\S+\s+){3}\S+\s*(\{.*)?$", re.MULTILINE)
ROWS = [(found[1], found[2], found[3]) for found in _ROW.finditer(TABLE)]
"""Method, path under `/v1/e/` and body of each endpoint for clients."""
BODIES = ('{"a": 1}', '{"b": {"c": 2}, "a": null}', '[{"op": "add", "path": "/a", "value": 3}]', "{", '{"x": "y"}')
"""Bodies for stores; the fourth is no JSON."""
VARYING = {"pin", "token", "jwt", "muxy_id", "code"}
"""Members of responses that are random."""


class Sent(NamedTuple):
    """A request, the same for both services but for PINs."""

    method: str
    path: str
    body: str
    header: str
    address: str
    claims: dict[str, Any]
    """Of its token; empty without a token."""
    kind: str
    """What is wrong with its token."""


class Twins:
    """Both services, and random requests for them."""

    def __init__(self, sandbox: LiveServer, production: LiveServer, random: random.Random) -> None:
        self.sandbox, self.production, self.random = sandbox, production, random
        self._clients = [Client(base_url=live.url) for live in (sandbox, production)]
        self.pins: list[tuple[str, str]] = []
        """PINs of both, issued by one request."""
        self.pin_tokens: list[str] = []
        self._purchase = 0
        """The latest purchase that a receipt is for."""

    def now(self) -> int:
        """Return the time of both, in Unix ms."""
        return self.sandbox.service.clock.now()

    def request(self) -> Sent:
        """Generate a request."""
        method, path, body = self._call()
        header, claims, kind = self._credential()
        path = path if path.startswith("/") else f"/v1/e/{path}"
        return Sent(method, path, body, header, self.random.choice(ADDRESSES), claims, kind)

    def _call(self) -> tuple[str, str, str]:
        chosen = self.random.random()
        if chosen < 0.12:
            return self.random.choice(
                [
                    ("GET", "/_emulator/clock", ""),
                    ("GET", "/_emulator/parity", ""),
                    ("GET", "/_emulator/ready", ""),
                    ("GET", "/_emulator/contents", ""),
                    ("PUT", "/v1/e/authtoken", ""),
                    ("GET", "/v1/e/nothing", ""),
                    ("POST", "/v1/e/authtoken", json.dumps({"role": "viewer", "extension_id": CLIENT_ID})),
                    ("POST", "/v1/e/authtoken", json.dumps({"role": "viewer", "extension_id": OTHER_ID})),
                ]
            )
        if chosen < 0.3:
            return self._pin_call()
        if chosen < 0.5:
            names = ["channel_state", "channel_config", "viewer_state", "extension_state", "all_state"]
            store = self.random.choice(names)
            method = "GET" if store == "all_state" else self.random.choice(["GET", "POST", "PATCH"])
            return method, store, self.random.choice(BODIES) if method != "GET" else ""
        if chosen < 0.58:
            return "POST", "bits/transactions", json.dumps({"transactionReceipt": self._receipt()})
        if chosen < 0.66:
            event = {"event": f"sandbox:{CLIENT_ID}:e", "data": {}, "target": "broadcast"}
            return "POST", "pusher_broadcast", json.dumps(event)
        method, path, body = self.random.choice(ROWS)
        return method, path, (body or "").replace("RECEIPT", self._receipt()).replace("QUESTION", "q2")

    def _pin_call(self) -> tuple[str, str, str]:
        wrong = ("AAAAAA", "AAAAAA")
        pair = self.random.choice(self.pins) if self.pins and self.random.random() < 0.4 else wrong
        identifier = self.random.choice([CLIENT_ID, CLIENT_ID, OTHER_ID])
        calls = [
            ("POST", "link/pin", json.dumps({"identifier": identifier})),
            ("POST", "pin", json.dumps({"identifier": identifier})),
            ("POST", "validate_pin", json.dumps({"pin": "|".join(pair)})),
            ("GET", "pin_token_exists", ""),
        ]
        if self.pin_tokens:
            body = {"identifier": CLIENT_ID, "jwt": self.random.choice(self.pin_tokens)}
            calls.append(("POST", "unauthed/validate_pin", json.dumps(body)))
        return self.random.choice(calls)

    def _receipt(self) -> str:
        self._purchase += 1  # a receipt that only one of them accepts is not sent again
        data = {
            "transactionId": str(self._purchase),
            "userId": self.random.choice("56"),
            "product": {"sku": "hat"},
        }
        claims = {"data": data, "exp": self._in(self.random.choice([HOUR, HOUR, HOUR, -HOUR]))}
        if self.random.random() < 0.2:
            del claims["exp"]
        return jwt.encode(claims, self.random.choice([SECRET, SECRET, SECRET, b"no secret of the extension, at all"]))

    def _in(self, ms: int) -> int:
        return (self.now() + ms) // 1000

    def _credential(self) -> tuple[str, dict[str, Any], str]:
        """Return an `Authorization` header, the claims of its token, and what is wrong with it."""
        role, user = self.random.choice([*ROLES, "moderator"]), self.random.choice(USERS)
        claims: dict[str, Any] = {"role": role, "channel_id": CHANNEL, "exp": self._in(HOUR)}
        if user is not None:
            claims["user_id"] = user
        kind = self.random.choice(
            [
                *["valid"] * 10, "previous", "signature", "endless", "past", "ms", "null exp", "text exp", "stage",
                "other stage", "numeric stage", "other id", "other app", "unregistered", "own", "own pin", "future",
                "refresh", "garbage", "alone", "none", "unsigned", "bearer", "nul", "signed twice wrong",
            ]
        )  # fmt: skip
        changes: dict[str, dict[str, Any]] = {
            "past": {"exp": self._in(-HOUR)},
            "ms": {"exp": self.now()},
            "null exp": {"exp": None},
            "text exp": {"exp": "tomorrow"},
            "stage": {"allowed_stage": "sandbox"},
            "other stage": {"allowed_stage": "production"},
            "numeric stage": {"allowed_stage": 1},
            "other id": {"extension_id": OTHER_ID},
            "other app": {"app_id": OTHER_ID},
            "future": {"nbf": self._in(HOUR)},
            "refresh": {"use": "refresh"},
            "nul": {"user_id": "a\0b"},
            "signed twice wrong": {"allowed_stage": "sandbox", "extension_id": OTHER_ID, "exp": self._in(-HOUR)},
        }
        sent = claims | changes.get(kind, {})
        if kind == "endless":
            del sent["exp"]
        key = {"previous": PREVIOUS_SECRET, "signature": b"no secret of the extension, at all"}.get(kind, SECRET)
        if kind == "signed twice wrong" and self.random.random() < 0.5:
            key = b"no secret of the extension, at all"
        client_id = OTHER_ID if kind == "unregistered" else CLIENT_ID
        if kind in ("own", "own pin"):
            return self._own(kind, claims)
        unsigned = ".".join(map(_encoded, ({"alg": "none"}, sent))) + "."
        token = unsigned if kind == "unsigned" else jwt.encode(sent, key)
        header = {
            "garbage": f"{client_id} nothing.like.this",
            "alone": self.random.choice([CLIENT_ID, OTHER_ID]),
            "none": "",
            "bearer": f"Bearer {token}",
        }.get(kind, f"{client_id} {token}")
        return header, {} if kind in ("garbage", "alone", "none", "bearer") else claims, kind

    def _own(self, kind: str, claims: dict[str, Any]) -> tuple[str, dict[str, Any], str]:
        """Return a token that the sandbox has signed."""
        if kind == "own pin" and self.pin_tokens:
            return f"{CLIENT_ID} {self.random.choice(self.pin_tokens)}", {}, kind
        lifetime = self.random.choice([HOUR, -HOUR])
        identity = {name: str(text) for name, text in claims.items() if name != "exp"}
        token = self.sandbox.service.tokens.issue(lifetime, extension_id=CLIENT_ID, **identity)
        return f"{CLIENT_ID} {token}", claims, "own"

    def send(self, sent: Sent) -> tuple[httpx.Response, httpx.Response]:
        """Send a request to both, and bring their data together again if only one has accepted it."""
        answers = []
        for index, client in enumerate(self._clients):
            headers = {"X-Forwarded-For": sent.address} | ({"Authorization": sent.header} if sent.header else {})
            answers.append(client.request(sent.method, sent.path, content=self._body(sent, index), headers=headers))
        sandbox, production = answers
        self._remember(sent, sandbox, production)
        if sandbox.is_success and production.is_error and sent.claims:
            self._repeat(sent, self.production, 1)
        if production.is_success and sandbox.is_error and sent.claims:
            self._repeat(sent, self.sandbox, 0)
        return sandbox, production

    def _body(self, sent: Sent, index: int) -> bytes:
        if sent.path != "/v1/e/validate_pin":
            return sent.body.encode()
        return re.sub(r'"(\w+)\|(\w+)"', rf'"\{index + 1}"', sent.body).encode()

    def _remember(self, sent: Sent, sandbox: httpx.Response, production: httpx.Response) -> None:
        """Keep new PINs: those that only the sandbox has issued cannot be compared."""
        if sent.method == "POST" and sent.path in ("/v1/e/pin", "/v1/e/link/pin") and sandbox.is_success:
            if sent.path == "/v1/e/pin":
                self.pin_tokens = [*self.pin_tokens[-5:], sandbox.json()["token"]]
            if production.is_success:
                self.pins = [*self.pins[-5:], (sandbox.json()["pin"], production.json()["pin"])]

    def _repeat(self, sent: Sent, live: LiveServer, index: int) -> None:
        """Make a service do what only the other has done."""
        name = sent.path.removeprefix("/v1/e/").partition("?")[0]
        is_issued = sent.method == "POST" and name in ("pin", "link/pin", "authtoken")
        if sent.method == "GET" or sent.header.startswith(OTHER_ID) or is_issued:
            return
        token = jwt.encode(sent.claims | {"exp": self._in(HOUR)}, SECRET)

        async def repeat() -> None:
            caller: Caller = live.service.tokens.verify(f"{CLIENT_ID} {token}").caller
            body, url = self._body(sent, index), urlsplit(sent.path)
            # Production refuses receipts and messages that the sandbox accepts, whoever sends them.
            with suppress(*((BadRequest, Forbidden) if name in ("bits/transactions", "pusher_broadcast") else ())):
                await live.service.dispatcher.run(sent.method, url.path, caller, dict(parse_qsl(url.query)), body)

        live.run(repeat())

    def credentials(self) -> list[dict[str, str]]:
        """Return the `data` of `authenticate` for both: a token, or a PIN that is bound, unbound or wrong."""
        if self.random.random() < 0.5:
            header, _, _ = self._credential()
            return [{"client_id": CLIENT_ID, "jwt": header.rpartition(" ")[2]}] * 2
        claims = {"role": "broadcaster", "channel_id": CHANNEL, "exp": self._in(HOUR)}
        header = self.random.choice([CLIENT_ID, f"{CLIENT_ID} {jwt.encode(claims, SECRET)}"])
        headers = {"Authorization": header, "X-Forwarded-For": self.random.choice(ADDRESSES)}
        issued = [client.post("/v1/e/link/pin", headers=headers) for client in self._clients]
        is_wrong = self.random.random() < 0.3 or any(each.is_error for each in issued)
        return [{"client_id": CLIENT_ID, "pin": "AAAAAA" if is_wrong else each.json()["pin"]} for each in issued]

    def move(self, ms: int) -> None:
        """Let time pass for both."""
        self.sandbox.let_pass(ms)
        self.sandbox.advance(ms)
        self.production.run(self.production.service.control.sweep())

    def close(self) -> None:
        for client in self._clients:
            client.close()


def _encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def comparable(answer: httpx.Response) -> Any:
    """Return the body of a success without what is random."""
    if "json" not in answer.headers["content-type"]:
        return answer.text
    return _without_random(answer.json())


def _without_random(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_random(each) for each in value]
    if isinstance(value, dict):
        return {name: "" if name in VARYING else _without_random(each) for name, each in value.items()}
    return value


@contextmanager
def twins(seed: int, *, client_rate: int = 0, strict: bool = False) -> Iterator[Twins]:
    """Run a sandbox and a service in production, with one frozen clock, one signing key and one extension.

    A strict sandbox has the rules of production, with the same rates.
    """
    anonymous = replace(PRODUCTION.anonymous, address_pins=PINS, address_pin_attempts=PINS)
    environment = replace(PRODUCTION, caller_rate=RATE, anonymous=anonymous)
    settings = Settings(
        production=environment,
        extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET, PREVIOUS_SECRET))},
        channel_stores_per_extension=True,
        proxies=("127.0.0.1",),
        limits=Limits(client_rate=client_rate),
    )
    chosen = replace(STRICT, caller_rate=RATE, anonymous=anonymous) if strict else settings.environment
    with live_server(replace(settings, environment=chosen), clock=still_clock()) as sandbox:
        sandbox.freeze()
        with live_server(replace(settings, environment=environment), clock=sandbox.service.clock) as production:
            production.run(_share_key(sandbox, production))
            both = Twins(sandbox, production, random.Random(seed))
            try:
                yield both
            finally:
                both.close()


async def _share_key(sandbox: LiveServer, production: LiveServer) -> None:
    """Let both sign with one key, so that production reads what the sandbox has signed."""
    key, text = Key("signing_key", "", ""), sandbox.service.key.value.encode()
    documents, now = production.service.engine.documents, sandbox.service.clock.now()
    await documents.update([key], lambda _: {key: text}, now=now, expires_at=NEVER)
    await production.service.key.sync()


REQUESTS = int(os.environ.get("PARITY_REQUESTS", "400"))
"""`PARITY_REQUESTS=5000` finds what is rare."""
SEED = int(os.environ.get("PARITY_SEED", "0"))
MOVES = (SECOND, SECOND, SECOND, SECOND, 10 * SECOND, 60 * SECOND, 2 * HOUR, DAY + HOUR, 31 * DAY)


def run(both: Twins, count: int) -> Counter[str]:
    """Send random requests, alone and in bursts, and move the clock between; return how often each verdict came."""
    seen: Counter[str] = Counter()
    number = 0
    while number < count:
        chosen = both.random.random()
        if chosen < 0.05:
            both.move(both.random.choice(MOVES))
            continue
        sent = both.request()
        for _ in range(both.random.randint(5, 30) if chosen > 0.93 else 1):
            seen[check(sent, *both.send(sent))] += 1
            number += 1
    return seen


def check(sent: Sent, sandbox: httpx.Response, production: httpx.Response) -> str:
    """Compare a verdict with what production did, and return it."""
    verdict = sandbox.headers.get(VERDICT, "")
    told = f"{sent.kind}: {sent.method} {sent.path} {sent.body}\n  {verdict!r}, {sandbox.text} / {production.text}"
    assert VERDICT not in production.headers, told
    if not verdict:
        assert sandbox.status_code == production.status_code, told
        if sandbox.is_success and "/_emulator/" not in sent.path:
            assert comparable(sandbox) == comparable(production), told
    elif outcome_of(verdict) == REFUSE:
        assert production.status_code == RULES[rule_of(verdict)].status != sandbox.status_code, told
    else:
        assert outcome_of(verdict) == DIFFER, told  # never unknown, because the secrets are known
    return verdict


@pytest.mark.slow
def test_each_verdict_is_what_a_production_twin_does():
    with twins(SEED) as both:
        seen = run(both, REQUESTS)

    assert {"", SIGNATURE, STAGE, EXP, CLAIMS, ENDPOINT, REGISTRATION} <= set(seen)


@pytest.mark.slow
def test_rates_of_client_ids_count_what_a_production_twin_counts():
    with twins(SEED, client_rate=6) as both:
        seen = run(both, REQUESTS // 2)

    assert FREER_RATE in seen


FRAMES = (
    *[("get", "state", {"state_id": "channel"})] * 3,
    ("set", "state", {"state_id": "channel", "state": {"a": 1}}),
    ("set", "state", {"state_id": "extension", "state": {"a": 1}}),
    ("subscribe", "authentication", {}),
    ("subscribe", "state", {"topic_id": "channel"}),
    ("subscribe", "", {}),
    ("get", "transaction", {"sku": "hat"}),
    ("frobnicate", "", {}),
)


def check_frame(both: Twins, sockets: tuple[SocketClient, SocketClient], action: str, target: str, data: Any) -> str:
    """Send a message to both, compare the verdict on it with what production did, and return it."""
    replies = [game.request(action, target, each) for game, each in zip(sockets, data, strict=True)]
    sandbox, production = ((each["errors"][0]["status"] if "errors" in each else 200) for each in replies)
    verdict = next(each.production for each in both.sandbox.service.journal.newest() if each.kind == FRAME)
    told = f"{action} {target} {data}\n  {verdict!r}, {replies}"
    if verdict:
        # Where the token or PIN was refused, later messages come from a connection without rights.
        expected = (
            {RULES[rule_of(verdict)].status} if action == "authenticate" else {RULES[rule_of(verdict)].status, 401}
        )
        assert outcome_of(verdict) == REFUSE, told
        assert production in expected, told
        assert production != sandbox, told
    else:
        assert production == sandbox, told
    return verdict


def converse(both: Twins, count: int) -> Counter[str]:
    """Open this many sockets of games, send random messages and move the clock. Return how often each verdict came."""
    seen: Counter[str] = Counter()
    for _ in range(count):
        sockets = SocketClient(both.sandbox), SocketClient(both.production)
        seen[check_frame(both, sockets, "authenticate", "", both.credentials())] += 1
        for _ in range(both.random.choice([3, 3, 3, 15])):
            action, target, data = both.random.choice(FRAMES)
            seen[check_frame(both, sockets, action, target, [data, data])] += 1
        for game in sockets:
            game.socket.close()
        if both.random.random() < 0.2:
            both.move(both.random.choice(MOVES[:6]))
    return seen


@pytest.mark.slow
def test_each_verdict_on_a_message_is_what_a_production_twin_does():
    with twins(SEED) as both:
        seen = converse(both, REQUESTS // 8)

    assert {"", SIGNATURE, STAGE, EXP, PIN_CHANNEL, CALLER_RATE} <= set(seen)


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


@pytest.mark.slow
def test_a_strict_sandbox_responds_as_production_does():
    with twins(SEED, strict=True) as both:
        seen = run(both, REQUESTS)
        rules = httpx.get(f"{both.sandbox.url}/_emulator/parity").json()["rules"]

    assert set(seen) <= {"", ENDPOINT}  # the control API alone is not in production
    assert [] == rules


@pytest.mark.slow
def test_a_strict_sandbox_treats_games_as_production_does():
    with twins(SEED, strict=True) as both:
        seen = converse(both, REQUESTS // 8)

    assert {""} == set(seen)


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
