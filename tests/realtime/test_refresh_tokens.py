"""Refresh tokens in `authenticate` (rulings T2, T3, X1)."""

from __future__ import annotations

from emulator.core.clock import DAY, SECOND
from support.authentication import authenticate, refused
from support.service import CHANNEL, OTHER_ID
from support.socket_client import SocketClient, request_pin

YEAR = 365 * DAY
START = 2_000_000_000_000


def test_a_refresh_token_expires_after_365_days(live):
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


def test_a_revoked_refresh_token_stays_invalid_after_a_new_link(live, unlinked, broadcaster):
    old = authenticate(unlinked, pin=request_pin(live))["refresh"]
    broadcaster.delete("pin")

    authenticate(unlinked, pin=request_pin(live))

    assert (400, "Bad Request") == refused(unlinked, refresh=old)


def test_revoking_spares_other_channels_and_client_ids(live, unlinked, broadcaster):
    of_channel = authenticate(unlinked, pin=request_pin(live, "888"))["refresh"]
    of_client = authenticate(unlinked, OTHER_ID, pin=request_pin(live, client_id=OTHER_ID))["refresh"]

    broadcaster.delete("pin")

    assert "888" == authenticate(unlinked, refresh=of_channel)["twitch_id"]
    assert CHANNEL == authenticate(unlinked, OTHER_ID, refresh=of_client)["twitch_id"]


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
