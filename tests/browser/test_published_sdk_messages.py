"""Pages of the published SDK receive broadcasts through the service's Pusher endpoint."""

from __future__ import annotations

import pytest

from support.browser import ScriptOutput, run_once, run_script
from support.service import LiveServer


@pytest.fixture(scope="module")
def received(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """Return what each listener received, as [data, event]."""

    def produce() -> ScriptOutput:
        running_live.reset()
        return run_script("messages.js", running_live.url)

    return run_once(tmp_path_factory, "sdk-messages", produce)


def test_every_page_of_the_channel_receives_a_broadcast(received: ScriptOutput):
    messages = [[{"motd": "hi"}, "motd"], [{"motd": "from a viewer", "text": "Zażółć 🦊"}, "motd"]]

    assert [messages, messages, messages] == received["broadcast"]


def test_a_message_without_data_arrives_without_data(received: ScriptOutput):
    assert [[None, "start"]] == received["withoutData"]


@pytest.mark.parametrize("listener", ["prefixed", "bare"])
def test_a_whisper_reaches_its_user_under_both_spellings_of_the_id(received: ScriptOutput, listener: str):
    assert [[{"to": to}, "secret"] for to in ("U5551", "5551", "myself")] == received["whisper"][listener]


def test_a_whisper_reaches_no_other_user_and_no_broadcast_listener(received: ScriptOutput):
    assert ([], []) == (received["whisper"]["other"], received["whisper"]["toAll"])


def test_every_channel_receives_an_extension_broadcast(received: ScriptOutput):
    here, elsewhere = received["everywhere"]

    assert [[{"to": to}, "news"] for to in ("all", "a channel", "all, again")] == here
    assert [[{"to": to}, "news"] for to in ("all", "all, again")] == elsewhere


def test_a_compressible_message_over_4_kilobytes_arrives(received: ScriptOutput):
    assert {"length": 21_000, "same": True, "event": "large"} == received["large"]


def test_a_message_that_is_too_large_even_compressed_rejects(received: ScriptOutput):
    assert "Message too large" == received["tooLarge"]["reason"]


def test_a_pattern_receives_all_matching_events_with_their_names(received: ScriptOutput):
    assert ["vote_update:round-7", "vote_update:round-8"] == received["pattern"]["pattern"]
    assert ["vote_update:round-7"] == received["pattern"]["exact"]


def test_the_sdk_drops_a_duplicate_on_any_channel(received: ScriptOutput):
    assert [[{"n": 1}, "twice"], [{"n": 2}, "twice"]] == received["duplicates"]


def test_messages_arrive_in_order(received: ScriptOutput):
    assert list(range(20)) == received["inOrder"]


def test_a_removed_listener_receives_nothing_more(received: ScriptOutput):
    assert [[{"n": 1}, "left"]] == received["left"]


def test_a_broadcast_over_rest_arrives_under_the_developers_name(received: ScriptOutput):
    assert [[{"by": "POST"}, "rest"], [{"by": "GET"}, "rest"]] == received["overRest"]


def test_messages_of_other_environments_extensions_and_channels_do_not_arrive(received: ScriptOutput):
    assert {"page": [], "otherExtension": [[{"n": 2}, "foreign"]]} == received["foreign"]
