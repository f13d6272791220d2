"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396) on a store. Pure; the libraries do the work.

One leniency (ruling S2), because published clients rely on it: `add` creates missing parents, as objects.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import json_merge_patch
import jsonpatch
from jsonpointer import JsonPointerException

from emulator import wire
from emulator.errors import BadRequest

_LARGEST_ON_THE_WAY = 1 << 20
"""`copy` can double a document at each step: none may grow past this while a patch is applied."""

_REFUSED = (jsonpatch.JsonPatchException, JsonPointerException, TypeError, ValueError, KeyError, IndexError)


class _AddWithParents(jsonpatch.AddOperation):
    """`add`, with the objects on its path made where they are missing."""

    def apply(self, obj: Any) -> Any:
        at = obj
        for part in self.pointer.parts[:-1]:
            at = at.setdefault(part, {}) if isinstance(at, dict) else self.pointer.walk(at, part)
        return super().apply(obj)


class _CopyWithinBounds(jsonpatch.CopyOperation):
    """`copy`, as long as the document stays small enough to be handled."""

    def apply(self, obj: Any) -> Any:
        copied = super().apply(obj)
        if len(wire.encode(copied)) > _LARGEST_ON_THE_WAY:
            raise ValueError(f"copying makes the document larger than {_LARGEST_ON_THE_WAY} bytes")
        return copied


class _Patch(jsonpatch.JsonPatch):
    operations = MappingProxyType(
        {
            **jsonpatch.JsonPatch.operations,
            "add": _AddWithParents,
            "add_intermediates": _AddWithParents,
            "copy": _CopyWithinBounds,
        }
    )


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
    return f"nothing was changed: {str(error)[:200] or 'an operation failed'}"
