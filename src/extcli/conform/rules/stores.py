"""The rules of stores."""

from __future__ import annotations

from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, Unknown, expect, reads, shown, writes

KIB = 1024
CHANNEL = ("channel_state", "channel_config")
VIEWER = ("viewer_state", "extension_viewer_state")
EXTENSION = ("extension_state", "extension_config", "extension_hidden_state")


# JSON stores


@reads("S5")
def absent_json_store(at: Deployment) -> None:
    """A JSON store that was never written gets 404."""
    at.viewer.get("json_store", id=at.fresh("store"), status=404)


@writes("S5")
def json_store_of_an_id(at: Deployment) -> None:
    """A JSON store is an object (otherwise 400), one for each id of a channel; without `id`, the id is `default`."""
    at.broadcaster.post("json_store", {"d": 4})
    at.viewer.get("json_store", id="default").returns({"d": 4})
    one, two = at.fresh("store"), at.fresh("store")
    at.broadcaster.refuses("json_store", [], 3, None, "text", id=one)
    at.broadcaster.get("json_store", id=one, status=404)
    for store, document in ((one, {"a": 1}), (two, {"b": 2}), (one, {"c": 3})):
        at.broadcaster.post("json_store", document, id=store).returns({})
    for store, document in ((one, {"c": 3}), (two, {"b": 2})):
        at.viewer.get("json_store", id=store).returns(document)
    at.elsewhere().get("json_store", id=one, status=404)


@writes("S5")
def size_of_a_json_store(at: Deployment) -> None:
    """A JSON store of 2,048 bytes is accepted; one of 2,049 is refused with 400."""
    store, full = at.fresh("store"), "x" * (2 * KIB - len('{"a":""}'))
    at.broadcaster.post("json_store", {"a": full}, id=store)
    at.broadcaster.post("json_store", {"a": full + "x"}, id=store, status=400)
    expect("whether the store is unchanged", True, at.broadcaster.get("json_store", id=store).json == {"a": full})


@writes("S5")
def json_store_by_role(at: Deployment) -> None:
    """All channels read a JSON store `global…`; a broadcaster may not write it, and a viewer may write none: 403."""
    own, shared = at.fresh("store"), at.fresh("store", prefix="global-")
    for caller, store in ((at.viewer, own), (at.viewer, shared), (at.broadcaster, shared)):
        caller.post("json_store", {"a": 1}, id=store, status=403)
        at.viewer.get("json_store", id=store, status=404)
    store = at.fresh("store", prefix="global")
    at.admin.post("json_store", {"a": 1}, id=store)
    for caller in (at.viewer, at.elsewhere()):
        caller.get("json_store", id=store).returns({"a": 1})


# Patches


STORE = "channel_state"


def store_after_patch(at: Deployment, before: Any, patch: Any) -> Any:
    """Write a document, patch it as the broadcaster, and return what the store then has."""
    at.broadcaster.post(STORE, before)
    at.broadcaster.patch(STORE, patch)
    return at.broadcaster.get(STORE).json


def refuses_patch(at: Deployment, before: Any, patch: Any) -> None:
    """Raise `Differs` unless the patch is refused with 400 and the document stays as it was."""
    at.broadcaster.post(STORE, before)
    at.broadcaster.patch(STORE, patch, status=400)
    at.broadcaster.get(STORE).returns(before, f"the store after PATCH {shown(patch)}")


def operation(name: str, path: str, **members: Any) -> dict[str, Any]:
    """Return one operation, which may have more `members`."""
    return {"op": name, "path": path, **members}


