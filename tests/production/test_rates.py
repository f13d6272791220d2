"""How often somebody may ask: 429 with `Retry-After`, for a caller and for a client id (ruling W4)."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from emulator.clock import SECOND, Clock
from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Limits, Settings
from emulator.limits.rate_limit import RateLimit
from support.service import CLIENT_ID, SECRET, Client, LiveServer, live_server, real_seconds
from support.socket_client import SocketClient

A_FEW = Limits(caller_rate=2, client_rate=6)
"""Of one caller ten, and of one client id thirty at once."""


@pytest.fixture
def limited() -> Iterator[LiveServer]:
    with live_server(Settings(limits=A_FEW)) as live:
        live.freeze()
        yield live


def statuses(client: Client, times: int, path: str = "vote") -> list[int]:
    return [client.get(path).status_code for _ in range(times)]


def test_a_caller_may_ask_for_five_seconds_worth_at_once_and_no_more(limited: LiveServer):
    viewer = limited.client("viewer", user="1", channel="777")

    assert [*[200] * 10, 429, 429] == statuses(viewer, 12)


@pytest.mark.ruling("W4")
def test_a_refusal_says_when_to_come_back_and_then_there_is_room(limited: LiveServer):
    viewer = limited.client("viewer", user="1", channel="777")
    statuses(viewer, 10)

    refused = viewer.post("vote", json={"value": 1})
    limited.advance(int(refused.headers["retry-after"]) * SECOND)

    assert (429, "1") == (refused.status_code, refused.headers["retry-after"])
    assert {"reason": "Too many requests", "info": "this caller asks too often; wait 1 s"}.items() <= (
        refused.json().items()
    )
    assert [200, 200, 429] == statuses(viewer, 3)


def test_what_is_refused_is_not_done(limited: LiveServer):
    viewer, other = (limited.client("viewer", user=user, channel="777") for user in "12")
    statuses(viewer, 10)

    viewer.post("vote", json={"value": 1})

    assert 0 == other.get("vote").json()["count"]


def test_one_callers_haste_is_not_anothers(limited: LiveServer):
    hasty, other = (limited.client("viewer", user=user, channel="777") for user in "12")
    statuses(hasty, 12)

    assert [200] == statuses(other, 1)


def test_a_caller_is_one_with_many_tokens(limited: LiveServer):
    clients = [limited.client("viewer", user="1", channel="777", jti=str(number)) for number in range(12)]

    assert [*[200] * 10, 429, 429] == [client.get("vote").status_code for client in clients]


def test_all_callers_of_a_client_id_share_its_rate(limited: LiveServer):
    viewers = [limited.client("viewer", user=str(number), channel="777") for number in range(31)]
    of_another = limited.client("viewer", user="1", channel="777", client_id="another")

    answers = [viewer.get("vote") for viewer in viewers]

    assert [*[200] * 30, 429] == [answer.status_code for answer in answers]
    assert "client id my-extension" in answers[-1].json()["info"]
    assert [200] == statuses(of_another, 1)


@pytest.mark.parametrize("role", ["backend", "admin"])
def test_the_extensions_own_servers_may_ask_for_ten_times_as_much(role: str):
    with live_server(Settings(limits=Limits(caller_rate=1))) as live:
        live.freeze()
        assert [*[200] * 50, 429] == statuses(live.client(role, channel="777"), 51)


def test_who_asks_without_a_token_is_counted_by_address():
    with live_server(Settings(limits=Limits(caller_rate=1))) as live, Client(base_url=f"{live.url}/v1/e/") as stranger:
        live.freeze()
        pins = [stranger.post("link/pin", headers={"Authorization": CLIENT_ID}).status_code for _ in range(51)]
        tokens = [stranger.post("authtoken", json={"app_id": CLIENT_ID, "role": "viewer"}) for _ in range(51)]

    assert [*[200] * 50, 429] == pins
    assert [*[200] * 50, 429] == [answer.status_code for answer in tokens]


@pytest.mark.parametrize("header", [None, f"{CLIENT_ID} no.token.atall"])
def test_credentials_that_are_no_good_are_counted_by_address(header: str | None):
    settings = Settings(limits=Limits(caller_rate=1), proxies=("127.0.0.1",))
    with live_server(settings) as live, Client(base_url=f"{live.url}/v1/e/") as stranger:
        live.freeze()
        known, new = (live.client("viewer", user=user, channel="777") for user in "12")
        known.get("vote").raise_for_status()

        def failed(times: int, address: str = "203.0.113.7") -> list[httpx.Response]:
            headers = {"X-Forwarded-For": address, **({"Authorization": header} if header else {})}
            return [stranger.get("vote", headers=headers) for _ in range(times)]

        answers = failed(51)
        new.headers["X-Forwarded-For"] = known.headers["X-Forwarded-For"] = "203.0.113.7"

        assert [*[401] * 50, 429] == [answer.status_code for answer in answers]
        assert "1" == answers[-1].headers["retry-after"]
        assert "this address, with credentials that are no good, asks too often" in answers[-1].json()["info"]
        assert (200, 429) == (known.get("vote").status_code, new.get("vote").status_code)
        assert [401] == [answer.status_code for answer in failed(1, "203.0.113.8")]
        live.advance(SECOND)
        assert (200, 401) == (new.get("vote").status_code, failed(1)[0].status_code)


def test_client_ids_that_are_not_registered_are_counted_by_address_too():
    with (
        live_server(Settings(limits=Limits(caller_rate=1), registered_only=True)) as live,
        Client(base_url=f"{live.url}/v1/e/") as stranger,
    ):
        live.freeze()
        pins = [stranger.post("link/pin", headers={"Authorization": f"none-{number}"}) for number in range(51)]

    assert [*[401] * 50, 429] == [answer.status_code for answer in pins]


def test_credentials_that_are_no_good_use_up_nothing_of_what_the_extension_may_ask(limited: LiveServer):
    answers = [limited.bearer("no.token.atall").get("vote").status_code for _ in range(40)]

    assert ({401}, 200) == (set(answers), limited.client("viewer", user="1", channel="777").get("vote").status_code)


def test_a_socket_is_counted_with_its_callers_other_requests(limited: LiveServer):
    caller = {"user": "777", "channel": "777"}
    token = limited.client("broadcaster", **caller).headers["Authorization"].split()[1]
    with SocketClient(limited) as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
        for _ in range(10):
            game.data("get", "state", {"state_id": "channel"})
        error = game.error("get", "state", {"state_id": "channel"})
        alive = limited.client("broadcaster", **caller).get("vote").status_code

    assert (429, "this caller asks too often; wait 1 s") == (error["status"], error["detail"])
    assert 429 == alive


def test_watching_and_controlling_are_never_refused(limited: LiveServer):
    with Client(base_url=limited.url) as client:
        answers = [client.get(f"/_emulator/{path}").status_code for path in ("live", "ready", "clock") * 20]

    assert {200} == set(answers)


def test_a_reset_holds_nothing_against_anyone(limited: LiveServer):
    viewer = limited.client("viewer", user="1", channel="777")
    statuses(viewer, 12)

    limited.reset()

    assert [200] == statuses(viewer, 1)


def test_in_sandbox_there_is_no_limit_unless_one_is_set():
    with live_server() as live:
        live.freeze()
        assert {200} == set(statuses(live.client("viewer", user="1", channel="777"), 700))


def test_in_production_a_caller_may_ask_a_hundred_times_a_second_unless_told_otherwise():
    clock, ends = Clock(), real_seconds() + 3_600
    clock.freeze(True)
    settings = Settings(PRODUCTION, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})
    with live_server(settings, clock=clock) as live:
        viewer = live.client("viewer", user="1", channel="777", exp=ends)
        assert [*[200] * 500, 429] == statuses(viewer, 501)


def test_a_clock_set_back_is_held_against_nobody():
    rate, now = RateLimit(1), 1_700_000_000_000
    assert [0] * 5 == [rate.wait(("app", "1"), now) for _ in range(5)]
    assert 1000 == rate.wait(("app", "1"), now)

    assert 0 == rate.wait(("app", "1"), now - 3_600_000)


def test_those_who_were_quiet_for_long_take_no_room():
    rate = RateLimit(1_000)
    for number in range(50_000):
        assert 0 == rate.wait(("app", str(number)), now=number)

    assert len(rate) < 25_000


def test_a_refusal_can_be_read_by_a_page(limited: LiveServer):
    viewer = limited.client("viewer", user="1", channel="777")
    statuses(viewer, 10)

    refused: httpx.Response = viewer.get("vote")

    assert "*" == refused.headers["access-control-allow-origin"]
