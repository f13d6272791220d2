"""`authenticate` on the socket: PINs, refresh tokens, JWTs, and what a failure does (rulings T1-T4, X1, X4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from emulator.clock import DAY, END_OF_TIME, MINUTE, SECOND, Clock
from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, OTHER_SECRET, SECRET, Client, LiveServer, live_server
from support.socket_client import SocketClient, linked_game, request_pin

YEAR = 365 * DAY
FAR_AWAY = END_OF_TIME // SECOND
START = 2_000_000_000_000
UNBOUND = {"identifier": CLIENT_ID}


def authenticate(game: SocketClient, client_id: str = CLIENT_ID, **credential: object) -> dict[str, Any]:
    return game.data("authenticate", data={"client_id": client_id, **credential})


def refused(game: SocketClient, client_id: str = CLIENT_ID, **credential: object) -> tuple[int, str]:
    error = game.error("authenticate", data={"client_id": client_id, **credential})
    return error["status"], error["title"]


def whoami(game: SocketClient) -> tuple[int, str]:
    """The status of a read, and the state that was read."""
    reply = game.request("get", "state", {"state_id": "channel"})
    return (200, reply["data"]["state"].get("of", "")) if "data" in reply else (reply["errors"][0]["status"], "")


def closed(game: SocketClient) -> int | None:
    """Read on until the connection is closed; the code."""
    with pytest.raises(ConnectionClosed):
        game.message()
    return game.socket.close_code


def unbound_pin(live: LiveServer, client_id: str = CLIENT_ID) -> str:
    with Client(base_url=live.url) as client:
        return str(client.post("/v1/e/link/pin", json={"identifier": client_id}).raise_for_status().json()["pin"])


@pytest.fixture
def channels(live: LiveServer) -> None:
    """Two channels whose state says whose it is."""
    for channel in (CHANNEL, "888"):
        live.client("broadcaster", user=channel, channel=channel).post("channel_state", json={"of": channel})


@pytest.fixture
def moved() -> Iterator[Callable[..., LiveServer]]:
    """A production service of its own, whose clock is moved from outside."""
    clock = Clock()
    clock.set(START)
    clock.freeze(True)
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,)), OTHER_ID: Extension(OTHER_ID, (OTHER_SECRET,))}
    with live_server(Settings(PRODUCTION, extensions=extensions), clock=clock) as live:
        yield live


def bound_pin(live: LiveServer, client_id: str = CLIENT_ID, key: bytes = SECRET) -> str:
    client = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=client_id, key=key, exp=FAR_AWAY)
    return str(client.post("link/pin").raise_for_status().json()["pin"])


def guess(live: LiveServer, times: int, client_id: str = CLIENT_ID) -> list[int]:
    """The statuses of so many wrong PINs, ten on each connection."""
    statuses: list[int] = []
    for begin in range(0, times, 10):
        with SocketClient(live) as game:
            statuses += [refused(game, client_id, pin="ZZZZZZ")[0] for _ in range(begin, min(times, begin + 10))]
    return statuses


def by_pin(live: LiveServer, pin: str, client_id: str = CLIENT_ID) -> int:
    with SocketClient(live) as game:
        reply = game.request("authenticate", data={"client_id": client_id, "pin": pin})
        return int(reply["errors"][0]["status"]) if "errors" in reply else 200


@pytest.mark.ruling("X4")
def test_the_right_pin_answers_a_pair_of_tokens_and_the_channel(live, unlinked):
    answer = authenticate(unlinked, pin=request_pin(live))

    assert {"jwt", "refresh", "twitch_id", "twitch_name"} == answer.keys()
    assert (CHANNEL, CHANNEL) == (answer["twitch_id"], answer["twitch_name"])
    assert [] == [value for value in answer.values() if not isinstance(value, str)]


def test_the_right_pin_gives_the_connection_the_rights_of_the_broadcaster(live, unlinked):
    before = whoami(unlinked)[0]

    authenticate(unlinked, pin=request_pin(live))

    unlinked.data("set", "state", {"state_id": "channel", "state": {"of": "me"}})
    assert (401, (200, "me")) == (before, whoami(unlinked))


def test_the_access_token_is_good_for_rest_calls_as_the_broadcaster(live, unlinked):
    answer = authenticate(unlinked, pin=request_pin(live))

    record = live.bearer(answer["jwt"]).get("user_info").json()

    assert ("broadcaster", CHANNEL, CHANNEL) == (record["role"], record["channel_id"], record["user_id"])


@pytest.mark.ruling("T3")
def test_a_pin_can_be_used_twice(live):
    pin = request_pin(live)

    assert [200, 200, 200] == [by_pin(live, pin) for _ in range(3)]


@pytest.mark.ruling("T1", "T3")
@pytest.mark.parametrize("validated", [False, True])
def test_a_pin_is_good_until_one_millisecond_before_five_minutes_and_wrong_at_five(live, broadcaster, validated):
    live.freeze()
    pin = unbound_pin(live) if validated else request_pin(live)
    live.advance(2 * MINUTE)
    if validated:
        broadcaster.post("validate_pin", json={"pin": pin}).raise_for_status()

    live.advance(3 * MINUTE - 1)
    before = by_pin(live, pin)
    live.advance(1)

    assert [200, 400] == [before, by_pin(live, pin)]


@pytest.mark.ruling("T3")
def test_using_a_pin_does_not_prolong_it(live):
    live.freeze()
    pin = request_pin(live)
    live.advance(4 * MINUTE)
    by_pin(live, pin)

    live.advance(MINUTE)

    assert 400 == by_pin(live, pin)


def test_a_wrong_pin_is_400_bad_request_and_says_that_it_is_wrong_or_has_expired(unlinked):
    error = unlinked.error("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})

    assert {
        "status": 400,
        "number": 400,
        "title": "Bad Request",
        "detail": "the PIN is wrong or has expired",
    } == error


@pytest.mark.ruling("T1")
def test_a_pin_is_compared_case_by_case(live, unlinked):
    pin = next(each for each in iter(lambda: request_pin(live), "") if each.lower() != each)

    assert (400, "Bad Request") == refused(unlinked, pin=pin.lower())


@pytest.mark.parametrize("around", [" {}", "{} ", "{}\n", "{}\0", "\ufeff{}"])
def test_a_pin_with_anything_around_it_is_a_wrong_pin(live, unlinked, around):
    assert (400, "Bad Request") == refused(unlinked, pin=around.format(request_pin(live)))


@pytest.mark.ruling("X4")
def test_a_failure_before_authentication_gives_no_rights(unlinked):
    refused(unlinked, pin="ZZZZZZ")

    assert (401, "") == whoami(unlinked)


@pytest.mark.ruling("X4")
@pytest.mark.parametrize("credential", [{"pin": "ZZZZZZ"}, {"refresh": "x.y.z"}, {"jwt": "x.y.z"}, {}, {"pin": 1}])
def test_a_failure_on_a_linked_connection_leaves_its_rights_and_subscriptions_as_they_were(
    game, broadcaster, channels, credential
):
    game.data("subscribe", "state", {"topic_id": "channel"})

    refused(game, **credential)

    assert (200, CHANNEL) == whoami(game)
    broadcaster.patch("channel_state", json={"x": 1})
    assert {"of": CHANNEL, "x": 1} == game.update()["data"]["state"]


@pytest.mark.ruling("X1")
def test_the_right_pin_of_another_client_id_is_a_wrong_pin(live, unlinked):
    assert (400, "Bad Request") == refused(unlinked, pin=request_pin(live, client_id=OTHER_ID))
    assert CHANNEL == authenticate(unlinked, OTHER_ID, pin=request_pin(live, client_id=OTHER_ID))["twitch_id"]


@pytest.mark.ruling("X4")
def test_a_connection_may_be_linked_to_another_channel_later(live, game, channels):
    before = whoami(game)

    authenticate(game, pin=request_pin(live, "888"))

    assert [(200, CHANNEL), (200, "888")] == [before, whoami(game)]


@pytest.mark.ruling("T3")
def test_a_refresh_token_is_exchanged_for_a_new_pair(live, unlinked):
    first = authenticate(unlinked, pin=request_pin(live))

    second = authenticate(unlinked, refresh=first["refresh"])

    assert first.keys() == second.keys()
    assert 4 == len({first["jwt"], first["refresh"], second["jwt"], second["refresh"]})
    assert CHANNEL == second["twitch_id"]


@pytest.mark.ruling("T3")
def test_both_the_old_and_the_new_pair_stay_usable(live, unlinked):
    first = authenticate(unlinked, pin=request_pin(live))
    second = authenticate(unlinked, refresh=first["refresh"])

    again = [authenticate(unlinked, refresh=pair["refresh"])["twitch_id"] for pair in (first, second, first)]

    assert [CHANNEL] * 3 == again
    assert [200, 200] == [live.bearer(pair["jwt"]).get("user_info").status_code for pair in (first, second)]


def test_a_refresh_token_links_another_connection_too(live, unlinked, channels):
    with linked_game(live) as game:
        refresh = authenticate(game, pin=request_pin(live))["refresh"]

    authenticate(unlinked, refresh=refresh)

    assert (200, CHANNEL) == whoami(unlinked)


@pytest.mark.ruling("T3")
def test_a_refresh_token_is_good_until_one_millisecond_before_365_days_and_wrong_at_365(live):
    live.set(START)
    with SocketClient(live) as game:
        refresh = authenticate(game, pin=request_pin(live))["refresh"]

        live.advance(YEAR - 1)
        renewed = authenticate(game, refresh=refresh)["refresh"]
        live.advance(1)
        at_its_end = refused(game, refresh=refresh)
        live.advance(YEAR - 2 * SECOND)

        assert (400, "Bad Request") == at_its_end
        assert CHANNEL == authenticate(game, refresh=renewed)["twitch_id"]


@pytest.mark.ruling("T2", "T3")
def test_a_refresh_token_is_wrong_once_it_is_revoked(live, unlinked, broadcaster):
    first = authenticate(unlinked, pin=request_pin(live))
    second = authenticate(unlinked, refresh=first["refresh"])

    broadcaster.delete("pin")

    assert [(400, "Bad Request")] * 2 == [refused(unlinked, refresh=pair["refresh"]) for pair in (first, second)]


@pytest.mark.ruling("T2")
def test_a_revoked_refresh_token_stays_revoked_when_the_channel_is_linked_anew(live, unlinked, broadcaster):
    old = authenticate(unlinked, pin=request_pin(live))["refresh"]
    broadcaster.delete("pin")

    authenticate(unlinked, pin=request_pin(live))

    assert (400, "Bad Request") == refused(unlinked, refresh=old)


@pytest.mark.ruling("T2")
def test_revoking_leaves_the_refresh_tokens_of_other_channels_and_client_ids_alone(live, unlinked, broadcaster):
    of_channel = authenticate(unlinked, pin=request_pin(live, "888"))["refresh"]
    of_client = authenticate(unlinked, OTHER_ID, pin=request_pin(live, client_id=OTHER_ID))["refresh"]

    broadcaster.delete("pin")

    assert "888" == authenticate(unlinked, refresh=of_channel)["twitch_id"]
    assert CHANNEL == authenticate(unlinked, OTHER_ID, refresh=of_client)["twitch_id"]


@pytest.mark.parametrize("token", ["", "x", "not-a-refresh-token", "a.b.c", "..", "é.é.é", "\0", "x" * 100_000])
def test_a_refresh_token_that_cannot_be_verified_is_400_bad_request(unlinked, token):
    error = unlinked.error("authenticate", data={"client_id": CLIENT_ID, "refresh": token})

    assert (400, 400, "Bad Request") == (error["status"], error["number"], error["title"])
    assert "refresh token" in error["detail"]


def test_a_changed_refresh_token_is_400(live, unlinked):
    head, payload, signature = authenticate(unlinked, pin=request_pin(live))["refresh"].split(".")
    changed = "A" if signature[0] != "A" else "B"

    assert (400, "Bad Request") == refused(unlinked, refresh=f"{head}.{payload}.{changed}{signature[1:]}")


@pytest.mark.ruling("X1")
def test_the_refresh_token_of_another_client_id_is_400(live, unlinked):
    refresh = authenticate(unlinked, pin=request_pin(live))["refresh"]

    assert (400, "Bad Request") == refused(unlinked, OTHER_ID, refresh=refresh)


def test_an_access_token_in_place_of_a_refresh_token_is_400(live, unlinked):
    assert (400, "Bad Request") == refused(unlinked, refresh=authenticate(unlinked, pin=request_pin(live))["jwt"])


def test_a_refresh_token_in_place_of_an_access_token_is_401(live, unlinked):
    assert (401, "Unauthorized") == refused(unlinked, jwt=authenticate(unlinked, pin=request_pin(live))["refresh"])


@pytest.mark.ruling("X4")
def test_rights_outlive_the_access_token(live):
    live.set(START)
    with SocketClient(live) as game:
        token = authenticate(game, pin=request_pin(live))["jwt"]

        live.advance(7 * DAY)

        game.data("set", "state", {"state_id": "channel", "state": {"of": "later"}})
        assert (401, (200, "later")) == (live.bearer(token).get("user_info").status_code, whoami(game))


@pytest.mark.ruling("X4")
def test_rights_outlive_a_revocation(game, broadcaster, channels):
    broadcaster.delete("pin")

    assert (200, CHANNEL) == whoami(game)


@pytest.mark.ruling("X4")
def test_a_jwt_of_a_broadcaster_is_answered_like_a_pin(live, unlinked):
    first = authenticate(unlinked, pin=request_pin(live))

    second = authenticate(unlinked, jwt=first["jwt"])

    assert first.keys() == second.keys()
    assert CHANNEL == authenticate(unlinked, refresh=second["refresh"])["twitch_id"]


@pytest.mark.ruling("X4")
@pytest.mark.parametrize("role", ["viewer", "admin", "backend"])
def test_a_jwt_of_another_role_gives_its_rights_and_no_refresh_token(live, unlinked, channels, role):
    token = live.client(role, user="5", channel=CHANNEL).headers["Authorization"].split()[1]

    answer = authenticate(unlinked, jwt=token)

    assert {"jwt": token, "twitch_id": CHANNEL, "twitch_name": CHANNEL} == answer
    assert (200, CHANNEL) == whoami(unlinked)


@pytest.mark.ruling("X4")
@pytest.mark.parametrize("token", ["", "x", "a.b.c", "two words", "é.é.é", "x" * 10_000])
def test_a_jwt_that_cannot_be_read_is_401(unlinked, token):
    assert (401, "Unauthorized") == refused(unlinked, jwt=token)


def test_production_verifies_the_jwt(production):
    forged = production.client("admin", channel=CHANNEL, key=b"0" * 32, exp=FAR_AWAY).headers["Authorization"].split()
    good = production.client("admin", channel=CHANNEL, exp=FAR_AWAY).headers["Authorization"].split()

    with SocketClient(production) as game:
        assert (401, "Unauthorized") == refused(game, jwt=forged[1])
        assert CHANNEL == authenticate(game, jwt=good[1])["twitch_id"]


@pytest.mark.parametrize(
    "credential",
    [
        {},
        {"pin": None},
        {"pin": "ABCDEF", "refresh": "x"},
        {"pin": "ABCDEF", "jwt": "x"},
        {"pin": 123456},
        {"pin": ["ABCDEF"]},
        {"refresh": 1},
        {"refresh": {}},
        {"jwt": True},
        {"client_id": 7, "pin": "ABCDEF"},
        {"client_id": None, "pin": "ABCDEF"},
    ],
)
def test_anything_but_one_credential_as_a_string_is_400(unlinked, credential):
    data = {"client_id": CLIENT_ID, **credential}

    assert (400, "Bad Request") == (lambda e: (e["status"], e["title"]))(unlinked.error("authenticate", data=data))


@pytest.mark.ruling("X4")
def test_members_that_the_service_does_not_know_are_ignored(live, unlinked):
    assert CHANNEL == authenticate(unlinked, pin=request_pin(live), game_id="a game", x=None)["twitch_id"]


@pytest.mark.ruling("T3")
def test_in_sandbox_a_pin_that_nobody_bound_stands_for_the_channel_sandbox(live, unlinked):
    assert "sandbox" == authenticate(unlinked, pin=unbound_pin(live))["twitch_id"]


@pytest.mark.ruling("T3")
def test_in_sandbox_a_pin_that_nobody_bound_stands_for_the_extension_s_owner_if_it_names_one():
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,), "1001"), OTHER_ID: Extension(OTHER_ID, (SECRET,))}
    with live_server(Settings(extensions=extensions)) as live, SocketClient(live) as game:
        owned, ownerless = (
            authenticate(game, client_id, pin=unbound_pin(live, client_id))["twitch_id"]
            for client_id in (CLIENT_ID, OTHER_ID)
        )

    assert ("1001", "sandbox") == (owned, ownerless)


@pytest.mark.ruling("T3")
def test_in_sandbox_a_pin_stands_for_a_channel_as_soon_as_a_broadcaster_bound_it(live, unlinked, broadcaster):
    pin = unbound_pin(live)
    before = authenticate(unlinked, pin=pin)["twitch_id"]

    broadcaster.post("validate_pin", json={"pin": pin})

    assert ["sandbox", CHANNEL] == [before, authenticate(unlinked, pin=pin)["twitch_id"]]


@pytest.mark.ruling("T3")
def test_in_production_a_pin_that_nobody_bound_is_a_wrong_pin_until_a_broadcaster_binds_it(moved):
    pin = unbound_pin(moved)
    broadcaster = moved.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=FAR_AWAY)
    before = by_pin(moved, pin)

    broadcaster.post("validate_pin", json={"pin": pin}).raise_for_status()

    assert [400, 200] == [before, by_pin(moved, pin)]


@pytest.mark.ruling("T4")
@pytest.mark.parametrize("credential", [{"pin": "ZZZZZZ"}, {"refresh": "x"}, {"jwt": "x"}, {}])
def test_the_tenth_failure_is_answered_and_then_the_connection_is_closed(unlinked, credential):
    statuses = [refused(unlinked, **credential)[0] for _ in range(10)]

    assert {400} == {400 if status == 401 else status for status in statuses}
    assert 1008 == closed(unlinked)


@pytest.mark.ruling("T4")
def test_nine_failures_close_nothing(live, unlinked):
    for _ in range(9):
        refused(unlinked, pin="ZZZZZZ")

    assert CHANNEL == authenticate(unlinked, pin=request_pin(live))["twitch_id"]


@pytest.mark.ruling("T4")
def test_what_was_sent_behind_the_tenth_failure_is_not_done(live, game, broadcaster):
    for _ in range(10):
        game.send("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})
    game.send("set", "state", {"state_id": "channel", "state": {"too": "late"}})

    replies = [game.reply() for _ in range(10)]

    assert [400] * 10 == [reply["errors"][0]["status"] for reply in replies]
    assert 1008 == closed(game)
    assert {} == broadcaster.get("channel_state").json()


@pytest.mark.ruling("T4")
def test_sandbox_counts_wrong_pins_per_connection_only(live):
    assert [400] * 100 == guess(live, 100)
    assert 200 == by_pin(live, request_pin(live))


@pytest.mark.ruling("T4")
def test_production_takes_60_wrong_pins_a_minute_and_then_refuses_even_the_right_one(moved):
    pin = bound_pin(moved)

    assert [400] * 60 == guess(moved, 60)
    assert [429, 429] == [by_pin(moved, pin), *guess(moved, 1)]


@pytest.mark.ruling("T4")
def test_the_refusal_says_how_long_it_lasts(moved):
    guess(moved, 60)
    moved.service.clock.advance(20 * SECOND)

    with SocketClient(moved) as game:
        error = game.error("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})

    assert (429, 429, "Too Many Requests") == (error["status"], error["number"], error["title"])
    assert "retry in 40 s" in error["detail"]


@pytest.mark.ruling("T4")
def test_other_client_ids_are_not_affected(moved):
    guess(moved, 60)

    assert 200 == by_pin(moved, bound_pin(moved, OTHER_ID, OTHER_SECRET), OTHER_ID)


@pytest.mark.ruling("T4")
def test_the_refusal_is_over_a_minute_after_the_failures(moved):
    guess(moved, 60)

    moved.service.clock.advance(MINUTE - 1)
    before = by_pin(moved, bound_pin(moved))
    moved.service.clock.advance(1)

    assert [429, 200] == [before, by_pin(moved, bound_pin(moved))]


@pytest.mark.ruling("T4")
def test_right_pins_are_not_counted(moved):
    pin = bound_pin(moved)

    assert [200] * 70 == [by_pin(moved, pin) for _ in range(70)]


@pytest.mark.ruling("T4")
def test_wrong_pins_over_rest_count_too(moved):
    broadcaster = moved.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=FAR_AWAY)

    statuses = [broadcaster.post("validate_pin", json={"pin": "ZZZZZZ"}).status_code for _ in range(61)]

    assert [*[400] * 60, 429] == statuses
    assert 429 == by_pin(moved, bound_pin(moved))


@pytest.mark.ruling("T4")
def test_a_refresh_token_is_good_while_pins_are_refused(moved):
    with SocketClient(moved) as game:
        refresh = authenticate(game, pin=bound_pin(moved))["refresh"]
        guess(moved, 60)

        assert CHANNEL == authenticate(game, refresh=refresh)["twitch_id"]


@pytest.mark.parametrize("client_id", ["{} {}", '"{}', " {}", "{}\n{}"])
@pytest.mark.ruling("X4")
def test_a_client_id_is_one_word_and_holds_no_token(production, client_id):
    token = production.client("viewer", user="5", channel=CHANNEL, exp=FAR_AWAY).headers["Authorization"].split()[1]

    with SocketClient(production) as game:
        assert 400 == refused(game, client_id.format(CLIENT_ID, token), jwt=token)[0]
