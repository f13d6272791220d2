"""Each answer of the sandbox says what production would have done differently."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, SECRET, Client, LiveServer, live_server, real_seconds

EXP = real_seconds() + 3_600
VERDICT = "x-emulator-production"


@pytest.fixture(scope="module")
def running_known() -> Iterator[LiveServer]:
    """A sandbox with an extensions file."""
    with live_server(Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as live:
        yield live


@pytest.fixture
def known(running_known: LiveServer) -> LiveServer:
    running_known.reset()
    return running_known


def verdict(answer: httpx.Response) -> str:
    return answer.headers.get(VERDICT, "")


def vote(client: Client) -> str:
    """Vote, and return the verdict."""
    return verdict(client.post("vote?id=parity", json={"value": 1}).raise_for_status())


def rules(live: LiveServer, of: str = "namespace") -> dict[str, int]:
    """Return how often each verdict was given."""
    answer = httpx.get(f"{live.url}/_emulator/parity", params={"of": of}).raise_for_status().json()
    return {f"{each['verdict']} {each['rule']}": each["count"] for each in answer["rules"]}


def test_a_valid_token_has_no_verdict(known: LiveServer):
    assert "" == vote(known.client("viewer", user="1", channel=CHANNEL, exp=EXP))


@pytest.mark.parametrize(
    ("expected", "claims"),
    [
        ("refuse; rule=signature", {"key": b"a secret that no extension has, at all"}),
        ("refuse; rule=registration", {"client_id": OTHER_ID}),
        ("refuse; rule=stage", {"allowed_stage": "sandbox"}),
        ("refuse; rule=exp", {"exp": None}),
        ("refuse; rule=exp", {"exp": EXP * 1000}),
        ("refuse; rule=claims", {"extension_id": OTHER_ID}),
        ("refuse; rule=claims", {"allowed_stage": 7}),
    ],
)
def test_a_verdict_names_the_rule_that_refuses_the_token(known: LiveServer, expected: str, claims: dict[str, object]):
    client = known.client("viewer", **{"user": "1", "channel": CHANNEL, "exp": EXP, **claims})

    assert [expected, expected] == [vote(client), vote(client)]  # the second time from the cache


def test_without_a_secret_the_verdict_is_unknown(live: LiveServer):
    assert "unknown; rule=signature" == vote(live.client("viewer", user="1", channel=CHANNEL, exp=EXP))


def test_a_token_of_the_sandbox_is_refused_even_without_a_secret(live: LiveServer):
    body = {"user_id": "1", "channel_id": CHANNEL, "extension_id": CLIENT_ID}
    answer = httpx.post(f"{live.url}/v1/e/authtoken", json=body)

    assert "refuse; rule=endpoint" == verdict(answer)
    assert "refuse; rule=stage" == vote(live.bearer(answer.json()["token"]))


def test_the_same_refusal_in_both_has_no_verdict(known: LiveServer):
    expired = known.client(
        "viewer", user="1", channel=CHANNEL, exp=EXP - 7_200, key=b"no secret of the extension, 32 b"
    )

    answer = expired.get("vote")

    assert (401, "") == (answer.status_code, verdict(answer))


def test_verdicts_are_counted_with_the_first_and_the_latest_request(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL)
    for number in range(3):
        client.get("vote", headers={"X-Request-Id": f"request-{number}"})

    answer = httpx.get(f"{known.url}/_emulator/parity").json()

    [seen] = answer["rules"]
    assert ("exp", "refuse", 3) == (seen["rule"], seen["verdict"], seen["count"])
    assert ["request-0", "request-2"] == [each["request_id"] for each in seen["examples"]]
    assert {"GET /v1/e/vote"} == {each["endpoint"] for each in seen["examples"]}


def test_a_reset_clears_the_counts_of_its_namespace_only(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL)
    before = rules(known, "service").get("refuse exp", 0)
    client.get("vote")

    known.reset()

    assert {} == rules(known)
    assert before + 1 == rules(known, "service")["refuse exp"]


def test_calls_of_the_control_api_have_a_verdict_that_is_not_counted(known: LiveServer):
    answer = httpx.get(f"{known.url}/_emulator/clock")

    assert "refuse; rule=endpoint" == verdict(answer)
    assert {} == rules(known)
