"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396) as `apply_patch` implements them (ruling S2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.core.errors import BadRequest
from emulator.features.stores.patches import apply_patch

Json = Any


def op(name: str, path: str, **members: Json) -> dict[str, Json]:
    return {"op": name, "path": path, **members}


OPERATIONS = [
    # RFC 6902, appendix A, and the json-patch test suite's cases on objects
    ({"foo": "bar"}, [op("add", "/baz", value="qux")], {"foo": "bar", "baz": "qux"}),
    ({"foo": ["bar", "baz"]}, [op("add", "/foo/1", value="qux")], {"foo": ["bar", "qux", "baz"]}),
    ({"foo": ["bar"]}, [op("add", "/foo/1", value="qux")], {"foo": ["bar", "qux"]}),
    ({"foo": ["bar"]}, [op("add", "/foo/-", value=["abc", "def"])], {"foo": ["bar", ["abc", "def"]]}),
    ({"foo": 1}, [op("add", "/foo", value=None)], {"foo": None}),
    ({"foo": 1}, [op("add", "", value={"baz": 2})], {"baz": 2}),
    ({}, [op("add", "/", value=1)], {"": 1}),
    ({"foo": {}}, [op("add", "/foo/", value=1)], {"foo": {"": 1}}),
    ({"bar": [1]}, [op("add", "/bar/0", value={"a": True})], {"bar": [{"a": True}, 1]}),
    ({}, [op("add", "/0", value=1), op("add", "/-", value=2)], {"0": 1, "-": 2}),
    ({"baz": "qux", "foo": "bar"}, [op("remove", "/baz")], {"foo": "bar"}),
    ({"foo": ["a", "b", "c"]}, [op("remove", "/foo/1")], {"foo": ["a", "c"]}),
    ({"foo": {"a": None}}, [op("remove", "/foo/a")], {"foo": {}}),
    ({"baz": "qux"}, [op("replace", "/baz", value="boo")], {"baz": "boo"}),
    ({"foo": [1, 2]}, [op("replace", "/foo/0", value=[9])], {"foo": [[9], 2]}),
    ({"foo": 1}, [op("replace", "", value={"a": 1})], {"a": 1}),
    ({"a": {"b": 1}, "c": {}}, [op("move", "/c/d", **{"from": "/a/b"})], {"a": {}, "c": {"d": 1}}),
    ({"foo": ["all", "grass", "cows", "eat"]}, [op("move", "/foo/3", **{"from": "/foo/1"})],
     {"foo": ["all", "cows", "eat", "grass"]}),
    ({"a": 1}, [op("move", "/a", **{"from": "/a"})], {"a": 1}),
    ({"a": {"b": 1}}, [op("copy", "/c", **{"from": "/a"}), op("add", "/c/d", value=2)],
     {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
    ({"a": {"b": 1}}, [op("copy", "/a/c", **{"from": ""})], {"a": {"b": 1, "c": {"a": {"b": 1}}}}),
    ({"baz": "qux", "foo": ["a", 2, "c"]}, [op("test", "/baz", value="qux"), op("test", "/foo/1", value=2)],
     {"baz": "qux", "foo": ["a", 2, "c"]}),
    ({"a": {"x": 1, "y": [None]}}, [op("test", "/a", value={"y": [None], "x": 1})], {"a": {"x": 1, "y": [None]}}),
    ({"a": 1}, [op("test", "", value={"a": 1}), op("test", "/a", value=1.0)], {"a": 1}),
    ({"a/b": 1, "m~n": 2, "~1": 3}, [op("replace", "/a~1b", value=4), op("remove", "/m~0n"), op("remove", "/~01")],
     {"a/b": 4}),
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": 1, "xyz": 123}], {"foo": "bar", "baz": 1}),
    ({"a": 1}, [op("add", "/a", value=2), op("test", "/a", value=2), op("remove", "/a")], {}),
    ({"a": 1}, [], {"a": 1}),
    # the leniency of S2: `add` creates missing parents
    ({}, [op("add", "/settings/colour/hue", value=3)], {"settings": {"colour": {"hue": 3}}}),
    ({}, [op("add_intermediates", "/a/b/c", value=[])], {"a": {"b": {"c": []}}}),
    ({"a": [{}]}, [op("add", "/a/0/b/c", value=1)], {"a": [{"b": {"c": 1}}]}),
    ({"a": {"b": 1}}, [op("add_intermediates", "/a/b", value=2)], {"a": {"b": 2}}),
    ({"0": {}}, [op("add", "/0/b/c", value=2)], {"0": {"b": {"c": 2}}}),
    ({"a": {}}, [op("add", "/a/0", value=1), op("add", "/a/-", value=2)], {"a": {"0": 1, "-": 2}}),
    ({}, [op("add", "/a/x1/-2/1e0", value=1)], {"a": {"x1": {"-2": {"1e0": 1}}}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "patch", "after"), OPERATIONS, ids=[json.dumps(case[1])[:70] for case in OPERATIONS]
)
def test_an_array_is_a_json_patch(before: Json, patch: Json, after: Json):
    result = apply_patch(json.loads(json.dumps(before)), patch)

    assert json.dumps(after, sort_keys=True) == json.dumps(result, sort_keys=True)


FAILURES: list[Any] = [
    op("remove", "/absent"),
    op("remove", "/list/3"),
    op("remove", "/list/-"),
    op("remove", ""),
    op("replace", "/absent", value=1),
    op("replace", "", value=[1]),
    op("replace", "", value=None),
    op("add", "/list/4", value=1),
    op("add", "/list/-1", value=1),
    op("add", "/list/01", value=1),
    op("add", "/list/1e0", value=1),
    op("add", "/list/9/a", value=1),
    op("add", "/number/a", value=1),
    op("add", "/text/a/b", value=1),
    op("add", "/text/0", value="x"),
    op("add", "/nothing/a", value=1),
    op("add", "", value=3),
    op("add", "no-slash", value=1),
    op("add", "/new/0", value=1),
    op("add", "/new/-", value=1),
    op("add", "/new/007", value=1),
    op("add", "/new/0/a", value=1),
    op("add", "/-/a", value=1),
    op("add", "/object/new/-", value=1),
    op("add_intermediates", "/new/0", value=1),
    op("add", "/a~2b", value=1),
    op("add", "/a"),
    op("test", "/absent", value=None),
    op("test", "/number", value="1"),
    op("test", "/number", value=True),
    op("test", "/truth", value=1),
    op("test", "/list", value=[3, 2, 1]),
    op("test", "/object", value={"a": 1, "b": 2}),
    op("move", "/a", **{"from": "/absent"}),
    op("move", "/object/a/b", **{"from": "/object"}),
    op("move", "/object/x/y", **{"from": "/number"}),
    op("move", "/a"),
    op("copy", "/a", **{"from": "/absent"}),
    op("copy", "/x/y/z", **{"from": "/number"}),
    op("copy", "/a", **{"from": 5}),
    op("copy", "", **{"from": "/list"}),
    op("fly", "/a", value=1),
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
    document = {
        "number": 1,
        "text": "x",
        "truth": True,
        "nothing": None,
        "list": [1, 2, 3],
        "object": {"a": 1},
        "spare": {},
    }
    others = [op("add", "/early", value=1), op("add", "/spare/b", value=2), op("remove", "/spare")]

    for patch in ([operation], [*others, operation], [operation, *others]):
        with pytest.raises(BadRequest) as error:
            apply_patch(json.loads(json.dumps(document)), patch)
        assert "Invalid patch" == error.value.reason


def test_a_patch_has_at_most_1000_operations():
    assert {"a": 1} == apply_patch({}, [op("add", "/a", value=1)] * 1_000)
    with pytest.raises(BadRequest) as error:
        apply_patch({}, [op("add", "/a", value=1)] * 1_001)
    assert "1001 operations; the limit is 1000 per patch" == error.value.detail


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


MERGES = [
    # RFC 7396, appendix A, the cases on objects
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": "foo"}, {"a": {"b": {"c": None, "d": 1}}}, {"a": {"b": {"d": 1}}}),
    ({"a": [1]}, {"a": {"b": None}}, {"a": {}}),
    ({"a": 1}, {"b": [{"c": None}]}, {"a": 1, "b": [{"c": None}]}),
    ({"a": 1}, {}, {"a": 1}),
    ({"a": 1}, {"op": "add", "path": "/b", "value": 1}, {"a": 1, "op": "add", "path": "/b", "value": 1}),
]


@pytest.mark.parametrize(("before", "patch", "after"), MERGES, ids=[json.dumps(case[1]) for case in MERGES])
def test_an_object_is_a_merge_patch(before: Json, patch: Json, after: Json):
    assert after == apply_patch(json.loads(json.dumps(before)), patch)
