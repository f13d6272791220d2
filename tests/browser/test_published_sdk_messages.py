"""Pages of the published SDK hear each other, and a backend, through the service's Pusher endpoint."""

from __future__ import annotations

import pytest

from support.browser import ScriptOutput, run_once, run_script
from support.service import LiveServer


@pytest.fixture(scope="module")
def said(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """What each listener heard, as [data, event]."""

    def produce() -> ScriptOutput:
        running_live.reset()
        return run_script("messages.js", running_live.url)

    return run_once(tmp_path_factory, "sdk-messages", produce)


def test_a_broadcast_is_heard_by_every_page_of_the_channel_its_sender_too(said: ScriptOutput):
    heard = [[{"motd": "hi"}, "motd"], [{"motd": "from a viewer", "text": "Zażółć 🦊"}, "motd"]]

    assert [heard, heard, heard] == said["broadcast"]


def test_a_message_without_data_is_heard_without_data(said: ScriptOutput):
    assert [[None, "start"]] == said["withoutData"]


@pytest.mark.parametrize("listener", ["lettered", "bare"])
def test_a_whisper_reaches_one_user_whichever_way_both_sides_spell_the_id(said: ScriptOutput, listener: str):
    assert [[{"to": to}, "secret"] for to in ("U5551", "5551", "myself")] == said["whisper"][listener]


def test_a_whisper_is_heard_by_nobody_else_and_is_no_broadcast(said: ScriptOutput):
    assert ([], []) == (said["whisper"]["other"], said["whisper"]["toAll"])


def test_a_broadcast_of_the_extension_is_heard_in_every_channel(said: ScriptOutput):
    here, elsewhere = said["everywhere"]

    assert [[{"to": to}, "news"] for to in ("all", "a channel", "all, again")] == here
    assert [[{"to": to}, "news"] for to in ("all", "all, again")] == elsewhere


def test_a_message_over_four_kilobytes_travels_compressed_and_arrives_whole(said: ScriptOutput):
    assert {"length": 21_000, "same": True, "event": "large"} == said["large"]


def test_a_message_that_is_too_large_when_compressed_is_refused(said: ScriptOutput):
    assert "Message too large" == said["tooLarge"]["reason"]


def test_a_pattern_hears_all_events_that_match_it_and_is_told_their_names(said: ScriptOutput):
    assert ["vote_update:round-7", "vote_update:round-8"] == said["pattern"]["pattern"]
    assert ["vote_update:round-7"] == said["pattern"]["exact"]


def test_the_same_message_again_within_seconds_is_dropped_by_the_sdk_on_whichever_channel_it_comes(said: ScriptOutput):
    assert [[{"n": 1}, "twice"], [{"n": 2}, "twice"]] == said["duplicates"]


def test_messages_arrive_in_the_order_in_which_they_were_taken(said: ScriptOutput):
    assert list(range(20)) == said["inOrder"]


def test_who_has_left_hears_no_more(said: ScriptOutput):
    assert [[{"n": 1}, "left"]] == said["left"]


def test_a_broadcast_over_rest_has_a_bare_name_and_is_heard_under_it(said: ScriptOutput):
    assert [[{"by": "POST"}, "rest"], [{"by": "GET"}, "rest"]] == said["overRest"]


def test_another_environments_extensions_or_channels_messages_are_not_heard(said: ScriptOutput):
    assert {"here": [], "apart": [[{"n": 2}, "foreign"]]} == said["foreign"]
