"""State and config stores: reading, replacing, sizes, and who may write."""

from __future__ import annotations

from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, Unknown, expect, rule

CHANNEL = ("channel_state", "channel_config")
VIEWER = ("viewer_state", "extension_viewer_state")
EXTENSION = ("extension_state", "extension_config", "extension_hidden_state")
KIB = 1024


@rule("S2", "A store that was never written is {}.", "admin")
def unwritten_stores(at: Deployment) -> None:
    for store in (*CHANNEL, *VIEWER):
        reply = at.caller("admin", at.user).get(store)
        expect(f"status and body of {store}", [200, {}], [reply.status, reply.json])


@rule("S3", "`all_state` has four members and `all_config` two, all of them objects.", "viewer")
def stores_read_together(at: Deployment) -> None:
    for path, names in (
        ("all_state", ["channel", "extension", "extension_viewer", "viewer"]),
        ("all_config", ["channel", "extension"]),
    ):
        stores = at.viewer.get(path).data
        expect(f"the members of {path}", names, sorted(stores))
        kinds = {name: isinstance(stores[name], dict) for name in names}
        expect(f"which members of {path} are objects", dict.fromkeys(names, True), kinds)


@rule(
    "S1", "Everyone reads a channel's and the extension's stores; only admins and backends read the hidden one.", *ROLES
)
def stores_by_reader(at: Deployment) -> None:
    for role in ROLES:
        caller = at.caller(role)
        for store in (*CHANNEL, "extension_state", "extension_config"):
            expect(f"the status of GET {store} for role {role}", 200, caller.get(store).status)
        hidden = 200 if role in ("admin", "backend") else 403
        expect(f"the status of the hidden store for role {role}", hidden, caller.get("extension_hidden_state").status)


@rule(
    "S1",
    "A viewer may not write a channel's store, nor a broadcaster one of the extension: 403.",
    "viewer",
    "broadcaster",
    writes=True,
)
def stores_by_writer(at: Deployment) -> None:
    refused = [(at.viewer, store) for store in (*CHANNEL, *EXTENSION)] + [(at.broadcaster, name) for name in EXTENSION]
    for caller, store in refused:
        # An empty merge patch changes nothing, should the service accept it.
        expect(f"the status of PATCH {store} for role {caller.role}", 403, caller.patch(store, {}).status)
    for store in CHANNEL:
        expect(f"the status of PATCH {store} for a broadcaster", 200, at.broadcaster.patch(store, {}).status)


@rule("S2", "POST replaces the whole store, and answers {}.", "viewer", "broadcaster", writes=True)
def replaced_stores(at: Deployment) -> None:
    for caller, stores in ((at.broadcaster, CHANNEL), (at.viewer, VIEWER)):
        for store in stores:
            for document in ({"a": 1, "b": {"c": 2}}, {"d": [3, None, "é"]}):
                expect(f"the answer to POST {store}", {}, caller.post(store, document).data)
                expect(f"{store} after POST", document, caller.get(store).data)


@rule("S2", "A document that is not an object is refused with 400 and changes nothing.", "broadcaster", writes=True)
def documents_that_are_no_object(at: Deployment) -> None:
    at.broadcaster.post("channel_state", {"a": 1}).check()
    for text in ("[]", "3", "null", "true", '"text"'):
        reply = at.broadcaster.call("POST", "channel_state", content=text.encode())
        expect(f"the status of POST {text}", 400, reply.status)
    expect("the store afterwards", {"a": 1}, at.broadcaster.get("channel_state").data)


@rule("S4", "A store has at most 64 KiB of compact JSON after a write.", "broadcaster", writes=True)
def size_of_a_store(at: Deployment) -> None:
    full = {"a": "x" * (64 * KIB - len('{"a":""}'))}
    expect("the status of POST with 65,536 bytes", 200, at.broadcaster.post("channel_state", full).status)
    expect("the status of a PATCH that adds to it", 400, at.broadcaster.patch("channel_state", {"b": 1}).status)
    expect("whether the store is unchanged", True, at.broadcaster.get("channel_state").data == full)


@rule("S1", "A viewer's stores belong to one viewer.", "viewer", writes=True)
def stores_of_a_viewer(at: Deployment) -> None:
    other, elsewhere = at.caller("viewer", at.fresh("user")), at.caller("viewer", channel=at.fresh("channel"))
    for store, shared in (("viewer_state", False), ("extension_viewer_state", True)):
        at.viewer.post(store, {"a": 1}).check()
        expect(f"{store} of another viewer", {}, other.get(store).data)
        found = {"a": 1} if shared else {}
        expect(f"{store} of the same viewer in another channel", found, elsewhere.get(store).data)


