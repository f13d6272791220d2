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


def test_the_default_buffer_is_named_default(extcli):
    extcli("accumulate", "add", '{"a":1}')

    assert 1 == len(extcli("accumulate", "get", "default").rows)


def test_a_document_can_come_from_a_file_or_standard_input(extcli, tmp_path):
    (tmp_path / "blob.json").write_text("[1]")
    extcli("accumulate", "add", "b", f"@{tmp_path / 'blob.json'}")
    extcli("accumulate", "add", "b", "-", input="[2]")

    assert [[2], [1]] == [entry["data"] for entry in extcli("accumulate", "get", "b", "-o", "jsonl").jsonl]


@pytest.mark.parametrize(
    ("words", "buffer", "data"),
    [
        (("b", "stars=5"), "b", {"stars": 5}),
        (("b", "stars=5", "text=very good"), "b", {"stars": 5, "text": "very good"}),
        (("stars=5",), "default", {"stars": 5}),
        (("a=b", '{"c=d": 1}'), "a=b", {"c=d": 1}),
        (("b", '"x=1"'), "b", "x=1"),
    ],
)
def test_pairs_of_key_and_value_make_an_object(extcli, words, buffer, data):
    assert 0 == extcli("accumulate", "add", *words).exit_code

    assert [data] == [entry["data"] for entry in extcli("accumulate", "get", buffer, "-o", "jsonl").jsonl]


def test_since_uses_the_clock_of_the_service(extcli, live):
    extcli("accumulate", "add", '{"n":1}')
    live.advance(3_600_000)
    extcli("accumulate", "add", '{"n":2}')

    assert [{"n": 2}] == [entry["data"] for entry in extcli("accumulate", "get", "--since", "5m", "-o", "jsonl").jsonl]
    assert 2 == len(extcli("accumulate", "get", "--since", "2h").rows)


def test_start_is_an_instant(extcli, live):
    extcli("accumulate", "add", '{"n":1}')
    live.advance(1000)
    start = live.freeze()
    extcli("accumulate", "add", '{"n":2}')

    assert 1 == len(extcli("accumulate", "get", "--start", str(start)).rows)
    assert 1 == len(extcli("accumulate", "get", "--since", str(start // 1000)).rows)


def test_numbers_of_any_size_are_preserved(extcli):
    extcli("accumulate", "add", "[123456789012345678901234567890,0.1,-0.5e-3,1]")

    [entry] = extcli("accumulate", "get", "-o", "jsonl").jsonl

    assert [123456789012345678901234567890, 0.1, -0.0005, 1] == entry["data"]


def test_json_output_is_the_response_of_the_service(extcli, live):
    extcli("accumulate", "add", '{"a":1}', "--channel", "777")
    body = live.client("broadcaster", channel="777").get("accumulate").text

    assert body + "\n" == extcli("accumulate", "get", "-o", "json", "--channel", "777").stdout


def test_only_a_table_says_that_a_buffer_is_empty(extcli):
    assert "nothing collected\n" == extcli("accumulate", "get", "-o", "table").stdout
    assert "" == extcli("accumulate", "get").stdout
