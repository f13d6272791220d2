"""The command of extcli for a request, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.control.journal.snippets import words_of


@pytest.mark.parametrize(
    ("endpoint", "query", "body", "words"),
    [
        ("POST vote", {"id": "rps"}, {"value": 2}, ["vote", "cast", "rps", "--value", "2"]),
        ("POST vote", {}, {"value": -5}, None),
        ("POST vote", {}, {"value": 2, "count": 3}, ["vote", "cast", "default", "--value", "2", "--count", "3"]),
        ("POST vote", {"id": "rps"}, {"value": 2, "other": 1}, None),
        ("POST vote", {"id": "rps", "channel_id": "1"}, {"value": 2}, None),
        ("POST vote", {"id": "rps"}, {"value": "2"}, None),
        ("POST rank", {}, {"key": 0}, None),
        ("POST rank", {}, {"key": "0; rm"}, ["rank", "submit", "default", "--key=0; rm"]),
        ("POST codes/redeem", {}, {"prize": "1"}, None),
        ("POST curated_poll", {}, {"question_id": 1, "vote": "a"}, None),
        ("POST vote", {"id": "rps"}, {"value": True}, None),
        ("POST vote", {"id": "--help"}, {"value": 2}, None),
        ("POST vote", {}, [1], None),
        ("POST vote", {}, None, None),
        ("GET vote", {}, None, ["vote", "get", "default"]),
        ("GET vote", {"id": "a"}, {"value": 1}, None),
        ("POST rank", {"id": "r"}, {"key": "-x"}, ["rank", "submit", "r", "--key=-x"]),
        ("POST channel_state", {}, {"a": {"b": 1}}, ["state", "set", "channel", '{"a": {"b": 1}}']),
        ("POST accumulate", {"id": "b"}, 5, None),
        ("POST bits/transactions", {}, {}, None),
    ],
)
def test_a_request_has_a_command_only_if_the_command_loses_nothing(
    endpoint: str, query: dict[str, str], body: Any, words: list[str] | None
):
    method, name = endpoint.split()

    assert words == words_of(f"{method} /v1/e/{name}", query, body)
