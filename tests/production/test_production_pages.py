"""Pages in production: they subscribe with a credential, and receive only whispers to their own user (ruling B7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import quote

import pytest
from websockets.sync.client import connect

from emulator.core.clock import Clock, ClockState
from emulator.core.environment import PRODUCTION
from emulator.core.extensions import Extension
from emulator.core.settings import Limits, Settings
from production.test_production_roles import CREDENTIALS, Invalid, authorization
from support.pusher_client import KEY, QUERY, PusherClient, pusher_channel
from support.service import (
    CHANNEL,
    CLIENT_ID,
    OTHER_ID,
    OTHER_SECRET,
    PREVIOUS_SECRET,
    SECRET,
    LiveServer,
    live_server,
    real_seconds,
)
from support.socket_client import TIMEOUT

HERE, EVERYWHERE = pusher_channel(), pusher_channel("all")
SUCCEEDED = "pusher_internal:subscription_succeeded"
MINUTE = 60_000
EXTENSIONS = {
    CLIENT_ID: Extension(CLIENT_ID, (SECRET, PREVIOUS_SECRET)),
    OTHER_ID: Extension(OTHER_ID, (OTHER_SECRET,)),
}


@pytest.fixture(scope="module")
def service_clock() -> Clock:
    return Clock()


@pytest.fixture
def clock(service_clock: Clock) -> Iterator[Clock]:
    """The service's clock, which the test may move."""
    yield service_clock
    service_clock.restore(ClockState())


@pytest.fixture(scope="module")
def strict(service_clock: Clock) -> Iterator[LiveServer]:
    settings = Settings(PRODUCTION, extensions=EXTENSIONS, limits=Limits(caller_rate=0))
    with live_server(settings, clock=service_clock) as live:
        yield live


def credential(role: str = "viewer", user: str = "5", **claims: object) -> str:
    """Return `<client id> <JWT>`; the channel is 777 unless the claims say otherwise."""
    return authorization(role, **{"user_id": user, **claims})["Authorization"]  # type: ignore[arg-type]


def status_of(page: PusherClient, channel: str = HERE, auth: object = None) -> int:
    """Subscribe, and return 200 or the status of the refusal."""
    page.send("pusher:subscribe", {"channel": channel, **({} if auth is None else {"auth": auth})})
    reply = page.reply()
    assert channel == reply["channel"], reply
    if reply["event"] == SUCCEEDED:
        return 200
    assert "pusher:subscription_error" == reply["event"]
    assert {"type", "error", "status"} == reply["data"].keys()
    return int(reply["data"]["status"])


def send(live: LiveServer, call: str = "broadcast", **body: object) -> None:
    """Send as a backend in channel 777."""
    headers = authorization("backend")
    with live.bearer("") as client:
        client.post(call, json={"event": "news", "data": 1, **body}, headers=headers).raise_for_status()


def heard(page: PusherClient) -> list[str]:
    """Return the Pusher events of the broadcasts so far."""
    return [each.target for each in page.broadcasts()]


def send_all(live: LiveServer) -> None:
    """Send a broadcast, an extension's broadcast, two whispers and a change of the channel state."""
    send(live)
    send(live, "extension_broadcast", data=2)
    send(live, target="whisper-5")
    send(live, target="whisper-6")
    with live.bearer("") as client:
        client.post("channel_state", json={"a": 1}, headers=authorization("backend")).raise_for_status()


# Without a valid credential


@pytest.mark.parametrize("auth", [None, "", 5, {}, "key:signature", CLIENT_ID, f"{CLIENT_ID} "])
def test_a_page_without_a_credential_receives_nothing(strict, auth):
    channels = [HERE, EVERYWHERE, pusher_channel("888"), pusher_channel(CHANNEL, OTHER_ID), "news"]
    with PusherClient(strict) as page:
        assert [401] * 10 == [status_of(page, channel, auth) for channel in channels * 2]
        send_all(strict)

        assert [] == page.broadcasts()


