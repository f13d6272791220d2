"""Applies JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396) to a store. No I/O.

One leniency, because published clients rely on it: `add` creates missing parent objects (ruling S2).
A patch is applied without a pause, so its operations and copies are limited: a few milliseconds at most.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from emulator.contract.kinds import are_equal_json
from emulator.contract.limits import MAX_STORE_BYTES
from emulator.core.wire import json_codec
from emulator.features.stores.rules import operation_fails, patch_replaces_store, too_many_operations

MAX_OPERATIONS = 1_000
"""Operations in one patch."""
MAX_COPIED_BYTES = MAX_STORE_BYTES
"""The limit for the JSON that all `copy` operations of one patch copy."""
_MAX_SEGMENTS = 500
"""Segments of a path. A document cannot be nested more deeply than Python's stack."""
_MAX_SHOWN_LENGTH = 60
"""Characters of a path in an error message."""
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test", "add_intermediates")
_INDEX_PATTERN = re.compile(r"0|[1-9][0-9]{0,8}")
_NUMBER_PATTERN = re.compile(r"[0-9]+")
_BAD_ESCAPE = re.compile(r"~(?![01])")

Document = dict[str, Any]


class _Failed(Exception):
    """Raised with the reason why an operation of a patch failed."""


def apply_patch(document: Document, patch: Document | list[Any]) -> Document:
    """Return the document after a JSON Patch (array) or a merge patch (object).

    Raises `BadRequest`. May modify the argument `document`, but never `patch`.
    """
    return _merge_patch(document, patch) if isinstance(patch, dict) else _PatchedDocument(document).apply(patch)


def _merge_patch(target: Any, patch: Document) -> Document:
    result: Document = target if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = _merge_patch(result.get(name), value)
        else:
            result[name] = _copy_value(value)
    return result


class _PatchedDocument:
    """One JSON Patch in progress."""

    def __init__(self, document: Document) -> None:
        self._top: Document = {"": document}
        """Holds the document as its member with the empty name, with which each path begins."""
        self._copied_bytes = 0

    def apply(self, patch: list[Any]) -> Document:
        if len(patch) > MAX_OPERATIONS:
            raise too_many_operations(count=len(patch), limit=MAX_OPERATIONS)
        for index, operation in enumerate(patch):
            try:
                if not isinstance(operation, dict):
                    raise _Failed("must be an object with op and path")
                self._perform(operation)
            except _Failed as failed:
                raise operation_fails(index=index, problem=str(failed)) from None
        document = self._top[""]
        if not isinstance(document, dict):
            raise patch_replaces_store()
        return document

    def _perform(self, operation: Document) -> None:
        op = operation.get("op")
        if op not in _OPERATIONS:
            raise _Failed(f"op: must be one of {', '.join(_OPERATIONS)}")
        path = _path_segments(operation, "path")
        match op:
            case "add" | "add_intermediates":
                self._add(path, _required_value(operation))
            case "remove":
                self._take_value(path)
            case "replace":
                value, parent = _required_value(operation), self._find(path[:-1])
                parent[_member_or_index(parent, path[-1])] = _copy_value(value)
            case "move":
                self._move(path, _path_segments(operation, "from"))
            case "copy":
                self._copy(path, _path_segments(operation, "from"))
            case "test":
                if not are_equal_json(_required_value(operation), self._find(path)):
                    raise _Failed(f"test failed: the value at {_shown_segment(operation['path'])} is different")

    def _add(self, path: list[str], value: Any) -> None:
        """Add a value; create missing parent objects."""
        parent, missing = self._top, False
        for segment in path[:-1]:
            if isinstance(parent, dict) and (missing or segment not in parent):
                missing = True
                _check_names_a_member(segment)
                parent[segment] = {}
            parent = parent[_member_or_index(parent, segment)]
        if missing:
            _check_names_a_member(path[-1])
        _insert_value(parent, path[-1], _copy_value(value))

    def _move(self, path: list[str], source: list[str]) -> None:
        if path == source:
            self._find(source)
            return
        if path[: len(source)] == source:
            raise _Failed("path: must not be inside the value to move")
        value = self._take_value(source)
        _insert_value(self._find(path[:-1]), path[-1], value)

    def _copy(self, path: list[str], source: list[str]) -> None:
        text = json_codec.encode(self._find(source))
        self._copied_bytes += len(text)
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise _Failed(f"a patch may copy at most {MAX_COPIED_BYTES} bytes of JSON")
        _insert_value(self._find(path[:-1]), path[-1], msgspec.json.decode(text))

    def _find(self, path: list[str]) -> Any:
        value: Any = self._top
        for segment in path:
            value = value[_member_or_index(value, segment)]
        return value

    def _take_value(self, path: list[str]) -> Any:
        """Remove the value at `path`, and return it."""
        if len(path) == 1:
            raise _Failed("the whole store cannot be removed")
        parent = self._find(path[:-1])
        place = _member_or_index(parent, path[-1])
        return parent.pop(place)


def _path_segments(operation: Document, member: str) -> list[str]:
    """Return the segments of a JSON pointer, of which the first is empty."""
    if member not in operation:
        raise _Failed(f"the member {member} is missing")
    pointer = operation[member]
    if not isinstance(pointer, str) or (pointer and pointer[0] != "/"):
        raise _Failed(f"{member}: must be a JSON pointer: empty, or text that starts with /")
    if pointer.count("/") > _MAX_SEGMENTS:
        raise _Failed(f"{member}: has over {_MAX_SEGMENTS} segments")
    if "~" not in pointer:
        return pointer.split("/")
    if _BAD_ESCAPE.search(pointer):
        raise _Failed(f"{member}: write ~0 for ~, and ~1 for / in a name")
    return [segment.replace("~1", "/").replace("~0", "~") for segment in pointer.split("/")]


def _required_value(operation: Document) -> Any:
    if "value" not in operation:
        raise _Failed("the member value is missing")
    return operation["value"]


def _member_or_index(parent: Any, segment: str, *, is_new: bool = False) -> Any:
    """Return the name of a member, or the index of an item. It must exist, unless it `is_new`."""
    if isinstance(parent, dict):
        if segment not in parent and not is_new:
            raise _Failed(f"{_shown_segment(segment)}: the object has no such member")
        return segment
    if not isinstance(parent, list):
        raise _Failed(f"{_shown_segment(segment)}: its parent is neither an object nor an array")
    if is_new and segment == "-":
        return len(parent)
    if not _INDEX_PATTERN.fullmatch(segment) or int(segment) >= len(parent) + is_new:
        raise _Failed(f"{_shown_segment(segment)}: the array has no such index")
    return int(segment)


def _insert_value(parent: Any, segment: str, value: Any) -> None:
    """Set a member of an object, or insert an item into an array."""
    place = _member_or_index(parent, segment, is_new=True)
    if isinstance(parent, list):
        parent.insert(place, value)
    else:
        parent[place] = value


def _check_names_a_member(segment: str) -> None:
    """Fail for a path segment that needs an array as parent, because `add` creates only objects."""
    if segment == "-" or _NUMBER_PATTERN.fullmatch(segment):
        raise _Failed(
            f"{_shown_segment(segment)}: needs an array, but add creates only missing objects; add the array first"
        )


def _copy_value(value: Any) -> Any:
    """Return a copy of a value, because later operations may change it."""
    return msgspec.json.decode(json_codec.encode(value)) if isinstance(value, dict | list) else value


def _shown_segment(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN_LENGTH else text[:_MAX_SHOWN_LENGTH] + "…")
