"""The model of config stores, state stores and the JSON store, with patches by their RFCs (rulings S1 to S6)."""

from __future__ import annotations

import copy
import json
import re
from itertools import pairwise
from typing import Any

from surface.calls import CHANNEL_WRITERS, DAY, EXTENSION_WRITERS, Call, Clock, Refused, only_servers_if
from surface.people import People

KIB = 1_024
ALL = ("viewer", "broadcaster", "admin", "backend")
STORES = {
    # readers, writers, and the parts of the key (S1, S6)
    "extension_state": (ALL, EXTENSION_WRITERS, "extension"),
    "channel_state": (ALL, CHANNEL_WRITERS, "channel"),
    "viewer_state": (ALL, ALL, "extension channel viewer"),
    "extension_viewer_state": (ALL, ALL, "extension viewer"),
    "extension_hidden_state": (EXTENSION_WRITERS, EXTENSION_WRITERS, "extension"),
    "extension_config": (ALL, EXTENSION_WRITERS, "extension"),
    "channel_config": (ALL, CHANNEL_WRITERS, "channel"),
}
LIFETIME = DAY
"""Of state and config in the sandbox (S4)."""
Key = tuple[str, ...]


def size(value: object) -> int:
    """The size as compact JSON, in bytes."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


class Stores:
    """The records of all stores, and when each expires."""

    def __init__(self, clock: Clock, people: People) -> None:
        self.clock, self.people = clock, people
        self.records: dict[Key, tuple[dict[str, Any], int]] = {}

    def expire(self) -> None:
        self.records = {key: record for key, record in self.records.items() if self.clock.now < record[1]}

    def expiries(self) -> list[int]:
        return [expires_at for _, expires_at in self.records.values()]

    def get_store(self, call: Call) -> dict[str, Any]:
        readers, _, scope = STORES[call.path]
        call.only(*readers)
        if "viewer" in scope and "user_ids" in call.query:
            call.only("admin")
            found = {user: self._read(self._key(call, viewer=user)) for user in call.query["user_ids"].split(",")}
            return {user: record for user, record in found.items() if record is not None}
        if "viewer" in scope and "userID" in call.query and call.caller.role == "backend":
            return self._read(self._key(call, viewer=call.query["userID"])) or {}
        return self._read(self._key(call)) or {}

    def post_store(self, call: Call) -> dict[str, Any]:
        call.only(*STORES[call.path][1])
        _check_size(call)
        key = self._key(call)
        if not isinstance(call.body, dict):
            raise Refused(400, "Invalid body")
        return self._write({key: call.body}, LIFETIME)

    def patch_store(self, call: Call) -> dict[str, Any]:
        call.only(*STORES[call.path][1])
        accepts_map = "viewer" in call.path or call.path == "channel_config"  # of up to 4 MiB, from an admin
        if call.caller.role != "admin" or not accepts_map:
            _check_size(call)
        if isinstance(call.body, list) or not self._is_map(call):
            _check_size(call, is_early=False)
            key = self._key(call)
            return self._write({key: patched(self._read(key) or {}, call.body)}, LIFETIME)
        if any(size(patch) > 64 * KIB for patch in call.body.values()):
            raise Refused(400, "Invalid patch")
        if len({self.people.opaque_id(call.caller.client_id, user) for user in call.body}) < len(call.body):
            raise Refused(400, "Invalid body")
        keys = {user: self._key(call, viewer=user) for user in call.body}
        written: dict[Key, Any] = {}
        for user, patch in call.body.items():
            written[keys[user]] = _fitting(patched(self._read(keys[user]) or {}, patch), 64 * KIB)
        return self._write(written, LIFETIME)

    def get_all_state(self, call: Call) -> dict[str, Any]:
        return self._all(call, "state", ("extension", "channel", "viewer", "extension_viewer"))

    def get_all_config(self, call: Call) -> dict[str, Any]:
        return self._all(call, "config", ("extension", "channel"))

    def get_json_store(self, call: Call) -> dict[str, Any]:
        record = self._read(self._json_key(call))
        if record is None:
            raise Refused(404, "Not Found")
        return record

    def post_json_store(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        _check_size(call)
        only_servers_if(call.id.startswith("global"), call)
        key = self._json_key(call)
        if not isinstance(call.body, dict):
            raise Refused(400, "Invalid body")
        return self._write({key: call.body}, 14 * DAY, largest=2 * KIB)

    def _all(self, call: Call, kind: str, names: tuple[str, ...]) -> dict[str, Any]:
        stores = {name: f"{name}_{kind}" for name in names}
        return {
            name: {} if _needs_channel(store) and not call.channel else self._read(self._key(call, store)) or {}
            for name, store in stores.items()
        }

    def _key(self, call: Call, store: str = "", viewer: str = "") -> Key:
        store = store or call.path
        if _needs_channel(store) and not call.channel:
            raise Refused(400, "Invalid channel")
        client_id = call.caller.client_id
        user = self.people.opaque_id(client_id, viewer) if viewer else call.caller.opaque_id
        parts = {"extension": client_id, "channel": call.channel, "viewer": user}
        return (store, *(str(parts[part]) for part in STORES[store][2].split()))

    def _json_key(self, call: Call) -> Key:
        if call.id.startswith("global"):
            return ("json_store", call.caller.client_id, call.id)
        if not call.channel:
            raise Refused(400, "Invalid channel")
        return ("json_store", call.caller.client_id, call.id, call.channel)

    def _is_map(self, call: Call) -> bool:
        """Whether the body is an admin's map of users to patches (S1)."""
        return (
            call.caller.role == "admin"
            and "viewer" in STORES[call.path][2]
            and bool(call.body)
            and all(_is_id(user) and isinstance(patch, dict | list) for user, patch in call.body.items())
        )

    def _read(self, key: Key) -> dict[str, Any] | None:
        return self.records[key][0] if key in self.records else None

    def _write(self, records: dict[Key, Any], lifetime: int, *, largest: int = 64 * KIB) -> dict[str, Any]:
        expires_at = self.clock.now + lifetime
        self.records |= {
            key: (_fitting(record, largest), max(expires_at, self.records[key][1] if key in self.records else 0))
            for key, record in records.items()
        }
        return {}


