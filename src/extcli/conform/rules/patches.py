"""PATCH of a store: JSON Patch, merge patch, and all or nothing."""

from __future__ import annotations

from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule, shown

STORE = "channel_state"


def patched(at: Deployment, before: Any, patch: Any) -> Any:
    """Write a document, patch it as the broadcaster, and return what the store then has."""
    at.broadcaster.post(STORE, before).check()
    at.broadcaster.patch(STORE, patch).check()
    return at.broadcaster.get(STORE).data


def refused(at: Deployment, before: Any, patch: Any) -> None:
    """Raise `Differs` unless the patch is refused with 400 and the document stays as it was."""
    at.broadcaster.post(STORE, before).check()
    expect(f"the status of PATCH {shown(patch)}", 400, at.broadcaster.patch(STORE, patch).status)
    expect(f"the store after PATCH {shown(patch)}", before, at.broadcaster.get(STORE).data)


def op(name: str, path: str, **members: Any) -> dict[str, Any]:
    """Return one operation. `origin` is its `from`."""
    origin = {"from": members.pop("origin")} if "origin" in members else {}
    return {"op": name, "path": path, **origin, **members}


@rule("S2", "An object is a merge patch: null removes a member.", "broadcaster", writes=True)
def merge_patch(at: Deployment) -> None:
    seen = patched(
        at, {"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}, {"a": None, "b": {"c": 4}, "e": [2], "f": {"g": None}}
    )
    expect("the store", {"b": {"c": 4, "d": 3}, "e": [2], "f": {}}, seen)


@rule("S2", "An array is a JSON Patch: add, remove, replace, move, copy, test.", "broadcaster", writes=True)
def json_patch(at: Deployment) -> None:
    for before, patch, after in (
        ({"a": [1]}, [op("add", "/a/-", value=2), op("add", "/a/0", value=0)], {"a": [0, 1, 2]}),
        ({"a": 1, "b": 2}, [op("remove", "/a"), op("replace", "/b", value=[3])], {"b": [3]}),
        ({"a": {"b": 1}, "c": {}}, [op("move", "/c/d", origin="/a/b")], {"a": {}, "c": {"d": 1}}),
        (
            {"a": {"b": 1}},
            [op("copy", "/c", origin="/a"), op("add", "/c/d", value=2)],
            {"a": {"b": 1}, "c": {"b": 1, "d": 2}},
        ),
        ({"a/b": 1, "m~n": 2}, [op("test", "/a~1b", value=1), op("remove", "/m~0n")], {"a/b": 1}),
        ({"a": 1}, [op("add", "/a", value=None)], {"a": None}),
    ):
        expect(f"the store after {shown(patch)}", after, patched(at, before, patch))


@rule("S2", "`add` creates missing parent objects.", "broadcaster", writes=True)
def missing_parents(at: Deployment) -> None:
    seen = patched(at, {"a": 1}, [op("add", "/settings/color/hue", value=3)])
    expect("the store", {"a": 1, "settings": {"color": {"hue": 3}}}, seen)


@rule("S2", "A missing parent followed by a number or `-` is refused with 400.", "broadcaster", writes=True)
def missing_arrays(at: Deployment) -> None:
    for path in ("/new/0", "/new/-", "/new/0/a"):
        refused(at, {"a": 1}, [op("add", path, value=1)])


@rule("S2", "A patch applies completely or not at all.", "broadcaster", writes=True)
def atomic_patch(at: Deployment) -> None:
    for last in (
        op("remove", "/absent"),
        op("test", "/a", value=2),
        op("fly", "/a"),
        op("replace", "/absent", value=1),
    ):
        refused(at, {"a": 1}, [op("add", "/early", value=1), last])


@rule(
    "S2",
    "A patch that leaves no object, and one that is neither array nor object, is refused with 400.",
    "broadcaster",
    writes=True,
)
def patches_that_are_no_patch(at: Deployment) -> None:
    refused(at, {"a": 1}, [op("replace", "", value=[1])])
    for text in ("3", "null", '"text"'):
        reply = at.broadcaster.call("PATCH", STORE, content=text.encode())
        expect(f"the status of PATCH {text}", 400, reply.status)


@rule("S2", "A JSON Patch has at most 1,000 operations.", "broadcaster", writes=True)
def number_of_operations(at: Deployment) -> None:
    patched(at, {"a": 1}, [op("test", "/a", value=1)] * 1_000)
    reply = at.broadcaster.patch(STORE, [op("test", "/a", value=1)] * 1_001)
    expect("the status of a patch with 1,001 operations", 400, reply.status)
