"""Every place where the service refuses something, read from its syntax trees, with a sample of what it says."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path

import emulator
from emulator import errors

SOURCE = Path(emulator.__file__).parent
SAMPLE = "7"
"""Stands for a value that is known only when the service runs."""
_DEPTH = 3
"""Calls that are followed back from a helper to those who name the reason."""
_CLOSERS = {"close", "_close", "expel", "_expel", "fail"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Values = Mapping[str, list[str]]


@cache
def _trees() -> Mapping[str, ast.Module]:
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def _kinds() -> Mapping[str, int]:
    """The names of all classes of `ServiceError`, with their status."""
    found = {name: each.status for name, each in vars(errors).items() if hasattr(each, "status")}
    for tree in _trees().values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                base = next((each.id for each in node.bases if isinstance(each, ast.Name) and each.id in found), "")
                if base and node.name not in found:
                    given = [each.value.value for each in node.keywords if each.arg == "status"]  # type: ignore[attr-defined]
                    found[node.name] = given[0] if given else found[base]
    return found


@cache
def _constants() -> Mapping[str, ast.expr]:
    """The values of the module constants, by name, without the names that several modules have."""
    found: dict[str, list[ast.expr]] = {}
    for tree in _trees().values():
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


@cache
def _calls() -> Mapping[str, list[tuple[str, Function | None, ast.Call]]]:
    """All calls by the name that is called, each with its file and its function."""
    found: dict[str, list[tuple[str, Function | None, ast.Call]]] = {}
    for file, tree in _trees().items():
        for function, call in _calls_in(tree, None):
            name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
            found.setdefault(name, []).append((file, function, call))
    return found


def _calls_in(node: ast.AST, function: Function | None) -> Iterator[tuple[Function | None, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inner = child if isinstance(child, Function) else function
        if isinstance(child, ast.Call):
            yield inner, child
        yield from _calls_in(child, inner)


def _texts(node: ast.expr | None, function: Function | None, bound: Values) -> list[str]:
    """The texts that an expression can have, with `SAMPLE` for what is unknown."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.BinOp):
        if isinstance(node, ast.FormattedValue):
            texts = _texts(node.value, function, bound)
            return texts if node.conversion == -1 else [f"'{each}'" for each in texts]
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add):
            return [SAMPLE]
        parts = node.values if isinstance(node, ast.JoinedStr) else [node.left, node.right]
        return ["".join(each) for each in product(*(_texts(part, function, bound) for part in parts))]
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, function, bound), *_texts(node.orelse, function, bound)]
    if isinstance(node, ast.BoolOp):
        return [text for each in node.values for text in _texts(each, function, bound)]
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if isinstance(node, ast.Name) and name in bound:
            return bound[name]
        local = _assigned(function, name) if isinstance(node, ast.Name) else []
        values = local or ([_constants()[name]] if name in _constants() and name.lstrip("_").isupper() else [])
        rest = {**bound, name: [SAMPLE]}  # a name may be in its own value
        return [text for each in values for text in _texts(each, function, rest)] or [SAMPLE]
    return [SAMPLE]


def _assigned(function: Function | None, name: str) -> list[ast.expr]:
    """The values that a function assigns to a local name."""
    return _assignments(function).get(name, []) if function else []


@cache
def _assignments(function: Function) -> Mapping[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(
            node.value, ast.Constant | ast.JoinedStr | ast.IfExp | ast.BinOp
        ):
            for each in node.targets:
                if isinstance(each, ast.Name):
                    found.setdefault(each.id, []).append(node.value)
    return found


def _bindings(function: Function | None, names: Iterable[str], depth: int = _DEPTH) -> Iterator[Values]:
    """What the callers of a helper pass for its parameters, if any of these names is one."""
    parameters = _parameters(function)
    callers = _callers(function) if function and depth and set(names) & set(parameters) else []
    if not callers:
        yield {}
    for caller, call in callers:
        passed = {**dict(zip(parameters, call.args, strict=False)), **{each.arg: each.value for each in call.keywords}}
        used = {node.id for each in passed.values() for node in ast.walk(each) if isinstance(node, ast.Name)}
        for bound in _bindings(caller, used, depth - 1):
            yield {name: _texts(value, caller, bound) for name, value in passed.items() if name}


def _callers(helper: Function) -> list[tuple[Function | None, ast.Call]]:
    """The calls of a function by name; those of a private one are in its file."""
    return [
        (caller, call)
        for file, caller, call in _calls().get(helper.name, ())
        if not helper.name.startswith("_") or helper in _functions(file)
    ]


@cache
def _functions(file: str) -> frozenset[Function]:
    return frozenset(node for node in ast.walk(_trees()[file]) if isinstance(node, Function))


def _parameters(function: Function | None) -> list[str]:
    if function is None:
        return []
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return names[1:] if names[:1] == ["self"] else names


def _names_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def undeclared() -> list[str]:
    """Return every place that makes a `ServiceError` with a text for a client, without a declared refusal.

    One with a reason alone is for the metrics only.
    """
    own = ("super", "FaultError", "NoAnswer")  # the latter two hold a declared refusal
    return [
        f"{file}:{call.lineno}"
        for kind in _kinds()
        if kind not in own
        for file, _, call in _calls().get(kind, ())
        if len(call.args) > 1
    ]


def closes() -> list[tuple[str, str]]:
    """Return every place that closes a socket with a reason, and a sample of the reason."""
    found: dict[tuple[str, str], None] = {}
    for name in _CLOSERS:
        for file, function, call in _calls().get(name, ()):
            if not file.startswith("realtime/") or not call.args or not _is_reasoned(name, call):
                continue
            for bound in _bindings(function, _names_in(call.args)):
                found.update(((f"{file}:{call.lineno}", text), None) for text in _texts(call.args[-1], function, bound))
    return list(found)


def _is_reasoned(name: str, call: ast.Call) -> bool:
    return name in ("expel",) or len(call.args) == 2
