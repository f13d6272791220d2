"""The screens of live PINs, and of channels that games are linked to."""

from __future__ import annotations

import httpx
import pytest

from dashboard.html_pages import forms_of
from support.pages import fetched, main_of
from support.pins import create_pin, validate
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer
from support.socket_client import linked_game


@pytest.fixture
def screen(live: LiveServer, broadcaster: Client) -> str:
    """The URL of the screen, after a request of a broadcaster."""
    broadcaster.get("user_info")
    return f"{live.url}/_emulator/ui/pins"


def test_a_pin_is_requested_and_typed_in_and_stands_in_the_response_only(
    live: LiveServer, screen: str, broadcaster: Client, stranger: Client
):
    # A PIN that it requests is in the response only
    answer = forms_of(screen)["request"].send(client_id=CLIENT_ID, channel_id=CHANNEL).raise_for_status().json()
    pin = answer["body"]["pin"]

    assert 6 == len(pin)
    assert pin not in main_of(screen)
    assert pin not in httpx.get(f"{live.url}/_emulator/journal").text
    assert 200 == validate(broadcaster, pin)

    # The screen types a PIN in as broadcaster
    issued = stranger.post("/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()

    answer = forms_of(screen)["validate"].send(body__pin=issued["pin"]).raise_for_status()

    assert 200 == answer.json()["status"]
    assert broadcaster.get("pin_token_exists").json()["exists"]
    assert issued["pin"] not in httpx.get(f"{live.url}/_emulator/journal").text


def test_the_screen_lists_live_pins_by_digest_until_they_expire(live: LiveServer, screen: str, broadcaster: Client):
    # A PIN expires by its form
    pin = create_pin(broadcaster)
    (form,) = [form for name, form in forms_of(screen).items() if name.startswith("expire-")]

    form.send().raise_for_status()

    assert 400 == validate(broadcaster, pin)

    # The screen lists live PINs by digest with their time left
    pin = create_pin(broadcaster)
    live.freeze()
    live.advance(61_000)

    main = main_of(screen)

    assert "in 3 min 5" in main
    assert pin not in main
    live.advance(300_000)
    assert "<p>No live PINs.</p>" in main_of(screen)


def test_a_link_is_listed_counted_and_ended(live: LiveServer, broadcaster: Client):
    screen = f"{live.url}/_emulator/ui/links"
    assert "<p>No linked games.</p>" in main_of(screen)
    with linked_game(live):
        assert f'data-head="Channel"><bdi>{CHANNEL}</bdi>' in main_of(screen)
        assert "Links</a><small>1</small>" in fetched(screen).text
        forms_of(screen)["end-1"].send().raise_for_status()

    assert "<p>No linked games.</p>" in main_of(screen)
    assert not broadcaster.get("pin_token_exists").json()["exists"]
