"""Config and state stores, `all_state`, `all_config` and the JSON store (Storage endpoints; rulings S1 to S5, A4)."""

from __future__ import annotations

from hashlib import sha256

import pytest

from support.service import Client

KIB = 1024


def test_a_store_keeps_the_order_of_its_keys(admin: Client):
    admin.post("channel_state", content='{ "b": 1, "a": 2, "": 3, "\\u0000": 4 }')

    assert '{"b":1,"a":2,"":3,"\\u0000":4}' == admin.get("channel_state").text


@pytest.mark.ruling("S4")
def test_the_limit_counts_bytes_of_compact_utf_8_json(admin: Client):
    head = len('{"a":""}')
    admin.post("channel_state", json={"a": "x" * (64 * KIB - head - 2 - len(',"b":""'))}).raise_for_status()

    statuses = [
        admin.patch("channel_state", content=f'{{"b":"{text}"}}').status_code for text in ("\\u00e9", "ée", "é ")
    ]

    assert [200, 400, 400] == statuses


@pytest.mark.parametrize("path", ["channel_state", "json_store?id=a"])
def test_a_store_is_replaced_only_if_it_has_the_digest_that_is_expected(broadcaster: Client, path: str):
    address, joined = path, "&" if "?" in path else "?"
    broadcaster.post(address, json={"a": 1}).raise_for_status()
    digest = sha256(broadcaster.get(address).content).hexdigest()

    refused = [broadcaster.post(f"{address}{joined}expected={each}", json={}) for each in ("", "0", digest.upper())]

    assert [409, 409, 409] == [each.status_code for each in refused]
    assert {"a": 1} == broadcaster.get(address).json()
    assert 200 == broadcaster.post(f"{address}{joined}expected={digest}", json={"b": 2}).status_code
