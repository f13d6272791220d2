"""Config and state stores, `all_state`, `all_config` and the JSON store (Storage endpoints; rulings S1, S4, A4)."""

from __future__ import annotations

from hashlib import sha256

import pytest

from support.service import Client, LiveServer


def test_a_store_keeps_the_order_of_its_keys(admin: Client):
    admin.post("channel_state", content='{ "b": 1, "a": 2, "": 3, "\\u0000": 4 }')

    assert '{"b":1,"a":2,"":3,"\\u0000":4}' == admin.get("channel_state").text


@pytest.mark.parametrize(("store_id", "status"), [("global", 200), ("Global", 404), ("my-global", 404)])
def test_only_an_id_that_starts_with_global_is_of_all_channels(
    live: LiveServer, admin: Client, store_id: str, status: int
):
    admin.post("json_store", params={"id": store_id}, json={"a": 1}).raise_for_status()

    elsewhere = live.client("viewer", channel="888").get("json_store", params={"id": store_id})

    assert status == elsewhere.status_code


@pytest.mark.parametrize("path", ["channel_state", "json_store?id=a"])
def test_a_store_is_replaced_only_if_it_has_the_digest_that_is_expected(broadcaster: Client, path: str):
    address, joined = path, "&" if "?" in path else "?"
    broadcaster.post(address, json={"a": 1}).raise_for_status()
    digest = sha256(broadcaster.get(address).content).hexdigest()

    refused = [broadcaster.post(f"{address}{joined}expected={each}", json={}) for each in ("", "0", digest.upper())]

    assert [409, 409, 409] == [each.status_code for each in refused]
    assert {"a": 1} == broadcaster.get(address).json()
    assert 200 == broadcaster.post(f"{address}{joined}expected={digest}", json={"b": 2}).status_code