def _is_id(name: str) -> bool:
    return name[-1:].isdigit() or (name[:1] in ("U", "A") and any(character.isdigit() for character in name))


def _fitting(record: Any, largest: int) -> Any:
    if size(record) > largest:
        raise Refused(400, "Store too large")
    return record


def _check_size(call: Call, *, is_early: bool = True) -> None:
    """Refuse a body over 64 KiB (W8)."""
    if size(call.body) > 64 * KIB:
        raise Refused(413, is_early=is_early)


def _needs_channel(store: str) -> bool:
    return "channel" in STORES[store][2]


def patched(document: dict[str, Any], patch: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """The document after a Merge Patch (object) or an atomic JSON Patch (array) (S2)."""
    if isinstance(patch, dict):
        merged: dict[str, Any] = _merged(document, patch)
        return merged
    root = {"": copy.deepcopy(document)}  # makes the pointer "" an ordinary member
    for operation in patch:
        _apply(root, operation)
    if not isinstance(root.get(""), dict):
        raise _failed()
    return root[""]


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _apply(root: dict[str, Any], operation: dict[str, Any]) -> None:
    """RFC 6902, section 4."""
    name, path = operation["op"], operation["path"]
    match name:
        case "add" | "add_intermediates":
            _add(root, path, copy.deepcopy(operation["value"]), makes_parents=True)
        case "remove":
            if path == "":  # a store stays an object, also if a later operation would put one back
                raise _failed()
            _remove(root, path)
        case "replace":
            _found(root, path)
            parent, last = _parent(root, path)
            parent[_index(parent, last)] = copy.deepcopy(operation["value"])
        case "move":
            if path.startswith(operation["from"] + "/"):
                raise _failed()
            _add(root, path, _remove(root, operation["from"]))
        case "copy":
            _add(root, path, copy.deepcopy(_found(root, operation["from"])))
        case "test":
            if _canonical(_found(root, path)) != _canonical(operation["value"]):
                raise _failed()
        case _:
            raise _failed()


def _parts(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise _failed()
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]


def _index(container: Any, part: str) -> Any:
    """The existing member or position that a part of a pointer names."""
    if isinstance(container, dict) and part in container:
        return part
    if isinstance(container, list) and re.fullmatch("0|[1-9][0-9]*", part) and int(part) < len(container):
        return int(part)
    raise _failed()


def _found(root: Any, pointer: str) -> Any:
    at = root
    for part in _parts(pointer):
        at = at[_index(at, part)]
    return at


def _parent(root: Any, pointer: str, *, makes: bool = False) -> tuple[Any, str]:
    *parents, last = _parts(pointer)
    at = root
    for part, below in pairwise((*parents, last)):
        if makes and isinstance(at, dict) and part not in at:
            if re.fullmatch("-|[0-9]+", part) or re.fullmatch("-|[0-9]+", below):  # an array (S2)
                raise _failed()
            at[part] = {}
        at = at[_index(at, part)]
    return at, last


def _add(root: Any, pointer: str, value: Any, *, makes_parents: bool = False) -> None:
    parent, last = _parent(root, pointer, makes=makes_parents)
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list) and last in ("-", str(len(parent))):
        parent.append(value)
    else:
        index = _index(parent, last)
        parent.insert(index, value)


def _remove(root: Any, pointer: str) -> Any:
    value = _found(root, pointer)
    parent, last = _parent(root, pointer)
    del parent[_index(parent, last)]
    return value


def _canonical(value: object) -> str:
    """The same text for equal JSON."""
    return json.dumps(value, sort_keys=True)


def _failed() -> Refused:
    return Refused(400, "Invalid patch")