@writes("S2")
def merge_patch(at: Deployment) -> None:
    """A patch that is an object is a merge patch: null removes a member."""
    before = {"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}
    after = store_after_patch(at, before, {"a": None, "b": {"c": 4}, "e": [2], "f": {"g": None}})
    expect("the store", {"b": {"c": 4, "d": 3}, "e": [2], "f": {}}, after)


@writes("S2")
def json_patch(at: Deployment) -> None:
    """A patch that is an array is a JSON Patch: add, remove, replace, move, copy, test."""
    for before, patch, after in (
        ({"a": [1]}, [operation("add", "/a/-", value=2), operation("add", "/a/0", value=0)], {"a": [0, 1, 2]}),
        ({"a": 1, "b": 2}, [operation("remove", "/a"), operation("replace", "/b", value=[3])], {"b": [3]}),
        ({"a": {"b": 1}, "c": {}}, [operation("move", "/c/d", **{"from": "/a/b"})], {"a": {}, "c": {"d": 1}}),
        (
            {"a": {"b": 1}},
            [operation("copy", "/c", **{"from": "/a"}), operation("add", "/c/d", value=2)],
            {"a": {"b": 1}, "c": {"b": 1, "d": 2}},
        ),
        ({"a/b": 1, "m~n": 2}, [operation("test", "/a~1b", value=1), operation("remove", "/m~0n")], {"a/b": 1}),
        ({"a": 1}, [operation("add", "/a", value=None)], {"a": None}),
    ):
        expect(f"the store after {shown(patch)}", after, store_after_patch(at, before, patch))


@writes("S2")
def missing_parents(at: Deployment) -> None:
    """`add` creates missing parent objects; if a number or `-` follows one in its path, it is refused with 400."""
    seen = store_after_patch(at, {"a": 1}, [operation("add", "/settings/color/hue", value=3)])
    expect("the store", {"a": 1, "settings": {"color": {"hue": 3}}}, seen)
    for path in ("/new/0", "/new/-", "/new/0/a"):
        refuses_patch(at, {"a": 1}, [operation("add", path, value=1)])


@writes("S2")
def atomic_patch(at: Deployment) -> None:
    """A patch applies completely or not at all."""
    for last in (
        operation("remove", "/absent"),
        operation("test", "/a", value=2),
        operation("fly", "/a"),
        operation("replace", "/absent", value=1),
    ):
        refuses_patch(at, {"a": 1}, [operation("add", "/early", value=1), last])


@writes("S2")
def patches_that_are_no_patch(at: Deployment) -> None:
    """A patch that leaves no object, and one that is neither array nor object, is refused with 400."""
    refuses_patch(at, {"a": 1}, [operation("replace", "", value=[1])])
    at.broadcaster.refuses(STORE, 3, None, True, "text", "3", method="PATCH")


@writes("S2")
def number_of_operations(at: Deployment) -> None:
    """A JSON Patch has at most 1,000 operations."""
    store_after_patch(at, {"a": 1}, [operation("test", "/a", value=1)] * 1_000)
    at.broadcaster.patch(STORE, [operation("test", "/a", value=1)] * 1_001, status=400)


# State and config


@reads("S2")
def unwritten_stores(at: Deployment) -> None:
    """A store that was never written is {}."""
    for store in (*CHANNEL, *VIEWER):
        at.caller("admin", at.user).get(store).returns({})


@reads("S3")
def stores_read_together(at: Deployment) -> None:
    """`all_state` has four members and `all_config` two, all of them objects."""
    for path, names in (
        ("all_state", ["channel", "extension", "extension_viewer", "viewer"]),
        ("all_config", ["channel", "extension"]),
    ):
        stores = at.viewer.get(path).json
        expect(f"the members of {path}", names, sorted(stores))
        objects = [name for name in names if isinstance(stores[name], dict)]
        expect(f"the members of {path} that are objects", names, objects)


@reads("S1")
def stores_by_reader(at: Deployment) -> None:
    """Everyone reads a channel's and the extension's stores; only admins and backends read the hidden one."""
    for store in (*CHANNEL, "extension_state", "extension_config"):
        at.check_readers(ROLES, store)
    at.check_readers(("admin", "backend"), "extension_hidden_state")


@writes("S1")
def stores_by_writer(at: Deployment) -> None:
    """A viewer may not write a channel's store, and a broadcaster may not write the extension's: 403."""
    # An empty merge patch changes nothing, should the service accept it.
    for store in (*CHANNEL, *EXTENSION):
        at.viewer.patch(store, {}, status=403)
    for store in EXTENSION:
        at.broadcaster.patch(store, {}, status=403)
    for store in CHANNEL:
        at.broadcaster.patch(store, {})


@writes("S2")
def replaced_stores(at: Deployment) -> None:
    """POST replaces the whole store, and returns {}; what is not an object is refused with 400 and changes nothing."""
    for caller, stores in ((at.broadcaster, (*CHANNEL, *VIEWER)), (at.viewer, VIEWER)):
        for store in stores:
            for document in ({"a": 1, "b": {"c": 2}}, {"d": [3, None, "é"]}):
                caller.post(store, document).returns({})
                caller.get(store).returns(document)
            caller.refuses(store, [], [{}], 3, None, True, "text", "3")
            caller.get(store).returns(document, f"{store} after refused documents")


@writes("S4")
def size_of_a_store(at: Deployment) -> None:
    """A store has at most 64 KiB of compact JSON after a write."""
    full = {"a": "x" * (64 * KIB - len('{"a":""}'))}
    at.broadcaster.post("channel_state", full)
    at.broadcaster.patch("channel_state", {"b": 1}, status=400)
    expect("whether the store is unchanged", True, at.broadcaster.get("channel_state").json == full)


@writes("S1")
def stores_of_a_viewer(at: Deployment) -> None:
    """A viewer's stores belong to one viewer."""
    other, elsewhere = at.stranger(), at.elsewhere()
    for store, shared in (("viewer_state", {}), ("extension_viewer_state", {"a": 1})):
        at.viewer.post(store, {"a": 1})
        other.get(store).returns({}, f"{store} of another viewer")
        elsewhere.get(store).returns(shared, f"{store} of the same viewer in another channel")


@writes("spec: Resources")
def stores_of_a_channel(at: Deployment) -> None:
    """A channel's stores belong to one channel, for all its callers."""
    elsewhere = at.elsewhere()
    for store in CHANNEL:
        at.broadcaster.post(store, {"a": 1})
        at.viewer.get(store).returns({"a": 1}, f"{store} as a viewer reads it")
        elsewhere.get(store).returns({}, f"{store} in another channel")


@writes("S3")
def contents_of_stores_read_together(at: Deployment) -> None:
    """`all_state` and `all_config` have what the single stores have."""
    for caller, stores in ((at.broadcaster, CHANNEL), (at.viewer, VIEWER)):
        for store in stores:
            caller.post(store, {"from": store})
    states = {name: {"from": f"{name}_state"} for name in ("channel", "viewer", "extension_viewer")}
    at.viewer.get("all_state").has(**states)
    at.viewer.get("all_config").has(channel={"from": "channel_config"})


@reads("A4")
def stores_without_a_channel(at: Deployment) -> None:
    """Without a channel, a channel's store is refused with 400 and is {} in `all_state` and `all_config`."""
    backend = at.extension_backend
    for store in ("channel_state", "channel_config", "viewer_state"):
        backend.get(store, status=400)
    backend.get("all_state").has(channel={}, viewer={}, extension_viewer={})
    backend.get("all_config").has(channel={})


@writes("A4")
def stores_of_a_chosen_channel(at: Deployment) -> None:
    """Admins and backends choose a channel with `channel_id`; a broadcaster writes to their own."""
    for role in ("admin", "backend"):
        at.caller(role, channel=None).post("channel_state", {"by": role}, channel_id=at.channel)
        at.broadcaster.get("channel_state").returns({"by": role}, f"the store that the {role} wrote")
    other = at.fresh("channel")
    at.broadcaster.post("channel_state", {"by": "owner"}, channel_id=other)
    at.broadcaster.get("channel_state").returns({"by": "owner"}, "the store of the broadcaster's channel")
    at.admin.get("channel_state", channel_id=other).returns({}, "the store of the channel in `channel_id`")


@reads("S1")
def many_users_by_role(at: Deployment) -> None:
    """Only an admin reads the records of many users, and only up to 1,000."""
    ids = [f"{at.user}{number}" for number in range(1_001)]
    for store in VIEWER:
        for caller in (at.viewer, at.broadcaster, at.backend):
            caller.get(store, user_ids=at.user, status=403)
        at.admin.get(store, user_ids=at.user)
        at.admin.get(store, user_ids=",".join(ids[:1_000])).returns({}, f"the records of users without {store}")
        at.admin.get(store, user_ids=",".join(ids), status=400)


@writes("S1")
def records_of_many_users(at: Deployment) -> None:
    """An admin patches many users with a map and reads them with `user_ids`; a backend reads one with `userID`."""
    one, two = at.user, at.fresh("user")
    for store in VIEWER:
        for user in (one, two):
            at.caller("viewer", user).post(store, {"kept": 1})
        at.admin.patch(store, {one: {"a": 1}, two: [{"op": "add", "path": "/b", "value": 2}]})
        records = {one: {"kept": 1, "a": 1}, two: {"kept": 1, "b": 2}}
        at.admin.get(store, user_ids=f"{one},{two}").returns(records, f"{store} of both users")
        at.backend.get(store, userID=two).returns(records[two], f"{store} of one user")
        at.admin.patch(store, {one: {"a": 9}, two: [{"op": "remove", "path": "/absent"}]}, status=400)
        at.admin.get(store, user_ids=f"{one},{two}").returns(records, f"{store} of both users afterwards")


@writes("S6", "sandbox")
def stores_of_all_extensions(at: Deployment) -> None:
    """All extensions of a channel share its channel stores."""
    at.broadcaster.post("channel_state", {"a": 1})
    read = at.caller("broadcaster", client_id=at.fresh("client")).get("channel_state").json
    if read == {}:
        raise Unknown("the channel state that another extension reads", {"a": 1}, "{}: they are separate")
    expect("the channel state that another extension reads", {"a": 1}, read)


@writes("S2", "extension")
def stores_of_the_extension(at: Deployment) -> None:
    """The extension's stores are replaced and patched, and read in every channel."""
    backend, viewer = at.extension_backend, at.elsewhere()
    for store in EXTENSION:
        backend.post(store, {"former": 0})
        backend.post(store, {"a": 1, "b": 2})
        backend.patch(store, {"b": None, "c": 3}).returns({})
        backend.get(store).returns({"a": 1, "c": 3}, f"{store} afterwards")
    viewer.get("all_config").has(extension={"a": 1, "c": 3})
    state = viewer.get("all_state")
    state.has(extension={"a": 1, "c": 3})
    expect("whether all_state has the hidden store", False, "hidden" in str(sorted(state.json)))
