"""The rules of stores."""

from __future__ import annotations

from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, Unknown, expect, rule, shown

KIB = 1024


@rule("S5", "viewer")
def absent_json_store(at: Deployment) -> None:
    """A JSON store that was never written gets 404."""
    expect("the status", 404, at.viewer.get("json_store", id=at.fresh("store")).status)


@rule("S5", "viewer", "broadcaster", writes=True)
def json_store_of_an_id(at: Deployment) -> None:
    """A JSON store holds one object for each id of a channel; without `id`, the id is `default`."""
    at.broadcaster.post("json_store", {"d": 4}).check()
    expect("the store `default`", {"d": 4}, at.viewer.get("json_store", id="default").data)
    one, two = at.fresh("store"), at.fresh("store")
    for store, document in ((one, {"a": 1}), (two, {"b": 2}), (one, {"c": 3})):
        expect("the response to POST", {}, at.broadcaster.post("json_store", document, id=store).data)
    for store, document in ((one, {"c": 3}), (two, {"b": 2})):
        expect("the store as a viewer reads it", document, at.viewer.get("json_store", id=store).data)
    elsewhere = at.caller("viewer", channel=at.fresh("channel")).get("json_store", id=one)
    expect("the status in another channel", 404, elsewhere.status)


@rule("S5", "broadcaster", writes=True)
def size_of_a_json_store(at: Deployment) -> None:
    """A JSON store of 2,048 bytes is accepted; one of 2,049 is refused with 400."""
    store, full = at.fresh("store"), "x" * (2 * KIB - len('{"a":""}'))
    for text, status in ((full, 200), (full + "x", 400)):
        reply = at.broadcaster.post("json_store", {"a": text}, id=store)
        expect(f"the status with {len(text) + 8} bytes", status, reply.status)
    expect("whether the store has the first", True, at.broadcaster.get("json_store", id=store).data == {"a": full})


@rule("S5", "broadcaster", writes=True)
def json_store_that_is_no_object(at: Deployment) -> None:
    """A JSON store that is not an object is refused with 400."""
    store = at.fresh("store")
    for text in ("[]", "3", "null", '"text"'):
        reply = at.broadcaster.call("POST", "json_store", content=text.encode(), id=store)
        expect(f"the status of POST {text}", 400, reply.status)
    expect("the status of the store afterwards", 404, at.broadcaster.get("json_store", id=store).status)


@rule("S5", "viewer", "broadcaster", writes=True)
def json_store_by_role(at: Deployment) -> None:
    """A viewer may not write a JSON store, and a broadcaster may not write one of all channels: 403."""
    own, shared = at.fresh("store"), at.fresh("store", prefix="global-")
    for caller, store in ((at.viewer, own), (at.viewer, shared), (at.broadcaster, shared)):
        reply = caller.post("json_store", {"a": 1}, id=store)
        expect(f"the status for role {caller.role}, store {store}", 403, reply.status)
        expect("the status of the store afterwards", 404, at.viewer.get("json_store", id=store).status)


@rule("S5", "viewer", "admin", writes=True)
def json_store_of_all_channels(at: Deployment) -> None:
    """All channels read a JSON store whose id begins with `global`."""
    store = at.fresh("store", prefix="global")
    at.admin.post("json_store", {"a": 1}, id=store).check()
    for channel in (at.channel, at.fresh("channel")):
        read = at.caller("viewer", channel=channel).get("json_store", id=store).data
        expect("the store as a viewer of another channel reads it", {"a": 1}, read)


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


