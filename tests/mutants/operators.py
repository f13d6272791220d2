"""Finds the places in a function that can be mutated, and changes one of them.

Left alone: docstrings, annotations, decorators, default values, constants of modules and classes (others have copied
them), logging, assertions, and the arguments of an error, which are its text.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, NamedTuple

Change = Callable[[ast.AST], ast.AST]
"""Returns the replacement of a copied node."""


class Identity(NamedTuple):
    """What names a mutant, whatever line it stands on."""

    function: str
    """The qualified name, without the module."""
    operator: str
    code: str
    """The statement, or the head of a compound one, as `ast.unparse` writes it."""
    nth: int
    """Which of several equal places in the function, from 0."""


@dataclass(frozen=True)
class Site:
    """One possible mutant."""

    identity: Identity
    node: ast.AST
    change: Change
    first: int
    last: int
    """The lines of the statement, or of the head of a compound one."""


_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_EMPTY: Final = {"bool": "False", "int": "0", "float": "0.0", "str": "''", "bytes": "b''", "list": "[]", "dict": "{}"}
"""The empty values of the types that functions return."""
_LOGS: Final = ("_log", "log", "logging", "warnings")


def sites(tree: ast.Module) -> Iterator[Site]:
    """Yield every possible mutant of a module, in the order of the code."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for name, function in _functions(tree, ""):
        for statement, parts in _statements(function):
            if _is_left_alone(statement):
                continue
            code = _code(statement, parts)
            first, last = _lines(statement, parts)
            for operator, node, change in _changes(function, statement, parts):
                key = (name, operator, code)
                yield Site(Identity(*key, seen[key]), node, change, first, last)
                seen[key] += 1


def mutated(tree: ast.Module, site: Site) -> ast.Module:
    """Return a copy of the module that `site` belongs to, with this change."""
    memo: dict[int, object] = {}
    copied = deepcopy(tree, memo)
    target = memo[id(site.node)]
    assert isinstance(target, ast.AST)
    replacement = ast.copy_location(site.change(target), target)
    _Replacement(target, replacement).visit(copied)
    return ast.fix_missing_locations(copied)


class _Replacement(ast.NodeTransformer):
    def __init__(self, target: ast.AST, replacement: ast.AST) -> None:
        self._target = target
        self._replacement = replacement

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._target:
            return self._replacement
        visited: ast.AST = self.generic_visit(node)
        return visited


