"""PATCH of a store (ruling S2). `tests/rules/test_json_patches.py` covers the operations."""

from __future__ import annotations

from typing import Any

import pytest

from support.service import Client


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


@pytest.mark.parametrize("patch", [[{"op": "add", "path": "/a", "value": "x" * 70_000}], {"a": "x" * 70_000}])
def test_a_patch_of_one_record_is_refused_above_64_kib(admin: Client, patch: Any):
    answer = admin.patch("extension_viewer_state", json=patch)

    assert 413 == answer.status_code
    assert answer.json()["info"].startswith("a patch of one record has 70")


@pytest.mark.parametrize("end", ["", "}} x", ",}", '}, "2": nul}'])
def test_a_malformed_map_above_64_kib_is_refused(admin: Client, end: str):
    answer = admin.patch("extension_viewer_state", content='{"1": {"a": "' + "x" * 70_000 + '"' + end)

    assert (400, "Malformed json body") == (answer.status_code, answer.json()["reason"])
