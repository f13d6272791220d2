"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396) on a store. Pure; the libraries do the work.

One leniency (ruling S2), because published clients rely on it: `add` creates missing parents, as objects.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import json_merge_patch
import jsonpatch
from jsonpointer import JsonPointerException

from emulator.errors import BadRequest
from emulator.features.stores.rules import LARGEST
from emulator.wire import json_codec

_MOST_COPIED = 4 * LARGEST
"""Bytes of JSON that the `copy` operations of one patch may copy in all, or a small patch could cost minutes."""

_REFUSED = (jsonpatch.JsonPatchException, JsonPointerException, TypeError, ValueError, KeyError, IndexError)


class _AddWithParents(jsonpatch.AddOperation):
    """`add`, with the objects on its path made where they are missing."""

    def apply(self, obj: Any) -> Any:
        at = obj
        for part in self.pointer.parts[:-1]:
            at = at.setdefault(part, {}) if isinstance(at, dict) else self.pointer.walk(at, part)
        return super().apply(obj)


class _Allowance:
    """How much the copies of one patch may still copy."""

    def __init__(self) -> None:
        self._left = _MOST_COPIED

    def take(self, value: Any) -> None:
        self._left -= len(json_codec.encode(value))
        if self._left < 0:
            raise ValueError(f"the copies of a patch may be {_MOST_COPIED} bytes in all")


class _CopyWithinBounds(jsonpatch.CopyOperation):
    """`copy`, as long as the patch has not copied too much."""

    def __init__(self, allowance: _Allowance, operation: Any, pointer_cls: Any) -> None:
        super().__init__(operation, pointer_cls)
        self._allowance = allowance

    def apply(self, obj: Any) -> Any:
        self._allowance.take(self.pointer_cls(self.operation["from"]).resolve(obj))
        return super().apply(obj)


_OPERATIONS = {**jsonpatch.JsonPatch.operations, "add": _AddWithParents, "add_intermediates": _AddWithParents}


class _Patch(jsonpatch.JsonPatch):
    """A patch with these operations, of which `copy` belongs to this very patch."""

    def __init__(self, patch: list[Any]) -> None:
        vars(self)["operations"] = {**_OPERATIONS, "copy": partial(_CopyWithinBounds, _Allowance())}
        super().__init__(patch)


def patched(document: dict[str, Any], patch: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """The document after an array of operations or a merge patch, all of it or nothing; `document` may be changed.

    Raises `BadRequest` for an operation that is malformed or fails, and for a result that is no object.
    """
    if isinstance(patch, dict):
        merged: dict[str, Any] = json_merge_patch.merge(document, patch)
        return merged
    try:
        result = _Patch(patch).apply(document, in_place=True)
    except _REFUSED as error:
        raise BadRequest("Invalid patch", _explained(patch, error)) from None
    if not isinstance(result, dict):
        raise BadRequest("Invalid patch", "the patch would make the store something else than an object")
    return result


def _explained(patch: list[Any], error: Exception) -> str:
    for index, operation in enumerate(patch):
        if not isinstance(operation, dict):
            return f"operation {index}: must be an object with op and path"
    # The library names Python's types beside the values.
    words = re.sub(r" \(<class '\w+'>\)", "", str(error))
    return f"nothing was changed: {words[:200] or 'an operation failed'}"