# Walking


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield functions with their qualified names; those inside others after them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from _functions(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt) and not _is_typing(child):
            yield from _functions(child, prefix)


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _statements(node: ast.AST) -> Iterator[tuple[ast.stmt, list[ast.expr]]]:
    """Yield the statements of a function, each with its own expressions; not the statements of functions inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(child, ast.stmt):
            yield child, [each for each in ast.iter_child_nodes(child) if isinstance(each, ast.expr)]
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _statements(child)


def _code(statement: ast.stmt, parts: list[ast.expr]) -> str:
    if isinstance(statement, ast.If | ast.While | ast.For | ast.AsyncFor | ast.Match):
        return f"{type(statement).__name__.lower()} {', '.join(map(ast.unparse, parts))}"
    if isinstance(statement, ast.With | ast.AsyncWith | ast.Try):
        return type(statement).__name__.lower()
    return ast.unparse(statement)


def _lines(statement: ast.stmt, parts: list[ast.expr]) -> tuple[int, int]:
    if hasattr(statement, "body") or isinstance(statement, ast.Match):
        return statement.lineno, max((each.end_lineno or 0 for each in parts), default=statement.lineno)
    return statement.lineno, statement.end_lineno or statement.lineno


def _is_left_alone(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        return True
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr):
        return isinstance(value, ast.Constant) or _is_logging(value)
    return False


def _is_logging(node: ast.AST | None) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = ast.unparse(node.func.value)
    return owner.rpartition(".")[2] in _LOGS


# Changing


def _changes(
    function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt, parts: list[ast.expr]
) -> Iterator[tuple[str, ast.AST, Change]]:
    yield from _of_statement(function, statement)
    if isinstance(statement, ast.Raise):
        return
    if isinstance(statement, ast.AnnAssign):
        parts = [statement.value] if statement.value else []
    for part in parts:
        yield from _of_expression(part)


def _of_statement(
    function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt
) -> Iterator[tuple[str, ast.AST, Change]]:
    match statement:
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield "remove call", statement, lambda _: ast.Pass()
        case ast.Raise():
            yield "remove raise", statement, lambda _: ast.Pass()
        case ast.If() | ast.While():
            yield "negate condition", statement.test, _negated
        case ast.AugAssign(op=operator) if type(operator) in _ARITHMETIC and not _is_text(statement.value):
            other = _ARITHMETIC[type(operator)]
            yield f"{_sign(type(operator))} to {_sign(other)}", statement, lambda node: _with(node, op=other())
        case ast.Return(value=ast.expr() as value):
            empty = _empty(function.returns)
            if ast.unparse(value) not in (empty, "None"):
                yield f"return {empty}", value, lambda _: ast.parse(empty, mode="eval").body
        case ast.Break():
            yield "break to continue", statement, lambda _: ast.Continue()
        case ast.Continue():
            yield "continue to break", statement, lambda _: ast.Break()


def _of_expression(node: ast.AST) -> Iterator[tuple[str, ast.AST, Change]]:
    if isinstance(node, ast.JoinedStr) or _is_logging(node):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "isinstance", "TypeVar"):
        return
    yield from _of_one(node)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr | ast.comprehension | ast.keyword):
            yield from _of_expression(child)


def _of_one(node: ast.AST) -> Iterator[tuple[str, ast.AST, Change]]:
    match node:
        case ast.Compare(ops=[operator]):
            for other in _COMPARISONS[type(operator)]:
                yield _renamed(operator, other), node, _compared(0, other)
        case ast.Compare(ops=operators):
            for at, operator in enumerate(operators):
                for other in _COMPARISONS[type(operator)]:
                    yield f"{_renamed(operator, other)} at {at}", node, _compared(at, other)
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC and not (
            _is_text(node.left) or _is_text(node.right)
        ):
            other_sign = _ARITHMETIC[type(operator)]
            yield f"{_sign(type(operator))} to {_sign(other_sign)}", node, lambda each: _with(each, op=other_sign())
        case ast.BoolOp(op=ast.And()):
            yield "and to or", node, lambda each: _with(each, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield "or to and", node, lambda each: _with(each, op=ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield "remove not", node, lambda each: getattr(each, "operand")  # noqa: B009
        case ast.Constant(value=bool() as value):
            yield f"{value} to {not value}", node, lambda _: ast.Constant(not value)
        case ast.Constant(value=int() as number):
            yield f"{number} to {number + 1}", node, lambda _: ast.Constant(number + 1)
            yield f"{number} to {number - 1}", node, lambda _: ast.Constant(number - 1)
        case ast.IfExp():
            yield "negate condition", node.test, _negated
        case ast.comprehension(ifs=[condition, *_]):
            yield "negate condition", condition, _negated
        case ast.Call(args=[ast.Name() | ast.Attribute() as first, ast.Name() | ast.Attribute() as second, *_]):
            if ast.unparse(first) != ast.unparse(second):
                yield "swap arguments", node, _swapped


def _negated(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.expr)
    return ast.UnaryOp(ast.Not(), node)


def _with(node: ast.AST, **fields: ast.AST) -> ast.AST:
    for name, value in fields.items():
        setattr(node, name, value)
    return node


def _compared(at: int, other: type[ast.cmpop]) -> Change:
    def change(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Compare)
        node.ops[at] = other()
        return node

    return change


def _swapped(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Call)
    node.args[:2] = node.args[1::-1]
    return node


def _empty(returns: ast.expr | None) -> str:
    """Return the code of an empty value of this type, or `None` if there is none."""
    name = ast.unparse(returns).partition("[")[0] if returns else ""
    return _EMPTY.get(name, "()" if name == "tuple" else "None")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr | ast.Constant) and not isinstance(getattr(node, "value", ""), int | float)


def _renamed(operator: ast.cmpop, other: type[ast.cmpop]) -> str:
    return f"{_sign(type(operator))} to {_sign(other)}"


def _sign(operator: type[ast.AST]) -> str:
    """Return an operator as it is written."""
    return _SIGNS.get(operator.__name__, operator.__name__)


_SIGNS: Final = {
    "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!=",
    "Is": "is", "IsNot": "is not", "In": "in", "NotIn": "not in",
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%",
    "BitAnd": "&", "BitOr": "|", "LShift": "<<", "RShift": ">>",
}  # fmt: skip
