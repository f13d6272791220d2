"""JSON stores: `json_store`."""

from __future__ import annotations

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule

KIB = 1024


@rule("S5", "A JSON store that was never written is 404.", "viewer")
def absent_json_store(at: Deployment) -> None:
    expect("the status", 404, at.viewer.get("json_store", id=at.fresh("store")).status)


@rule("S5", "A JSON store holds one object for each id of a channel.", "viewer", "broadcaster", writes=True)
def json_store_of_an_id(at: Deployment) -> None:
    one, two = at.fresh("store"), at.fresh("store")
    for store, document in ((one, {"a": 1}), (two, {"b": 2}), (one, {"c": 3})):
        expect("the answer to POST", {}, at.broadcaster.post("json_store", document, id=store).data)
    for store, document in ((one, {"c": 3}), (two, {"b": 2})):
        expect("the store as a viewer reads it", document, at.viewer.get("json_store", id=store).data)
    elsewhere = at.caller("viewer", channel=at.fresh("channel")).get("json_store", id=one)
    expect("the status in another channel", 404, elsewhere.status)


@rule("S5", "A JSON store of 2,048 bytes is accepted; one of 2,049 is refused with 400.", "broadcaster", writes=True)
def size_of_a_json_store(at: Deployment) -> None:
    store, full = at.fresh("store"), "x" * (2 * KIB - len('{"a":""}'))
    for text, status in ((full, 200), (full + "x", 400)):
        reply = at.broadcaster.post("json_store", {"a": text}, id=store)
        expect(f"the status with {len(text) + 8} bytes", status, reply.status)
    expect("whether the store has the first", True, at.broadcaster.get("json_store", id=store).data == {"a": full})


@rule("S5", "A JSON store that is not an object is refused with 400.", "broadcaster", writes=True)
def json_store_that_is_no_object(at: Deployment) -> None:
    store = at.fresh("store")
    for text in ("[]", "3", "null", '"text"'):
        reply = at.broadcaster.call("POST", "json_store", content=text.encode(), id=store)
        expect(f"the status of POST {text}", 400, reply.status)
    expect("the status of the store afterwards", 404, at.broadcaster.get("json_store", id=store).status)


@rule(
    "S5",
    "A viewer may not write a JSON store, nor a broadcaster one of all channels: 403.",
    "viewer",
    "broadcaster",
    writes=True,
)
def json_store_by_role(at: Deployment) -> None:
    own, shared = at.fresh("store"), at.fresh("store", prefix="global-")
    for caller, store in ((at.viewer, own), (at.viewer, shared), (at.broadcaster, shared)):
        reply = caller.post("json_store", {"a": 1}, id=store)
        expect(f"the status for role {caller.role}, store {store}", 403, reply.status)
        expect("the status of the store afterwards", 404, at.viewer.get("json_store", id=store).status)


@rule("S5", "All channels read a JSON store whose id begins with `global`.", "viewer", "admin", writes=True)
def json_store_of_all_channels(at: Deployment) -> None:
    store = at.fresh("store", prefix="global")
    at.admin.post("json_store", {"a": 1}, id=store).check()
    for channel in (at.channel, at.fresh("channel")):
        read = at.caller("viewer", channel=channel).get("json_store", id=store).data
        expect("the store as a viewer of another channel reads it", {"a": 1}, read)
