"""`extcli accumulate`."""

from __future__ import annotations

import pytest


def test_documents_are_read_newest_first(extcli, live):
    now = live.freeze()
    extcli("accumulate", "add", "ratings", '{"stars":5}')
    extcli("accumulate", "add", "ratings", '{"stars":3}', "--as", "viewer:U2")

    assert [
        [str(now), "1001", "U2", '{"stars":3}'],
        [str(now), "1001", "U1", '{"stars":5}'],
    ] == extcli("accumulate", "get", "ratings").rows


@pytest.mark.parametrize(
    ("words", "buffer", "data"),
    [
        (("b", "stars=5", "text=very good"), "b", {"stars": 5, "text": "very good"}),
        (("stars=5",), "default", {"stars": 5}),
        (("a=b", '{"c=d": 1}'), "a=b", {"c=d": 1}),
        (("b", '"x=1"'), "b", "x=1"),
        (("b", "-"), "b", [2]),
        (("b", "@{file}"), "b", [1]),
    ],
)
def test_a_document_is_json_pairs_a_file_or_standard_input(extcli, file, words, buffer, data):
    path = file("[1]")

    extcli("accumulate", "add", *[word.replace("{file}", path) for word in words], input="[2]", exits=0)

    assert [data] == [entry["data"] for entry in extcli("accumulate", "get", buffer, "-o", "jsonl").jsonl]


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


def test_numbers_of_any_size_are_preserved(extcli):
    extcli("accumulate", "add", "[123456789012345678901234567890,0.1,-0.5e-3,1]")

    [entry] = extcli("accumulate", "get", "-o", "jsonl").jsonl

    assert [123456789012345678901234567890, 0.1, -0.0005, 1] == entry["data"]


def test_json_output_is_the_response_of_the_service(extcli, live):
    extcli("accumulate", "add", '{"a":1}', "--channel", "777")
    body = live.client("broadcaster", channel="777").get("accumulate").text

    assert body + "\n" == extcli("accumulate", "get", "-o", "json", "--channel", "777").stdout