@rule("S2", "broadcaster", writes=True)
def merge_patch(at: Deployment) -> None:
    """An object is a merge patch: null removes a member."""
    seen = patched(
        at, {"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}, {"a": None, "b": {"c": 4}, "e": [2], "f": {"g": None}}
    )
    expect("the store", {"b": {"c": 4, "d": 3}, "e": [2], "f": {}}, seen)


@rule("S2", "broadcaster", writes=True)
def json_patch(at: Deployment) -> None:
    """An array is a JSON Patch: add, remove, replace, move, copy, test."""
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


@rule("S2", "broadcaster", writes=True)
def missing_parents(at: Deployment) -> None:
    """`add` creates missing parent objects."""
    seen = patched(at, {"a": 1}, [op("add", "/settings/color/hue", value=3)])
    expect("the store", {"a": 1, "settings": {"color": {"hue": 3}}}, seen)


@rule("S2", "broadcaster", writes=True)
def missing_arrays(at: Deployment) -> None:
    """A missing parent followed by a number or `-` is refused with 400."""
    for path in ("/new/0", "/new/-", "/new/0/a"):
        refused(at, {"a": 1}, [op("add", path, value=1)])


@rule("S2", "broadcaster", writes=True)
def atomic_patch(at: Deployment) -> None:
    """A patch applies completely or not at all."""
    for last in (
        op("remove", "/absent"),
        op("test", "/a", value=2),
        op("fly", "/a"),
        op("replace", "/absent", value=1),
    ):
        refused(at, {"a": 1}, [op("add", "/early", value=1), last])


@rule("S2", "broadcaster", writes=True)
def patches_that_are_no_patch(at: Deployment) -> None:
    """A patch that leaves no object, and one that is neither array nor object, is refused with 400."""
    refused(at, {"a": 1}, [op("replace", "", value=[1])])
    for text in ("3", "null", "true", '"text"', '"3"'):
        reply = at.broadcaster.call("PATCH", STORE, content=text.encode())
        expect(f"the status of PATCH {text}", 400, reply.status)


@rule("S2", "broadcaster", writes=True)
def number_of_operations(at: Deployment) -> None:
    """A JSON Patch has at most 1,000 operations."""
    patched(at, {"a": 1}, [op("test", "/a", value=1)] * 1_000)
    reply = at.broadcaster.patch(STORE, [op("test", "/a", value=1)] * 1_001)
    expect("the status of a patch with 1,001 operations", 400, reply.status)


CHANNEL = ("channel_state", "channel_config")
VIEWER = ("viewer_state", "extension_viewer_state")
EXTENSION = ("extension_state", "extension_config", "extension_hidden_state")


@rule("S2", "admin")
def unwritten_stores(at: Deployment) -> None:
    """A store that was never written is {}."""
    for store in (*CHANNEL, *VIEWER):
        reply = at.caller("admin", at.user).get(store)
        expect(f"status and body of {store}", [200, {}], [reply.status, reply.json])


@rule("S3", "viewer")
def stores_read_together(at: Deployment) -> None:
    """`all_state` has four members and `all_config` two, all of them objects."""
    for path, names in (
        ("all_state", ["channel", "extension", "extension_viewer", "viewer"]),
        ("all_config", ["channel", "extension"]),
    ):
        stores = at.viewer.get(path).data
        expect(f"the members of {path}", names, sorted(stores))
        kinds = {name: isinstance(stores[name], dict) for name in names}
        expect(f"which members of {path} are objects", dict.fromkeys(names, True), kinds)


@rule("S1", *ROLES)
def stores_by_reader(at: Deployment) -> None:
    """Everyone reads a channel's and the extension's stores; only admins and backends read the hidden one."""
    for role in ROLES:
        caller = at.caller(role)
        for store in (*CHANNEL, "extension_state", "extension_config"):
            expect(f"the status of GET {store} for role {role}", 200, caller.get(store).status)
        hidden = 200 if role in ("admin", "backend") else 403
        expect(f"the status of the hidden store for role {role}", hidden, caller.get("extension_hidden_state").status)


@rule("S1", "viewer", "broadcaster", writes=True)
def stores_by_writer(at: Deployment) -> None:
    """A viewer may not write a channel's store, and a broadcaster may not write the extension's: 403."""
    refused = [(at.viewer, store) for store in (*CHANNEL, *EXTENSION)] + [(at.broadcaster, name) for name in EXTENSION]
    for caller, store in refused:
        # An empty merge patch changes nothing, should the service accept it.
        expect(f"the status of PATCH {store} for role {caller.role}", 403, caller.patch(store, {}).status)
    for store in CHANNEL:
        expect(f"the status of PATCH {store} for a broadcaster", 200, at.broadcaster.patch(store, {}).status)


@rule("S2", "viewer", "broadcaster", writes=True)
def replaced_stores(at: Deployment) -> None:
    """POST replaces the whole store, and returns {}."""
    for caller, stores in ((at.broadcaster, CHANNEL), (at.viewer, VIEWER)):
        for store in stores:
            for document in ({"a": 1, "b": {"c": 2}}, {"d": [3, None, "é"]}):
                expect(f"the response to POST {store}", {}, caller.post(store, document).data)
                expect(f"{store} after POST", document, caller.get(store).data)


@rule("S2", "broadcaster", writes=True)
def documents_that_are_no_object(at: Deployment) -> None:
    """A document that is not an object is refused with 400 and changes nothing."""
    for store in (*CHANNEL, *VIEWER):
        at.broadcaster.post(store, {"a": 1}).check()
        for text in ("[]", "[{}]", "3", "null", "true", '"text"', '"3"'):
            reply = at.broadcaster.call("POST", store, content=text.encode())
            expect(f"the status of POST {store} with {text}", 400, reply.status)
        expect(f"{store} afterwards", {"a": 1}, at.broadcaster.get(store).data)


@rule("S4", "broadcaster", writes=True)
def size_of_a_store(at: Deployment) -> None:
    """A store has at most 64 KiB of compact JSON after a write."""
    full = {"a": "x" * (64 * KIB - len('{"a":""}'))}
    expect("the status of POST with 65,536 bytes", 200, at.broadcaster.post("channel_state", full).status)
    expect("the status of a PATCH that adds to it", 400, at.broadcaster.patch("channel_state", {"b": 1}).status)
    expect("whether the store is unchanged", True, at.broadcaster.get("channel_state").data == full)


@rule("S1", "viewer", writes=True)
def stores_of_a_viewer(at: Deployment) -> None:
    """A viewer's stores belong to one viewer."""
    other, elsewhere = at.caller("viewer", at.fresh("user")), at.caller("viewer", channel=at.fresh("channel"))
    for store, shared in (("viewer_state", False), ("extension_viewer_state", True)):
        at.viewer.post(store, {"a": 1}).check()
        expect(f"{store} of another viewer", {}, other.get(store).data)
        found = {"a": 1} if shared else {}
        expect(f"{store} of the same viewer in another channel", found, elsewhere.get(store).data)


@rule("spec: Resources", "viewer", "broadcaster", writes=True)
def stores_of_a_channel(at: Deployment) -> None:
    """A channel's stores belong to one channel, for all its callers."""
    elsewhere = at.caller("viewer", channel=at.fresh("channel"))
    for store in CHANNEL:
        at.broadcaster.post(store, {"a": 1}).check()
        expect(f"{store} as a viewer reads it", {"a": 1}, at.viewer.get(store).data)
        expect(f"{store} in another channel", {}, elsewhere.get(store).data)


@rule("S3", "viewer", "broadcaster", writes=True)
def contents_of_stores_read_together(at: Deployment) -> None:
    """`all_state` and `all_config` have what the single stores have."""
    for caller, stores in ((at.broadcaster, CHANNEL), (at.viewer, VIEWER)):
        for store in stores:
            caller.post(store, {"from": store}).check()
    state, config = at.viewer.get("all_state").data, at.viewer.get("all_config").data
    for name, stores in (("channel", state), ("viewer", state), ("extension_viewer", state)):
        expect(f"`{name}` of all_state", {"from": f"{name}_state"}, stores.get(name))
    expect("`channel` of all_config", {"from": "channel_config"}, config.get("channel"))


@rule("A4", "backend")
def stores_without_a_channel(at: Deployment) -> None:
    """Without a channel, a channel's store is refused with 400 and is {} in `all_state` and `all_config`."""
    backend = at.caller("backend", channel=None)
    for store in ("channel_state", "channel_config", "viewer_state"):
        expect(f"the status of {store}", 400, backend.get(store).status)
    states, config = backend.get("all_state").data, backend.get("all_config").data
    for name in ("channel", "viewer", "extension_viewer"):
        expect(f"`{name}` of all_state", {}, states.get(name))
    expect("`channel` of all_config", {}, config.get("channel"))


@rule("A4", "broadcaster", "admin", "backend", writes=True)
def stores_of_a_chosen_channel(at: Deployment) -> None:
    """Admins and backends choose a channel with `channel_id`; a broadcaster writes to their own."""
    for role in ("admin", "backend"):
        caller = at.caller(role, channel=None)
        caller.post("channel_state", {"by": role}, channel_id=at.channel).check()
        expect(f"the store that the {role} wrote", {"by": role}, at.broadcaster.get("channel_state").data)
    other = at.fresh("channel")
    at.broadcaster.post("channel_state", {"by": "owner"}, channel_id=other).check()
    expect("the store of the broadcaster's channel", {"by": "owner"}, at.broadcaster.get("channel_state").data)
    expect("the store of the channel named", {}, at.admin.get("channel_state", channel_id=other).data)


@rule("S1", *ROLES)
def many_users_by_role(at: Deployment) -> None:
    """Only an admin reads the records of many users, and only up to 1,000."""
    ids = ",".join(f"{at.user}{number}" for number in range(1_001))
    thousand = ids.rpartition(",")[0]
    for store in VIEWER:
        for role, status in (("viewer", 403), ("broadcaster", 403), ("backend", 403), ("admin", 200)):
            reply = at.caller(role).get(store, user_ids=at.user)
            expect(f"the status of {store}?user_ids= for role {role}", status, reply.status)
        expect(f"the records of users without {store}", {}, at.admin.get(store, user_ids=thousand).data)
        expect("the status with 1,001 users", 400, at.admin.get(store, user_ids=ids).status)


@rule("S1", "viewer", "admin", "backend", writes=True)
def records_of_many_users(at: Deployment) -> None:
    """An admin patches many users with a map and reads them with `user_ids`; a backend reads one with `userID`."""
    one, two = at.user, at.fresh("user")
    for store in VIEWER:
        for user in (one, two):
            at.caller("viewer", user).post(store, {"kept": 1}).check()
        at.admin.patch(store, {one: {"a": 1}, two: [{"op": "add", "path": "/b", "value": 2}]}).check()
        records = {one: {"kept": 1, "a": 1}, two: {"kept": 1, "b": 2}}
        expect(f"{store} of both users", records, at.admin.get(store, user_ids=f"{one},{two}").data)
        expect(f"{store} of one user", records[two], at.backend.get(store, userID=two).data)
        broken = at.admin.patch(store, {one: {"a": 9}, two: [{"op": "remove", "path": "/absent"}]})
        expect("the status of a map with a failing patch", 400, broken.status)
        expect(f"{store} of both users afterwards", records, at.admin.get(store, user_ids=f"{one},{two}").data)


@rule("S6", "broadcaster", writes=True, mode="sandbox")
def stores_of_all_extensions(at: Deployment) -> None:
    """All extensions of a channel share its channel stores."""
    at.broadcaster.post("channel_state", {"a": 1}).check()
    read = at.caller("broadcaster", client_id=at.fresh("client")).get("channel_state").data
    if read == {}:
        raise Unknown("the channel state that another extension reads", {"a": 1}, "{}: they are separate")
    expect("the channel state that another extension reads", {"a": 1}, read)


@rule("S2", "viewer", "backend", extension=True)
def stores_of_the_extension(at: Deployment) -> None:
    """The extension's stores are replaced and patched, and read in every channel."""
    backend = at.caller("backend", channel=None)
    for store in EXTENSION:
        backend.post(store, {"former": 0}).check()
        backend.post(store, {"a": 1, "b": 2}).check()
        expect(f"the response to PATCH {store}", {}, backend.patch(store, {"b": None, "c": 3}).data)
        expect(f"{store} afterwards", {"a": 1, "c": 3}, backend.get(store).data)
    viewer = at.caller("viewer", channel=at.fresh("channel"))
    state, config = viewer.get("all_state").data, viewer.get("all_config").data
    expect("`extension` of all_state", {"a": 1, "c": 3}, state.get("extension"))
    expect("`extension` of all_config", {"a": 1, "c": 3}, config.get("extension"))
    expect("whether all_state has the hidden store", False, "hidden" in str(sorted(state)))
