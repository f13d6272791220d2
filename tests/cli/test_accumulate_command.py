"""`extcli accumulate`."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("words", "buffer", "data"),
    [
        (("b", "stars=5", "text=very good"), "b", {"stars": 5, "text": "very good"}),
        (("stars=5",), "default", {"stars": 5}),
        (("a=b", '{"c=d": 1}'), "a=b", {"c=d": 1}),
        (("b", '"x=1"'), "b", "x=1"),
        (("b", "-"), "b", [2]),
        (("b", "@{file}"), "b", [1]),
        (("[123456789012345678901234567890,-0.5e-3]",), "default", [123456789012345678901234567890, -0.0005]),
    ],
)
def test_a_document_is_json_pairs_a_file_or_standard_input(extcli, file, words, buffer, data):
    path = file("[1]")

    extcli("accumulate", "add", *[word.replace("{file}", path) for word in words], input="[2]", exits=0)

    assert [data] == [entry["data"] for entry in extcli("accumulate", "get", buffer, "-o", "jsonl").jsonl]


def test_each_entry_has_its_time_channel_and_user(extcli, live):
    now = live.freeze()
    extcli("accumulate", "add", "ratings", "5")
    extcli("accumulate", "add", "ratings", "3", "--as", "viewer:U2")

    found = extcli("accumulate", "get", "ratings").rows
    assert [[str(now), "1001", "U2", "3"], [str(now), "1001", "U1", "5"]] == found


def test_since_uses_the_clock_of_the_service(extcli, live):
    extcli("accumulate", "add", '{"n":1}')
    live.advance(3_600_000)
    start = live.freeze()
    extcli("accumulate", "add", '{"n":2}')

    for options, found in (
        (("--since", "5m"), [2]),
        (("--start", str(start)), [2]),
        (("--since", str(start // 1000)), [2]),
        (("--since", "2h"), [2, 1]),
        ((), [2, 1]),
    ):
        entries = extcli("accumulate", "get", *options, "-o", "jsonl").jsonl
        assert found == [entry["data"]["n"] for entry in entries]