@pytest.mark.parametrize("name", [name for name in CREDENTIALS if name not in ("no token", "a client id alone")])
@pytest.mark.parametrize("is_of_connection", [False, True], ids=["auth", "token"])
def test_an_invalid_credential_is_refused_as_over_rest(strict, name: str, is_of_connection: bool):
    invalid: Invalid = CREDENTIALS[name]
    value = invalid.headers(invalid.roles[-1])["Authorization"]
    expected = 401 if name == "of a removed extension" else invalid.status
    query = f"{QUERY}&token={quote(value)}" if is_of_connection else QUERY
    with PusherClient(strict, query) as page:
        assert [expected] * 2 == [
            status_of(page, channel, None if is_of_connection else value) for channel in (HERE, EVERYWHERE)
        ]
        send_all(strict)

        assert [] == page.broadcasts()


def test_a_subscription_sent_before_the_greeting_is_refused(strict):
    url = f"{strict.url.replace('http', 'ws', 1)}/app/{KEY}{QUERY}"
    with connect(url, compression=None, open_timeout=TIMEOUT) as socket:
        socket.send('{"event":"pusher:subscribe","data":{"channel":"' + HERE + '"}}')  # the greeting is unread
        frames = [socket.recv(timeout=TIMEOUT) for _ in range(2)]

    assert "connection_established" in str(frames[0])
    assert "subscription_error" in str(frames[1])


# With a credential


@pytest.mark.parametrize("role", ["viewer", "broadcaster", "admin", "backend"])
def test_a_credential_opens_the_tokens_own_channel_and_the_extensions(strict, role: str):
    with PusherClient(strict) as page:
        channels = [
            HERE,
            EVERYWHERE,
            pusher_channel("888"),
            pusher_channel(CHANNEL, OTHER_ID),
            pusher_channel("all", OTHER_ID),
        ]
        channels += [f"{HERE}.x", HERE.upper(), HERE.replace("twitch", "other"), pusher_channel("")]

        assert [200, 200, *[403] * 7] == [status_of(page, each, credential(role)) for each in channels]
        without = credential("backend", channel_id="")
        assert [403, 200] == [status_of(page, each, without) for each in (HERE, EVERYWHERE)]


def test_whispers_reach_only_the_pages_of_their_user(strict):
    with ExitStack() as stack:
        five, also_five, six = (stack.enter_context(PusherClient(strict)) for _ in range(3))
        for page, user in (
            (five, {"user": "5"}),
            (also_five, {"user": "", "opaque_user_id": "U5"}),
            (six, {"user": "6"}),
        ):
            assert [200, 200] == [status_of(page, each, credential(**user)) for each in (HERE, EVERYWHERE)]
        send_all(strict)

        assert [2, 2, 2] == [heard(page).count("broadcast") - 1 for page in (five, also_five, six)]
        send(strict, target="whisper-5", data=3)
        send(strict, "extension_broadcast", target="whisper-U6", data=4)
        assert [{"whisper-5", "whisper-U5"}] * 2 == [set(heard(page)) for page in (five, also_five)]
        assert {"whisper-6", "whisper-U6"} == set(heard(six))


@pytest.mark.parametrize("separator", ["%20", "+"])
def test_a_token_of_the_connection_serves_its_subscriptions(strict, separator: str):
    token = credential().replace(" ", separator)
    with PusherClient(strict, f"{QUERY}&token={token}") as page:
        assert [200, 200, 403] == [status_of(page, each, "") for each in (HERE, EVERYWHERE, pusher_channel("888"))]
        assert 401 == status_of(page, HERE, f"{CLIENT_ID} no.such.token")  # its own credential comes first
        send_all(strict)

        assert "broadcast" in heard(page)


