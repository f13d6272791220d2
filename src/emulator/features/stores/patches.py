"""Applies JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396) to a store. Pure.

One leniency, because published clients rely on it: `add` creates missing parent objects (ruling S2).
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import json_merge_patch
import jsonpatch
from jsonpointer import JsonPointerException

from emulator.errors import BadRequest
from emulator.features.stores.rules import MAX_BYTES
from emulator.wire import json_codec

_MAX_COPIED_BYTES = 4 * MAX_BYTES
"""Compact JSON that all `copy` operations of one patch may copy. Without a limit, a small patch could take minutes."""

_PATCH_ERRORS = (jsonpatch.JsonPatchException, JsonPointerException, TypeError, ValueError, KeyError, IndexError)


class _AddWithParents(jsonpatch.AddOperation):
    """`add` that creates missing parent objects."""

    def apply(self, obj: Any) -> Any:
        parent = obj
        for part in self.pointer.parts[:-1]:
            parent = parent.setdefault(part, {}) if isinstance(parent, dict) else self.pointer.walk(parent, part)
        return super().apply(obj)


class _CopyBudget:
    """The bytes that a patch may still copy."""

    def __init__(self) -> None:
        self._remaining = _MAX_COPIED_BYTES

    def spend(self, value: Any) -> None:
        self._remaining -= len(json_codec.encode(value))
        if self._remaining < 0:
            raise ValueError(f"a patch may copy at most {_MAX_COPIED_BYTES} bytes in total")


class _LimitedCopy(jsonpatch.CopyOperation):
    """`copy` within the budget of its patch."""

    def __init__(self, budget: _CopyBudget, operation: Any, pointer_cls: Any) -> None:
        super().__init__(operation, pointer_cls)
        self._budget = budget

    def apply(self, obj: Any) -> Any:
        self._budget.spend(self.pointer_cls(self.operation["from"]).resolve(obj))
        return super().apply(obj)


_OPERATIONS = {**jsonpatch.JsonPatch.operations, "add": _AddWithParents, "add_intermediates": _AddWithParents}


class _Patch(jsonpatch.JsonPatch):
    def __init__(self, patch: list[Any]) -> None:
        # Set before the library reads it. Each patch has a copy budget of its own.
        vars(self)["operations"] = {**_OPERATIONS, "copy": partial(_LimitedCopy, _CopyBudget())}
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
