"""Accumulation buffers (Accumulation; rulings R2, R3, A4, W2)."""

from __future__ import annotations

import json

import httpx
import pytest

from support.service import Client


def add(client: Client, blob: object, where: str = "") -> None:
    client.post(f"accumulate{where}", json=blob).raise_for_status()


def read(client: Client, where: str = "") -> dict:
    return client.get(f"accumulate{where}").raise_for_status().json()


def blobs(client: Client, where: str = "") -> list[object]:
    return [entry["data"] for entry in read(client, where)["data"]]


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


def text_of(size: int, character: str = "x") -> str:
    """A JSON string of `size` bytes of UTF-8 that repeats `character`."""
    content, width = size - 2, len(character.encode())
    return json.dumps(character * (content // width) + "y" * (content % width), ensure_ascii=False)


@pytest.mark.ruling("R2", "A3")
def test_an_entry_has_its_time_channel_and_poster(live, viewer, broadcaster):
    now = live.freeze()
    add(viewer("5551"), {"rating": 5})
    add(viewer(None, opaque="Aabc"), [1])

    anonymous = {"opaque_id": "Aabc", "opaque_user_id": "Aabc", "user_id": "", "data": [1]}
    shared = {"opaque_id": "", "opaque_user_id": "U5551", "user_id": "5551", "data": {"rating": 5}}
    entries = [{"observed": now, "channel_id": "777", **poster} for poster in (anonymous, shared)]
    assert {"data": entries, "latest": now} == read(broadcaster)


@pytest.mark.ruling("R2")
def test_entries_are_newest_first_and_ties_in_reverse_order_of_arrival(live, viewer, broadcaster):
    live.freeze()
    for number in range(6):
        add(viewer(), number)
        live.advance(number % 2)

    assert [5, 4, 3, 2, 1, 0] == blobs(broadcaster)


@pytest.mark.ruling("R2")
def test_entries_are_ordered_by_time_even_if_the_clock_is_set_back(live, viewer, broadcaster):
    now = live.freeze()
    add(viewer(), "late")
    live.set(now - 5)
    add(viewer(), "early")

    assert (["late", "early"], now) == (blobs(broadcaster), read(broadcaster)["latest"])


@pytest.mark.ruling("R2")
@pytest.mark.parametrize("start", ["", "0", "-1", "-" + "9" * 19, "-" + "9" * 40])
def test_an_absent_or_early_start_reads_all_entries(viewer, broadcaster, start):
    add(viewer(), 1)

    assert [1] == blobs(broadcaster, f"?start={start}")


@pytest.mark.ruling("R2")
@pytest.mark.parametrize("start", ["9" * 18, "9223372036854775807", "9223372036854775808", "9" * 20, "9" * 40])
def test_a_start_after_the_year_9999_reads_nothing(viewer, broadcaster, start):
    add(viewer(), 1)

    assert [] == blobs(broadcaster, f"?start={start}")


@pytest.mark.ruling("R2")
@pytest.mark.parametrize(
    "start", ["undefined", "null", "1.5", "1e3", "NaN", "0x10", "%D9%A1", "%00", "1,2", "--1", "1_000", "%201"]
)
def test_a_start_that_is_not_an_integer_is_refused(broadcaster, start):
    assert (400, "Malformed start parameter") == reason(broadcaster.get(f"accumulate?start={start}"))


@pytest.mark.ruling("R3")
@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
def test_a_blob_has_at_most_255_bytes_of_utf_8(viewer, broadcaster, character):
    fits, too_large = text_of(255, character), text_of(256, character)

    answers = [viewer().post("accumulate", content=text.encode()) for text in (fits, too_large)]

    assert 200 == answers[0].status_code
    assert (400, "Body too large") == reason(answers[1])
    assert [json.loads(fits)] == blobs(broadcaster)


@pytest.mark.ruling("R3")
@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ('{ "a" : [ 1 , 2 ] }' + " " * 1000, {"a": [1, 2]}),
        ('"' + "\\u00e9" * 126 + '"', "é" * 126),
        ('"' + "\\ud83d\\ude00" * 63 + '"', "😀" * 63),
        ('{"a":"' + "x" * 1000 + '","a":1}', {"a": 1}),
        ("1." + "0" * 1000, 1.0),
        ('"' + "\\/" * 253 + '"', "/" * 253),
        (json.dumps('{"a": "' + "x" * 247 + '"}'), {"a": "x" * 247}),
    ],
    ids=["spaces", "escapes", "surrogate pairs", "duplicate keys", "digits", "slashes", "double-encoded"],
)
def test_the_limit_applies_to_the_compact_json_not_the_body(viewer, broadcaster, body, stored):
    answer = viewer().post("accumulate", content=body)

    assert 200 == answer.status_code
    assert [stored] == blobs(broadcaster)


@pytest.mark.ruling("R3")
def test_control_characters_count_as_their_escapes(viewer):
    answers = [viewer().post("accumulate", content='"' + "\\u0001" * times + '"') for times in (42, 43)]

    assert [200, 400] == [answer.status_code for answer in answers]


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "null", "true", "0", "-0.5", '""', '"5"', '"hello"', '{"":""}', '{"a":{"b":[null]}}',
     '"\\u0000"', "123456789012345678901234567890", "-18446744073709551617", "9" * 255, "[" * 127 + "]" * 127],
)  # fmt: skip
def test_any_json_is_stored_unchanged(viewer, broadcaster, text):
    viewer().post("accumulate", content=text)

    assert [json.loads(text)] == blobs(broadcaster)


@pytest.mark.ruling("W8")
@pytest.mark.parametrize("buffer", ["a b&c", "caf\u00e9", "\U0001f600" * 64, "x" * 64, "a/b?c#d", "%", "+"])
def test_an_id_is_1_to_64_printable_characters(viewer, broadcaster, buffer):
    viewer().post("accumulate", params={"id": buffer}, json=1)

    assert 1 == len(broadcaster.get("accumulate", params={"id": buffer}).json()["data"])
    assert [] == blobs(broadcaster)


@pytest.mark.ruling("W8")
@pytest.mark.parametrize("buffer", ["x" * 65, "a\u0000", "a\tb", "\u200b"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_invalid_id_is_refused(broadcaster, method, buffer):
    answer = broadcaster.request(method, "accumulate", params={"id": buffer}, json=1)

    assert (400, "Invalid id") == reason(answer)


@pytest.mark.ruling("R2", "A4")
def test_latest_is_the_newest_in_the_caller_s_scope(live, viewer, broadcaster, backend):
    now = live.freeze()
    add(viewer(), 1)
    live.advance(5)
    add(viewer(channel="888"), 2)

    assert (now, now + 5) == (read(broadcaster)["latest"], read(backend)["latest"])


@pytest.mark.ruling("R2", "A4")
def test_entries_of_all_channels_are_merged_in_one_order(live, viewer, backend):
    live.freeze()
    for number in range(30):
        add(viewer(channel=str(number % 4)), number)
        live.advance(number % 3)

    assert list(range(29, -1, -1)) == blobs(backend)


def test_a_long_buffer_is_read_completely_and_in_order(live, viewer, broadcaster):
    poster = live.service.tokens.verify(viewer().headers["Authorization"]).caller

    async def collect() -> None:
        for number in range(2_500):
            await live.service.buffers.add(poster, "777", "default", number)

    live.run(collect())

    assert list(range(2_499, -1, -1)) == blobs(broadcaster)
