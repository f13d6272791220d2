"""`extcli accumulate`."""

from __future__ import annotations

import pytest


def test_a_blob_is_kept_and_read_newest_first(extcli, live):
    now = live.freeze()
    extcli("accumulate", "add", "ratings", '{"stars":5}')
    extcli("accumulate", "add", "ratings", '{"stars":3}', "--as", "viewer:U2")

    assert [
        [str(now), "1001", "U2", '{"stars":3}'],
        [str(now), "1001", "U1", '{"stars":5}'],
    ] == extcli("accumulate", "get", "ratings").rows


def test_the_buffer_is_default_unless_named(extcli):
    extcli("accumulate", "add", '{"a":1}')

    assert 1 == len(extcli("accumulate", "get", "default").rows)


def test_a_blob_can_come_from_a_file_or_standard_input(extcli, tmp_path):
    (tmp_path / "blob.json").write_text("[1]")
    extcli("accumulate", "add", "b", f"@{tmp_path / 'blob.json'}")
    extcli("accumulate", "add", "b", "-", input="[2]")

    assert [[2], [1]] == [entry["data"] for entry in extcli("accumulate", "get", "b", "-o", "jsonl").jsonl]


@pytest.mark.parametrize("size", [255, 256])
def test_the_service_measures_the_blob(extcli, size):
    """Ruling R3."""
    blob = '"' + "x" * (size - 2) + '"'

    assert (0 if size == 255 else 4) == extcli("accumulate", "add", "b", blob).exit_code


def test_what_is_not_json_is_the_service_s_to_refuse(extcli):
    result = extcli("accumulate", "add", "b", "{nonsense")

    assert 4 == result.exit_code
    assert "Malformed json body" in result.stderr


@pytest.mark.parametrize("args", [(), ("a", "b", "c"), ("a", "b", "--from", "-")])
def test_too_little_or_too_much_is_wrong_usage(extcli, args):
    assert 2 == extcli("accumulate", "add", *args).exit_code


def test_since_counts_back_by_the_clock_of_the_service(extcli, live):
    extcli("accumulate", "add", '{"n":1}')
    live.advance(3_600_000)
    extcli("accumulate", "add", '{"n":2}')

    assert [{"n": 2}] == [entry["data"] for entry in extcli("accumulate", "get", "--since", "5m", "-o", "jsonl").jsonl]
    assert 2 == len(extcli("accumulate", "get", "--since", "2h").rows)


def test_start_is_a_point_in_time(extcli, live):
    extcli("accumulate", "add", '{"n":1}')
    live.advance(1000)
    start = live.freeze()
    extcli("accumulate", "add", '{"n":2}')

    assert 1 == len(extcli("accumulate", "get", "--start", str(start)).rows)
    assert 2 == extcli("accumulate", "get", "--start", "1", "--since", "1m").exit_code


def test_a_broadcaster_sees_one_channel_and_a_backend_all(extcli):
    extcli("accumulate", "add", "1", "--channel", "1")
    extcli("accumulate", "add", "2", "--channel", "2")

    assert 1 == len(extcli("accumulate", "get", "--channel", "1").rows)
    assert 2 == len(extcli("accumulate", "get", "--as", "backend").rows)


def test_numbers_of_any_size_and_shape_survive(extcli):
    extcli("accumulate", "add", "[123456789012345678901234567890,0.1,-0.5e-3,1]")

    [entry] = extcli("accumulate", "get", "-o", "jsonl").jsonl

    assert [123456789012345678901234567890, 0.1, -0.0005, 1] == entry["data"]


def test_json_is_the_body_of_the_service(extcli, live):
    extcli("accumulate", "add", '{"a":1}', "--channel", "777")
    body = live.client("broadcaster", channel="777").get("accumulate").text

    assert body + "\n" == extcli("accumulate", "get", "-o", "json", "--channel", "777").stdout


def test_nothing_collected_is_said_to_people_only(extcli):
    assert "nothing collected\n" == extcli("accumulate", "get", "-o", "table").stdout
    assert "" == extcli("accumulate", "get").stdout
