"""PINs over REST: how they are asked for, validated and revoked (PIN and tokens, Credentials; rulings T1, T2)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from emulator.clock import MINUTE, SECOND
from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, SECRET, Client, LiveServer, live_server, real_seconds
from support.socket_client import SocketClient, linked_game, request_pin

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ2346789"
REQUESTS = ["link/pin", "gamelink/pin", "gamelink/token"]


@pytest.fixture
def neighbour(live: LiveServer) -> Client:
    """The owner of another channel."""
    return live.client("broadcaster", user="888", channel="888")


@pytest.fixture
def named(live: LiveServer) -> Iterator[Client]:
    """A client whose header holds the client id and nothing else."""
    with Client(base_url=f"{live.url}/v1/e/", headers={"Authorization": CLIENT_ID}) as client:
        yield client


def pin(client: Client, path: str = "link/pin", **options: object) -> str:
    return str(client.post(path, **options).raise_for_status().json()["pin"])


def validate(client: Client, text: object) -> int:
    return client.post("validate_pin", json={"pin": text}).status_code


def exists(client: Client) -> bool:
    return bool(client.get("pin_token_exists").raise_for_status().json()["exists"])


def channel_of(live: LiveServer, text: str, client_id: str = CLIENT_ID) -> str:
    """The channel that a PIN links a game to."""
    with SocketClient(live) as game:
        return str(game.data("authenticate", data={"client_id": client_id, "pin": text})["twitch_id"])


@pytest.mark.ruling("T1")
def test_a_pin_has_six_characters_that_nobody_mistakes_for_others(broadcaster):
    pins = [pin(broadcaster) for _ in range(200)]

    assert [] == [each for each in pins if not re.fullmatch("[A-HJ-KMNP-Z2-46-9]{6}", each)]
    assert set(ALPHABET) == set("".join(pins))


@pytest.mark.ruling("T1")
def test_no_two_live_pins_are_alike(broadcaster, stranger):
    bound = [pin(broadcaster) for _ in range(100)]
    unbound = [pin(stranger, "/v1/e/pin", json={"identifier": CLIENT_ID}) for _ in range(100)]

    assert 200 == len({*bound, *unbound})


@pytest.mark.ruling("T1")
def test_a_pin_is_compared_case_by_case(broadcaster):
    text = next(each for each in iter(lambda: pin(broadcaster), "") if each.lower() != each)

    assert [400, 200] == [validate(broadcaster, text.lower()), validate(broadcaster, text)]


@pytest.mark.ruling("T2", "W1")
@pytest.mark.parametrize("path", REQUESTS)
def test_a_pin_is_answered_under_both_names_that_clients_look_for(broadcaster, path):
    answer = broadcaster.post(path)

    assert (200, {"pin", "token"}) == (answer.status_code, answer.json().keys())
    assert answer.json()["pin"] == answer.json()["token"]


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("path", REQUESTS)
@pytest.mark.parametrize("body", [b"", b" ", b"{}", b'"{}"', b'{"identifier":"my-extension"}', b'{"x":1}', b"not json"])
def test_with_the_client_id_in_the_header_no_body_is_needed_and_none_matters(named, path, body):
    assert 200 == named.post(path, content=body).status_code


@pytest.mark.ruling("T2", "W2")
@pytest.mark.parametrize("path", [*REQUESTS, "pin", "unauthed/pin"])
@pytest.mark.parametrize("body", [b'{"identifier":"my-extension"}', rb'"{\"identifier\":\"my-extension\"}"'])
def test_the_client_id_may_stand_in_the_body_and_no_header_is_needed(stranger, path, body):
    assert 200 == stranger.post(f"/v1/e/{path}", content=body).status_code


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("path", [*REQUESTS, "pin", "unauthed/pin"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'"{}"',
        b'{"identifier":""}',
        b'{"identifier":1}',
        b'{"identifier":"a b"}',
        b'{"identifier":null}',
        b"[]",
        b"{",
        b'{"identifier":"' + b"x" * 101 + b'"}',
    ],
)
def test_without_a_client_id_there_is_no_pin(stranger, path, body):
    assert 400 == stranger.post(f"/v1/e/{path}", content=body).status_code


@pytest.mark.ruling("T2")
def test_a_broadcaster_s_pin_is_bound_to_their_channel(live, broadcaster, neighbour):
    assert [CHANNEL, "888"] == [channel_of(live, pin(client)) for client in (broadcaster, neighbour)]


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("role", ["viewer", "admin", "backend"])
def test_the_pin_of_any_other_role_is_bound_to_no_channel(live, neighbour, role):
    text = pin(live.client(role, user="5", channel=CHANNEL))

    assert 200 == validate(neighbour, text)
    assert "888" == channel_of(live, text)


@pytest.mark.ruling("T2")
def test_a_broken_token_in_the_header_is_refused_and_not_taken_for_a_client_id(live):
    assert 401 == live.bearer("no-token").post("link/pin").status_code


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("path", ["link/pin", "pin"])
def test_production_gives_pins_to_registered_client_ids_only(production, path):
    with Client(base_url=f"{production.url}/v1/e/") as client:
        statuses = [client.post(path, json={"identifier": name}).status_code for name in (CLIENT_ID, "nobody")]
        by_header = [
            client.post("link/pin", headers={"Authorization": name}).status_code for name in (CLIENT_ID, "nobody")
        ]

    assert [200, 401, 200, 401] == [*statuses, *by_header]


@pytest.mark.ruling("T2")
def test_the_right_pin_validates_and_the_answer_is_an_empty_object(broadcaster):
    answer = broadcaster.post("validate_pin", json={"pin": pin(broadcaster)})

    assert (200, {}) == (answer.status_code, answer.json())


@pytest.mark.ruling("T2")
def test_a_wrong_pin_is_400_and_says_so(broadcaster):
    answer = broadcaster.post("validate_pin", json={"pin": "ZZZZZZ"})

    assert (400, "Bad Request", "Invalid PIN") == (
        answer.status_code,
        answer.json()["errors"][0]["title"],
        answer.json()["reason"],
    )


@pytest.mark.parametrize(
    "body", [{}, {"pin": None}, {"pin": 123456}, {"pin": ""}, {"pin": "x" * 1_000}, {"PIN": "ABCDEF"}, []]
)
def test_what_is_no_pin_at_all_is_400_too(broadcaster, body):
    assert 400 == broadcaster.post("validate_pin", json=body).status_code


@pytest.mark.ruling("T2")
def test_only_a_broadcaster_validates(live, broadcaster):
    text = pin(broadcaster)

    statuses = [validate(live.client(role, user="5", channel=CHANNEL), text) for role in ("viewer", "admin", "backend")]

    assert [403, 403, 403] == statuses
    assert 401 == live.client(None).post("validate_pin", json={"pin": text}, headers={"Authorization": ""}).status_code


@pytest.mark.ruling("T2")
def test_a_pin_that_is_bound_to_another_channel_is_a_wrong_pin_and_stays_where_it_was(live, broadcaster, neighbour):
    text = pin(broadcaster)

    assert 400 == validate(neighbour, text)
    assert CHANNEL == channel_of(live, text)


@pytest.mark.ruling("T2")
def test_the_first_broadcaster_to_validate_a_pin_has_it(live, named, broadcaster, neighbour):
    text = pin(named)

    assert [200, 400, 200] == [validate(client, text) for client in (broadcaster, neighbour, broadcaster)]
    assert CHANNEL == channel_of(live, text)


@pytest.mark.ruling("T2", "X1")
def test_the_pin_of_another_client_id_is_a_wrong_pin(live, broadcaster):
    of_another = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=OTHER_ID)

    assert [400, 200] == [validate(client, pin(of_another)) for client in (broadcaster, of_another)]


@pytest.mark.ruling("T1", "T2")
@pytest.mark.parametrize("request_pin", ["bound", "unbound"])
def test_a_pin_is_good_until_one_millisecond_before_five_minutes_and_wrong_at_five(
    live, named, broadcaster, request_pin
):
    live.freeze()
    text = pin(broadcaster if request_pin == "bound" else named)

    live.advance(5 * MINUTE - 1)
    before = validate(broadcaster, text)
    live.advance(1)

    assert [200, 400] == [before, validate(broadcaster, text)]


@pytest.mark.ruling("T1")
def test_validating_a_pin_does_not_prolong_it(live, named, broadcaster):
    live.freeze()
    text = pin(named)
    live.advance(4 * MINUTE)
    validate(broadcaster, text)

    live.advance(MINUTE)

    assert 400 == validate(broadcaster, text)


@pytest.mark.ruling("T2")
def test_that_a_pin_exists_is_no_token(broadcaster, live):
    seen = [exists(broadcaster)]
    text = pin(broadcaster)
    seen.append(exists(broadcaster))

    channel_of(live, text)

    assert [False, False, True] == [*seen, exists(broadcaster)]


@pytest.mark.ruling("T2")
def test_a_validated_pin_token_is_a_token(broadcaster, stranger, neighbour):
    text = pin(stranger, "/v1/e/pin", json={"identifier": CLIENT_ID})
    before = exists(broadcaster)

    validate(broadcaster, text)

    assert [False, True, False] == [before, exists(broadcaster), exists(neighbour)]


@pytest.mark.ruling("T2", "T3")
def test_delete_revokes_the_channel_s_pins_and_the_answer_is_an_empty_object(live, broadcaster, named):
    pins = [pin(broadcaster), pin(named)]
    validate(broadcaster, pins[1])

    answer = broadcaster.delete("pin")

    assert (200, {}) == (answer.status_code, answer.json())
    with SocketClient(live) as game:
        errors = [game.error("authenticate", data={"client_id": CLIENT_ID, "pin": each}) for each in pins]
    assert [400, 400] == [error["status"] for error in errors]


@pytest.mark.ruling("T2")
def test_delete_of_nothing_is_no_error(broadcaster):
    assert [200, 200] == [broadcaster.delete("pin").status_code for _ in range(2)]


@pytest.mark.ruling("T2")
def test_delete_leaves_other_channels_and_other_client_ids_alone(live, broadcaster, neighbour):
    other = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=OTHER_ID)
    pins = [pin(client) for client in (neighbour, other)]
    games = [linked_game(live, "888"), linked_game(live, CHANNEL, OTHER_ID)]

    broadcaster.delete("pin")

    assert ["888", CHANNEL] == [channel_of(live, pins[0]), channel_of(live, pins[1], OTHER_ID)]
    assert [True, True] == [exists(client) for client in (neighbour, other)]
    for each in games:
        each.socket.close()


@pytest.mark.ruling("T2")
def test_delete_leaves_alone_a_pin_that_nobody_has_validated_yet(broadcaster, named):
    text = pin(named)

    broadcaster.delete("pin")

    assert 200 == validate(broadcaster, text)


@pytest.mark.ruling("T2")
def test_after_delete_nothing_exists_until_a_game_is_linked_anew(live, broadcaster):
    linked_game(live).socket.close()
    seen = [exists(broadcaster)]
    broadcaster.delete("pin")
    seen.append(exists(broadcaster))

    linked_game(live).socket.close()

    assert [True, False, True] == [*seen, exists(broadcaster)]


def test_the_broadcaster_of_a_linked_channel_is_asked_by_their_user_id_if_the_token_names_no_channel(live):
    client = live.client("broadcaster", user="4242")

    assert "4242" == channel_of(live, pin(client))


def test_no_pin_is_in_what_the_clock_lists_as_expired(live, broadcaster, stranger):
    live.freeze()
    pins = [pin(broadcaster), pin(stranger, "/v1/e/pin", json={"identifier": CLIENT_ID})]
    validate(broadcaster, pins[1])

    expired = live.advance(5 * MINUTE)

    assert [] == [each for each in pins if each in str(expired)]


def test_no_pin_and_no_token_is_in_the_log(live, broadcaster, caplog):
    caplog.set_level(logging.DEBUG)
    text = request_pin(live)
    with SocketClient(live) as game:
        pair = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": text})
        game.error("authenticate", data={"client_id": CLIENT_ID, "pin": f"{text}x"})
        game.data("authenticate", data={"client_id": CLIENT_ID, "refresh": pair["refresh"]})
    validate(broadcaster, text)
    validate(broadcaster, f"{text}x")

    of_service = [r.getMessage() for r in caplog.records if r.name.split(".")[0] in ("emulator", "uvicorn", "litestar")]

    assert [] == [
        line for line in of_service for secret in (text, *pair.values()) if len(secret) > 5 and secret in line
    ]


@pytest.mark.ruling("T3")
def test_a_pin_and_its_tokens_outlive_a_restart(tmp_path):
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    settings = Settings(PRODUCTION, data=f"sqlite:///{tmp_path}/kept.db", extensions=extensions)
    exp = real_seconds() + 10 * MINUTE // SECOND
    with live_server(settings) as live:
        client = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=exp)
        text = pin(client)
        with SocketClient(live) as game:
            pair = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": text})

    with live_server(settings) as live, SocketClient(live) as game:
        by_pin = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": text})
        by_refresh_token = game.data("authenticate", data={"client_id": CLIENT_ID, "refresh": pair["refresh"]})
        status = live.bearer(pair["jwt"]).get("user_info").status_code

    assert (CHANNEL, CHANNEL, 200) == (by_pin["twitch_id"], by_refresh_token["twitch_id"], status)


@pytest.mark.ruling("T2", "T3")
def test_delete_revokes_pins_for_validate_pin_too(broadcaster, named):
    bound, validated = pin(broadcaster), pin(named)
    validate(broadcaster, validated)

    broadcaster.delete("pin")

    assert [400, 400] == [validate(broadcaster, bound), validate(broadcaster, validated)]
