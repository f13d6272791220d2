"""Config and state stores, `all_state`, `all_config` and the JSON store (Storage endpoints; rulings S1 to S5, A4)."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from support.service import Client, LiveServer

DAY = 86_400_000
KIB = 1024
STATE = ("extension_state", "channel_state", "viewer_state", "extension_viewer_state", "extension_hidden_state")
CONFIG = ("extension_config", "channel_config")
EVERY_STORE = pytest.mark.parametrize("store", STATE + CONFIG)


def object_of(size: int, *, character: str = "x") -> dict[str, str]:
    """Return an object with this many bytes of compact JSON."""
    return {"a": character * ((size - len('{"a":""}')) // len(character.encode()))}


def test_a_store_keeps_the_order_of_its_keys(admin: Client):
    admin.post("channel_state", content='{ "b": 1, "a": 2, "": 3, "\\u0000": 4 }')

    assert '{"b":1,"a":2,"":3,"\\u0000":4}' == admin.get("channel_state").text


@EVERY_STORE
@pytest.mark.ruling("S4")
def test_a_store_holds_at_most_64_kib(admin: Client, store: str):
    fits, too_large = object_of(64 * KIB), object_of(64 * KIB + 1)

    admin.post(store, json=fits).raise_for_status()
    answer = admin.patch(store, json={"b": 1})
    replaced = admin.post(store, content=json.dumps(too_large, separators=(",", ":")))

    assert (400, "Store too large") == (answer.status_code, answer.json()["reason"])
    assert 413 == replaced.status_code
    assert fits == admin.get(store).json()


@pytest.mark.ruling("S4")
def test_the_limit_counts_bytes_of_compact_utf_8_json(admin: Client):
    head = len('{"a":""}')
    admin.post("channel_state", json={"a": "x" * (64 * KIB - head - 2 - len(',"b":""'))}).raise_for_status()

    statuses = [
        admin.patch("channel_state", content=f'{{"b":"{text}"}}').status_code for text in ("\\u00e9", "ée", "é ")
    ]

    assert [200, 400, 400] == statuses


@pytest.mark.parametrize("store", ["channel_state", "viewer_state", "channel_config", "json_store"])
@pytest.mark.ruling("A4")
def test_a_channel_store_needs_a_channel(backend: Client, store: str):
    answers = [backend.get(store), backend.post(store, json={})]

    assert [(400, "Invalid channel")] * 2 == [(each.status_code, each.json()["reason"]) for each in answers]
    assert all("channel_id" in each.json()["info"] for each in answers)


@pytest.mark.parametrize("role", ["viewer", "broadcaster"])
@pytest.mark.ruling("A4")
def test_a_token_without_a_channel_cannot_read_a_channel_store(live: LiveServer, role: str):
    assert 400 == live.client(role, opaque="A1").get("channel_state").status_code


@pytest.mark.parametrize("store", ["channel_state", "channel_config", "viewer_state", "json_store"])
@pytest.mark.ruling("A4")
def test_admins_and_backends_choose_the_channel(admin: Client, backend: Client, store: str):
    admin.post(store, params={"channel_id": "888"}, json={"a": 1}).raise_for_status()
    backend.post(store, params={"channel_id": "999"}, json={"b": 2}).raise_for_status()

    assert {"a": 1} == admin.get(store, params={"channel_id": "888"}).json()
    assert {"b": 2} == backend.get(store, params={"channel_id": "999"}).json()
    assert {"a": 1} != admin.get(store).json()


def test_a_write_after_the_expiry_starts_from_an_empty_store(live: LiveServer, admin: Client):
    live.freeze()
    admin.post("channel_state", json={"a": 1})

    live.advance(DAY)
    admin.patch("channel_state", json={"b": 2})

    assert {"b": 2} == admin.get("channel_state").json()


def test_a_refused_write_does_not_extend_the_lifetime(live: LiveServer, admin: Client):
    live.freeze()
    admin.post("channel_state", json={"a": 1})
    live.advance(DAY - 1)

    admin.patch("channel_state", json=[{"op": "test", "path": "/a", "value": 2}])
    live.advance(1)

    assert {} == admin.get("channel_state").json()


@pytest.mark.parametrize(
    ("store_id", "status"), [("global", 200), ("global-x", 200), ("globalwarming", 200), ("Global", 404)]
)
@pytest.mark.ruling("S5")
def test_a_json_store_whose_id_starts_with_global_is_extension_wide(
    live: LiveServer, admin: Client, store_id: str, status: int
):
    admin.post("json_store", params={"id": store_id}, json={"a": 1}).raise_for_status()

    elsewhere = live.client("viewer", channel="888").get("json_store", params={"id": store_id})

    assert status == elsewhere.status_code


@pytest.mark.ruling("S5")
def test_a_global_json_store_needs_no_channel(backend: Client):
    backend.post("json_store?id=global", json={"a": 1}).raise_for_status()

    assert {"a": 1} == backend.get("json_store?id=global").json()


@pytest.mark.parametrize("path", ["channel_state", "json_store?id=a"])
def test_a_store_is_replaced_only_if_it_has_the_digest_that_is_expected(broadcaster: Client, path: str):
    address, joined = path, "&" if "?" in path else "?"
    broadcaster.post(address, json={"a": 1}).raise_for_status()
    digest = sha256(broadcaster.get(address).content).hexdigest()

    refused = [broadcaster.post(f"{address}{joined}expected={each}", json={}) for each in ("", "0", digest.upper())]

    assert [409, 409, 409] == [each.status_code for each in refused]
    assert {"a": 1} == broadcaster.get(address).json()
    assert 200 == broadcaster.post(f"{address}{joined}expected={digest}", json={"b": 2}).status_code
