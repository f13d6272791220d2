"""`authenticate` on the socket, with PINs, JWTs and refresh tokens (rulings T1, T2, T3, X1, X4)."""

from __future__ import annotations

import pytest

from emulator.core.clock import DAY
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.authentication import authenticate, refused, unbound_pin
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, SECRET, LiveServer, live_server
from support.socket_client import SocketClient, request_pin

FAR_AWAY = 10**11 - 1
START = 2_000_000_000_000


def channel_read(game: SocketClient) -> tuple[int, str]:
    """The status of a read of the channel state, and the channel it belongs to."""
    reply = game.request("get", "state", {"state_id": "channel"})
    return (200, reply["data"]["state"].get("of", "")) if "data" in reply else (reply["errors"][0]["status"], "")


@pytest.fixture
def channels(live: LiveServer) -> None:
    """Two channels whose state contains the channel id."""
    for channel in (CHANNEL, "888"):
        live.client("broadcaster", user=channel, channel=channel).post("channel_state", json={"of": channel})


@pytest.mark.parametrize("template", [" {}", "{} ", "{}\n", "{}\0", "\ufeff{}"])
def test_a_pin_with_other_characters_around_it_is_wrong(live, unlinked, template):
    assert (400, "Bad Request") == refused(unlinked, pin=template.format(request_pin(live)))


def test_the_pin_of_another_client_id_is_wrong(live, unlinked):
    assert (400, "Bad Request") == refused(unlinked, pin=request_pin(live, client_id=OTHER_ID))
    assert CHANNEL == authenticate(unlinked, OTHER_ID, pin=request_pin(live, client_id=OTHER_ID))["twitch_id"]


def test_rights_outlive_the_access_token(live):
    live.set(START)
    with SocketClient(live) as game:
        token = authenticate(game, pin=request_pin(live))["jwt"]

        live.advance(7 * DAY)

        game.data("set", "state", {"state_id": "channel", "state": {"of": "later"}})
        assert (401, (200, "later")) == (live.bearer(token).get("user_info").status_code, channel_read(game))


def test_a_broadcasters_jwt_gets_the_same_response_as_a_pin(live, unlinked):
    first = authenticate(unlinked, pin=request_pin(live))

    second = authenticate(unlinked, jwt=first["jwt"])

    assert first.keys() == second.keys()
    assert CHANNEL == authenticate(unlinked, refresh=second["refresh"])["twitch_id"]


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
def test_authenticate_requires_exactly_one_credential_as_a_string(unlinked, credential):
    data = {"client_id": CLIENT_ID, **credential}

    assert (400, "Bad Request") == (lambda e: (e["status"], e["title"]))(unlinked.error("authenticate", data=data))


def test_an_unbound_sandbox_pin_links_the_extensions_owner():
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,), "1001"), OTHER_ID: Extension(OTHER_ID, (SECRET,))}
    with live_server(Settings(extensions=extensions)) as live, SocketClient(live) as game:
        owned, ownerless = (
            authenticate(game, client_id, pin=unbound_pin(live, client_id))["twitch_id"]
            for client_id in (CLIENT_ID, OTHER_ID)
        )

    assert ("1001", "sandbox") == (owned, ownerless)


@pytest.mark.parametrize("client_id", ["{} {}", '"{}', " {}", "{}\n{}"])
def test_a_client_id_that_contains_a_token_gets_400(production, client_id):
    token = production.client("viewer", user="5", channel=CHANNEL, exp=FAR_AWAY).headers["Authorization"].split()[1]

    with SocketClient(production) as game:
        assert 400 == refused(game, client_id.format(CLIENT_ID, token), jwt=token)[0]


def test_another_signature_client_id_or_kind_of_token_is_refused(live, unlinked):
    pair = authenticate(unlinked, pin=request_pin(live))
    head, payload, signature = pair["refresh"].split(".")
    changed = ("A" if signature[0] != "A" else "B") + signature[1:]

    assert [(400, "Bad Request")] * 3 + [(401, "Unauthorized")] == [
        refused(unlinked, refresh=f"{head}.{payload}.{changed}"),
        refused(unlinked, OTHER_ID, refresh=pair["refresh"]),
        refused(unlinked, refresh=pair["jwt"]),
        refused(unlinked, jwt=pair["refresh"]),
    ]


def test_requests_pipelined_after_authenticate_have_its_rights(live, unlinked):
    unlinked.send("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})
    unlinked.send("subscribe", "state", {"topic_id": "channel"})
    unlinked.send("set", "state", {"state_id": "channel", "state": {"a": 1}})

    replies = [unlinked.reply() for _ in range(3)]

    assert [True] * 3 == ["data" in reply for reply in replies]
    assert {"a": 1} == unlinked.update()["data"]["state"]


def test_revoking_spares_other_channels_and_client_ids(live, unlinked, broadcaster):
    of_channel = authenticate(unlinked, pin=request_pin(live, "888"))["refresh"]
    of_client = authenticate(unlinked, OTHER_ID, pin=request_pin(live, client_id=OTHER_ID))["refresh"]

    broadcaster.delete("pin")

    assert "888" == authenticate(unlinked, refresh=of_channel)["twitch_id"]
    assert CHANNEL == authenticate(unlinked, OTHER_ID, refresh=of_client)["twitch_id"]
