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
        (json.dumps('{"a":NaN}'), '{"a":NaN}'),
    ],
    ids=["spaces", "escapes", "surrogate pairs", "duplicate keys", "digits", "slashes", "double-encoded", "no JSON"],
)
def test_the_limit_applies_to_the_compact_json_not_the_body(viewer, broadcaster, body, stored):
    answer = viewer().post("accumulate", content=body)

    assert 200 == answer.status_code
    assert [stored] == blobs(broadcaster)


@pytest.mark.ruling("R3")
def test_control_characters_count_as_their_escapes(viewer):
    answers = [viewer().post("accumulate", content='"' + "\\u0001" * times + '"') for times in (42, 43)]

    assert [200, 400] == [answer.status_code for answer in answers]


@pytest.mark.ruling("R2")
def test_an_empty_start_reads_all_entries(viewer, broadcaster):
    add(viewer(), 1)

    assert [1] == blobs(broadcaster, "?start=")


@pytest.mark.ruling("R2", "A4")
def test_a_buffer_belongs_to_a_channel_whatever_its_id(viewer, broadcaster, backend):
    for channel in ("777", "888"):
        add(viewer(channel=channel), channel, "?id=global-x")

    assert (["777"], ["888", "777"]) == (blobs(broadcaster, "?id=global-x"), blobs(backend, "?id=global-x"))


def test_a_long_buffer_is_read_completely_and_in_order(live, viewer, broadcaster):
    poster = live.service.tokens.verify(viewer().headers["Authorization"]).caller

    async def collect() -> None:
        for number in range(2_500):
            await live.service.buffers.add(poster, "777", "default", number)

    live.run(collect())

    assert list(range(2_499, -1, -1)) == blobs(broadcaster)