def test_a_second_subscription_replaces_the_first_unless_it_is_refused(strict):
    with PusherClient(strict) as page:
        assert [200, 200] == [status_of(page, HERE, credential(user=user)) for user in ("5", "6")]
        send_all(strict)
        assert ["broadcast", "whisper-6", "whisper-U6", "broadcast"] == heard(page)

        assert [401, 403] == [status_of(page, HERE, auth) for auth in ("", credential(channel_id="888"))]
        send(strict)
        assert ["broadcast"] == heard(page)

        page.send("pusher:unsubscribe", {"channel": HERE})
        page.pong()
        send_all(strict)
        assert [] == page.broadcasts()
        assert [401, 200] == [status_of(page, HERE, auth) for auth in ("", credential())]


def test_messages_get_responses_in_order_while_a_credential_is_verified(strict):
    with PusherClient(strict) as page:
        page.send("pusher:subscribe", {"channel": HERE, "auth": credential()})
        page.send("pusher:unsubscribe", {"channel": HERE})
        page.send("pusher:ping", {})

        assert [SUCCEEDED, "pusher:pong"] == [page.reply()["event"] for _ in range(2)]
        send(strict)
        assert [] == page.broadcasts()


# The end of a credential


def advance(live: LiveServer, clock: Clock, ms: int) -> None:
    clock.advance(ms)
    live.run(live.service.scheduler.clock_moved())


def test_a_subscription_ends_when_its_last_token_expires(strict, clock):
    soon, later = credential(exp=real_seconds() + 120), credential(exp=real_seconds() + 3_600)
    with PusherClient(strict) as page, PusherClient(strict) as prolonged:
        assert [200, 200] == [status_of(page, HERE, soon), status_of(page, EVERYWHERE, later)]
        assert [200, 200] == [status_of(prolonged, HERE, each) for each in (soon, later)]
        advance(strict, clock, 3 * MINUTE)

        frame = page.reply()
        assert ("pusher:subscription_error", HERE, 401) == (frame["event"], frame["channel"], frame["data"]["status"])
        send_all(strict)
        assert [EVERYWHERE] == [each.channel for each in page.broadcasts()]
        assert "broadcast" in heard(prolonged), "a new token prolongs a subscription"
        assert 401 == status_of(page, HERE, soon)


def test_the_token_of_a_connection_expires_for_all_its_subscriptions(strict, clock):
    token = quote(credential(exp=real_seconds() + 120))
    with PusherClient(strict, f"{QUERY}&token={token}") as page:
        assert [200, 200] == [status_of(page, each) for each in (HERE, EVERYWHERE)]
        advance(strict, clock, 3 * MINUTE)

        assert [401, 401] == [page.reply()["data"]["status"] for _ in range(2)]
        assert 401 == status_of(page, HERE)


def test_the_token_of_a_connection_is_verified_at_each_subscription(strict):
    # The token of a connection is verified at each subscription
    token = quote(authorization("viewer", key=PREVIOUS_SECRET)["Authorization"])

    async def replace(extensions: dict[str, Extension]) -> None:
        strict.service.replace_extensions(extensions)

    with PusherClient(strict, f"{QUERY}&token={token}") as page:
        strict.run(replace({**EXTENSIONS, CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}))

        assert 401 == status_of(page, HERE)
    strict.run(replace(EXTENSIONS))

    # A pin token of a connection opens nothing after its link was revoked
    broadcaster = authorization("broadcaster")
    with strict.bearer("") as client:
        issued = client.post("pin", json={"identifier": CLIENT_ID}, headers={"Authorization": ""}).json()
        client.post("validate_pin", json={"pin": issued["pin"]}, headers=broadcaster).raise_for_status()
        token = quote(f"{CLIENT_ID} {issued['token']}")
        with PusherClient(strict, f"{QUERY}&token={token}") as page:
            assert 200 == status_of(page, HERE)
            client.delete("pin", headers=broadcaster).raise_for_status()
            assert 401 == page.reply()["data"]["status"]

            assert 401 == status_of(page, HERE)
