"""The screen of channels that games are linked to."""

from __future__ import annotations

from support.forms import forms_of
from support.pages import fetched, main_of
from support.service import CHANNEL, Client, LiveServer
from support.socket_client import linked_game


def test_a_link_is_listed_counted_and_ended(live: LiveServer, broadcaster: Client):
    screen = f"{live.url}/_emulator/ui/links"
    assert "<p>No linked games.</p>" in main_of(screen)
    with linked_game(live):
        assert f'data-head="Channel"><bdi>{CHANNEL}</bdi>' in main_of(screen)
        assert "Links</a><small>1</small>" in fetched(screen).text
        forms_of(screen)["end-1"].send().raise_for_status()

    assert "<p>No linked games.</p>" in main_of(screen)
    assert not broadcaster.get("pin_token_exists").json()["exists"]