@rule(
    "spec: Resources",
    "A channel's stores belong to one channel, for all its callers.",
    "viewer",
    "broadcaster",
    writes=True,
)
def stores_of_a_channel(at: Deployment) -> None:
    elsewhere = at.caller("viewer", channel=at.fresh("channel"))
    for store in CHANNEL:
        at.broadcaster.post(store, {"a": 1}).check()
        expect(f"{store} as a viewer reads it", {"a": 1}, at.viewer.get(store).data)
        expect(f"{store} in another channel", {}, elsewhere.get(store).data)


@rule("S3", "`all_state` and `all_config` have what the single stores have.", "viewer", "broadcaster", writes=True)
def contents_of_stores_read_together(at: Deployment) -> None:
    for caller, stores in ((at.broadcaster, CHANNEL), (at.viewer, VIEWER)):
        for store in stores:
            caller.post(store, {"from": store}).check()
    state, config = at.viewer.get("all_state").data, at.viewer.get("all_config").data
    for name, stores in (("channel", state), ("viewer", state), ("extension_viewer", state)):
        expect(f"`{name}` of all_state", {"from": f"{name}_state"}, stores.get(name))
    expect("`channel` of all_config", {"from": "channel_config"}, config.get("channel"))


@rule("A4", "Without a channel, a channel's store is refused with 400 and is {} in `all_state`.", "backend")
def stores_without_a_channel(at: Deployment) -> None:
    backend = at.caller("backend", channel=None)
    for store in ("channel_state", "channel_config", "viewer_state"):
        expect(f"the status of {store}", 400, backend.get(store).status)
    expect("`channel` of all_state", {}, backend.get("all_state").data.get("channel"))


@rule(
    "A4",
    "Admins and backends choose a channel with `channel_id`; a broadcaster writes to their own.",
    "broadcaster",
    "admin",
    "backend",
    writes=True,
)
def stores_of_a_chosen_channel(at: Deployment) -> None:
    for role in ("admin", "backend"):
        caller = at.caller(role, channel=None)
        caller.post("channel_state", {"by": role}, channel_id=at.channel).check()
        expect(f"the store that the {role} wrote", {"by": role}, at.broadcaster.get("channel_state").data)
    other = at.fresh("channel")
    at.broadcaster.post("channel_state", {"by": "owner"}, channel_id=other).check()
    expect("the store of the broadcaster's channel", {"by": "owner"}, at.broadcaster.get("channel_state").data)
    expect("the store of the channel named", {}, at.admin.get("channel_state", channel_id=other).data)


@rule("S1", "Only an admin reads the records of many users, and only up to 1,000.", *ROLES)
def many_users_by_role(at: Deployment) -> None:
    ids = ",".join(f"{at.user}{number}" for number in range(1_001))
    thousand = ids.rpartition(",")[0]
    for store in VIEWER:
        for role, status in (("viewer", 403), ("broadcaster", 403), ("backend", 403), ("admin", 200)):
            reply = at.caller(role).get(store, user_ids=at.user)
            expect(f"the status of {store}?user_ids= for role {role}", status, reply.status)
        expect(f"the records of users without {store}", {}, at.admin.get(store, user_ids=thousand).data)
        expect("the status with 1,001 users", 400, at.admin.get(store, user_ids=ids).status)


@rule(
    "S1",
    "An admin patches many users with a map and reads them with `user_ids`; a backend reads one with `userID`.",
    "viewer",
    "admin",
    "backend",
    writes=True,
)
def records_of_many_users(at: Deployment) -> None:
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


@rule("S6", "All extensions of a channel share its channel stores.", "broadcaster", writes=True, mode="sandbox")
def stores_of_all_extensions(at: Deployment) -> None:
    at.broadcaster.post("channel_state", {"a": 1}).check()
    read = at.caller("broadcaster", client_id=at.fresh("client")).get("channel_state").data
    if read == {}:
        raise Unknown("the channel state that another extension reads", {"a": 1}, "{}: they are separate")
    expect("the channel state that another extension reads", {"a": 1}, read)


@rule(
    "S2",
    "The extension's stores are replaced and patched, and read in every channel.",
    "viewer",
    "backend",
    extension=True,
)
def stores_of_the_extension(at: Deployment) -> None:
    backend = at.caller("backend", channel=None)
    for store in EXTENSION:
        backend.post(store, {"a": 1, "b": 2}).check()
        expect(f"the answer to PATCH {store}", {}, backend.patch(store, {"b": None, "c": 3}).data)
        expect(f"{store} afterwards", {"a": 1, "c": 3}, backend.get(store).data)
    state = at.caller("viewer", channel=at.fresh("channel")).get("all_state").data
    expect("`extension` of all_state", {"a": 1, "c": 3}, state.get("extension"))
    expect("whether all_state has the hidden store", False, "hidden" in str(sorted(state)))
