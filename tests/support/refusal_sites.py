"""Every place where the service makes an error for a client, read from its syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import emulator
from emulator import errors

SOURCE = Path(emulator.__file__).parent


@cache
def _trees() -> Mapping[str, ast.Module]:
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def _kinds() -> frozenset[str]:
    """The names of all classes of `ServiceError`."""
    found = {name for name, each in vars(errors).items() if hasattr(each, "status")}
    for tree in _trees().values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and any(
                isinstance(each, ast.Name) and each.id in found for each in node.bases
            ):
                found.add(node.name)
    return frozenset(found)


@cache
def _calls() -> Mapping[str, list[tuple[str, ast.Call]]]:
    """All calls by the name that is called, each with its file."""
    found: dict[str, list[tuple[str, ast.Call]]] = {}
    for file, tree in _trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                found.setdefault(name, []).append((file, node))
    return found


def undeclared() -> list[str]:
    """Return every place that makes a `ServiceError` with a text for a client, without a declared refusal.

    One with a reason alone is for the metrics only.
    """
    own = ("super", "FaultError", "NoAnswer")  # the latter two hold a declared refusal
    return [
        f"{file}:{call.lineno}"
        for kind in _kinds()
        if kind not in own
        for file, call in _calls().get(kind, ())
        if len(call.args) > 1
    ]
