"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396) as `apply_patch` implements them (ruling S2).

The model of `tests/surface` says what a patch of well-formed operations makes of a document.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings

from emulator.core.errors import BadRequest
from emulator.features.stores.patches import apply_patch
from support.examples import examples
from surface.calls import Refused
from surface.generated import PATCHES, WRITTEN
from surface.stores import patched

Json = Any


def op(name: str, path: str, **members: Json) -> dict[str, Json]:
    return {"op": name, "path": path, **members}


def copied(value: Json) -> Json:
    return json.loads(json.dumps(value))


def outcome(function: Any, refusal: type[Exception], document: Json, patch: Json) -> str:
    """Return the patched document as text, or that the patch was refused."""
    try:
        return json.dumps(function(copied(document), copied(patch)), sort_keys=True)
    except refusal:
        return "refused"


@settings(max_examples=examples(400), deadline=None)
@given(WRITTEN, PATCHES)
@example({"foo": ["all", "grass", "cows", "eat"]}, [op("move", "/foo/3", **{"from": "/foo/1"})])
@example({"a": {"b": 1}}, [op("copy", "/a/c", **{"from": ""})])
@example({"a/b": 1, "m~n": 2, "~1": 3}, [op("replace", "/a~1b", value=4), op("remove", "/m~0n"), op("remove", "/~01")])
@example({"a": {"x": 1, "y": [None]}}, [op("test", "/a", value={"y": [None], "x": 1})])
@example({"0": {}}, [op("add", "/0/b/c", value=2)])
@example({}, [op("add", "/0", value=1), op("add", "/-", value=2)])
@example({"a": "foo"}, {"a": {"b": {"c": None, "d": 1}}})
def test_a_patch_gives_the_document_of_the_model(document: Json, patch: Json):
    assert outcome(patched, Refused, document, patch) == outcome(apply_patch, BadRequest, document, patch)


def test_members_of_an_operation_that_are_unknown_are_ignored():
    assert {"foo": 1, "a": 2} == apply_patch({"foo": 1}, [op("add", "/a", value=2, xyz=123)])


def test_numbers_are_tested_by_value():
    assert {"a": 1} == apply_patch({"a": 1}, [op("test", "", value={"a": 1}), op("test", "/a", value=1.0)])


FAILURES: list[Any] = [
    op("remove", "/list/-"),
    op("add", "/list/-1", value=1),
    op("add", "/list/1e0", value=1),
    op("add", "/text/0", value="x"),
    op("add", "no-slash", value=1),
    op("add", "/new/007", value=1),
    op("add", "/a~2b", value=1),
    op("add", "/a"),
    op("test", "/number", value=True),
    op("test", "/truth", value=1),
    op("move", "/a"),
    op("copy", "/a", **{"from": 5}),
    op("add", "/a" * 501, value=1),
    op("ADD", "/a", value=1),
    {"op": "add", "value": 1},
    {"path": "/a", "value": 1},
    {"op": "add", "path": 5, "value": 1},
    {"op": ["add"], "path": "/a", "value": 1},
    {},
    [],
    "add",
    None,
    5,
]


@pytest.mark.parametrize("operation", FAILURES, ids=[json.dumps(case) for case in FAILURES])
def test_an_operation_that_is_malformed_or_fails_raises_bad_request(operation: Json):
    document = {"number": 1, "text": "x", "truth": True, "list": [1, 2, 3], "spare": {}}
    others = [op("add", "/early", value=1), op("add", "/spare/b", value=2), op("remove", "/spare")]

    for patch in ([operation], [*others, operation], [operation, *others]):
        with pytest.raises(BadRequest) as error:
            apply_patch(copied(document), patch)
        assert "Invalid patch" == error.value.reason


def test_a_patch_has_at_most_1000_operations():
    assert {"a": 1} == apply_patch({}, [op("add", "/a", value=1)] * 1_000)
    with pytest.raises(BadRequest) as error:
        apply_patch({}, [op("add", "/a", value=1)] * 1_001)
    assert "the patch has 1001 operations; the limit is 1000" == error.value.detail


def test_a_refusal_names_the_operation():
    with pytest.raises(BadRequest) as error:
        apply_patch({"a": 4}, [op("add", "/b", value=1), 5])

    assert error.value.detail.startswith("operation 1: ")


def test_applying_a_patch_does_not_modify_the_patch():
    patch = [op("add", "/a", value={"b": []}), op("add", "/a/b/-", value=1), op("replace", "/a", value=[[]])]
    merge = {"c": [{}], "d": {"e": [1]}}
    before = json.dumps([patch, merge])

    added = apply_patch({}, [*patch, op("add", "/a/0/-", value=2)])
    merged = apply_patch({}, merge)
    merged["c"][0]["x"] = merged["d"]["y"] = 1

    assert ({"a": [[2]]}, before) == (added, json.dumps([patch, merge]))


def nested(levels: int) -> Json:
    value: Json = []
    for _ in range(levels - 1):
        value = [value]
    return value


def copies(number: int) -> list[dict[str, Json]]:
    return [op("copy", f"/copy{index}", **{"from": "/a"}) for index in range(number)]


@pytest.mark.parametrize(
    "value", [nested(450), [0] * 450, "x" * 898, [[]] * 300], ids=["nested", "numbers", "text", "wide"]
)
def test_a_patch_copies_at_most_64_kib_of_json(value: Json):
    size = len(json.dumps(value, separators=(",", ":")))
    allowed = 64 * 1024 // size

    assert allowed + 1 == len(apply_patch({"a": value}, copies(allowed)))
    with pytest.raises(BadRequest, match=f"operation {allowed}: a patch may copy at most 65536 bytes of JSON"):
        apply_patch({"a": value}, copies(allowed + 1))
