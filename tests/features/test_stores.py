"""Config and state stores, `all_state`, `all_config` and the JSON store (Storage endpoints; rulings S1, S2).

`tests/rules/test_json_patches.py` has the operations of a patch.
"""

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


def test_copies_that_multiply_are_refused_before_they_cost_memory_or_time(admin: Client):
    admin.post("channel_state", json={"a": list(range(5_000))})
    doubling = [{"op": "copy", "path": "/a/-", "from": "/a"}] * 40
    overwriting = [{"op": "copy", "path": "/b", "from": "/a"}] * 1_000

    statuses = [admin.patch("channel_state", json=patch).status_code for patch in (doubling, overwriting)]

    assert [400, 400] == statuses
    assert {"a": list(range(5_000))} == admin.get("channel_state").json()


@pytest.mark.parametrize("operation", ["add", "test"])
def test_a_path_of_10_000_segments_is_refused(admin: Client, operation: str):
    admin.post("channel_state", json={"b": 1})

    answer = admin.patch("channel_state", json=[{"op": operation, "path": "/a" * 10_000, "value": 1}])

    assert (400, {"b": 1}) == (answer.status_code, admin.get("channel_state").json())


@pytest.mark.parametrize("end", ["", "}} x", ",}", '}, "2": nul}'])
def test_a_malformed_map_above_64_kib_is_refused(admin: Client, end: str):
    answer = admin.patch("extension_viewer_state", content='{"1": {"a": "' + "x" * 70_000 + '"' + end)

    assert (400, "Malformed json body") == (answer.status_code, answer.json()["reason"])
