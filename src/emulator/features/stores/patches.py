"""Applies JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396) to a store. Pure.

One leniency, because published clients rely on it: `add` creates missing parent objects (ruling S2).
"""

from __future__ import annotations

import re
from typing import Any

import json_merge_patch
import jsonpatch
from jsonpointer import JsonPointerException

from emulator.errors import BadRequest
from emulator.features.stores.rules import MAX_BYTES
from emulator.wire import json_codec

_MAX_COPIED_BYTES = 4 * MAX_BYTES
"""The limit for all `copy` operations of one patch. Without it, a small patch could take minutes."""

_PATCH_ERRORS = (jsonpatch.JsonPatchException, JsonPointerException, TypeError, ValueError, KeyError, IndexError)


class _AddWithParents(jsonpatch.AddOperation):
    """`add` that creates missing parent objects."""

    def apply(self, obj: Any) -> Any:
        parent = obj
        for part in self.pointer.parts[:-1]:
            parent = parent.setdefault(part, {}) if isinstance(parent, dict) else self.pointer.walk(parent, part)
        return super().apply(obj)


def _limited_copy() -> type[jsonpatch.CopyOperation]:
    """Return a `copy` operation that limits what one patch copies in total."""
    remaining = _MAX_COPIED_BYTES

    class LimitedCopy(jsonpatch.CopyOperation):
        def apply(self, obj: Any) -> Any:
            nonlocal remaining
            remaining -= len(json_codec.encode(self.pointer_cls(self.operation["from"]).resolve(obj)))
            if remaining < 0:
                raise ValueError(f"a patch may copy at most {_MAX_COPIED_BYTES} bytes in total")
            return super().apply(obj)

    return LimitedCopy


_OPERATIONS = {**jsonpatch.JsonPatch.operations, "add": _AddWithParents, "add_intermediates": _AddWithParents}


class _Patch(jsonpatch.JsonPatch):
    def __init__(self, patch: list[Any]) -> None:
        # The library reads the operations during initialization.
        vars(self)["operations"] = {**_OPERATIONS, "copy": _limited_copy()}
        super().__init__(patch)


def apply_patch(document: dict[str, Any], patch: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """Return the document after a JSON Patch (array) or a merge patch (object). Raises `BadRequest`."""
    if isinstance(patch, dict):
        merged: dict[str, Any] = json_merge_patch.merge(document, patch)
        return merged
    try:
        result = _Patch(patch).apply(document, in_place=True)
    except _PATCH_ERRORS as error:
        raise BadRequest("Invalid patch", _describe(patch, error)) from None
    if not isinstance(result, dict):
        raise BadRequest("Invalid patch", "nothing was changed: a store must stay a JSON object")
    return result


def _describe(patch: list[Any], error: Exception) -> str:
    for index, operation in enumerate(patch):
        if not isinstance(operation, dict):
            return f"operation {index}: must be an object with op and path"
    # The library adds the Python types of values.
    text = re.sub(r" \(<class '\w+'>\)", "", str(error))
    return f"nothing was changed: {text[:200] or 'an operation failed'}"
