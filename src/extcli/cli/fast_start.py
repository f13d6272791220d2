"""Starts fast: parses plain arguments without pydantic, whose import takes longer than most commands.

The only file that uses private parts of Typer. If a version lacks them, Typer parses every argument: more slowly, and
with its own wording of errors.

Typer passes every argument to pydantic. Text, whole numbers and choices are parsed here instead. Anything else, and
anything invalid, still goes to pydantic, but errors about numbers and choices are worded here.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from typer import BadParameter

from extcli.errors import shortened

_UNPARSED = object()
_SHOWN_LENGTH = 40
_INTEGER = re.compile(r"-?[0-9]{1,18}")


def parse_fast(parameters: Iterable[Any]) -> None:
    """Give parameters of a Typer command the fast parser, which passes values that it does not know to Typer's."""
    for parameter in parameters:
        if (
            "get_runtime_param" not in vars(parameter)
            and hasattr(parameter, "get_runtime_param")
            and _type_of(parameter)
        ):
            parser = _Parser(parameter)
            parameter.get_runtime_param = lambda parser=parser: parser


def choices_of(parameter: Any) -> list[str]:
    """Return the values that an argument or option takes; empty if it is not a choice from a list."""
    kind = getattr(_type_of(parameter), "annotation", None)
    return list(kind) if isinstance(kind, type) and issubclass(kind, StrEnum) else []


def _type_of(parameter: Any) -> Any:
    """Return Typer's type object of a parameter; `None` if this version of Typer keeps it elsewhere."""
    return getattr(parameter, "type_descriptor", None)


class _Parser:
    """Replaces the pydantic parser of one parameter."""

    def __init__(self, parameter: Any) -> None:
        self._original = parameter.get_runtime_param
        self._type = parameter.type_descriptor.annotation
        self._info = parameter.type_descriptor.parameter_info
        self._many = parameter.multiple or parameter.nargs == -1

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value that Typer itself would return."""
        if value is None:
            return () if self._many else None
        parsed = self._parse(value)
        if parsed is not _UNPARSED:
            return parsed
        try:
            return self._original().coerce(value, param=param, ctx=ctx)
        except BadParameter as error:
            error.message = self._message(value) or error.message
            raise

    def _parse(self, value: Any) -> Any:
        if self._info.parser is not None:
            return _UNPARSED
        if not self._many:
            return self._parse_one(value, self._type)
        if self._type not in (list[str], list[int]):
            return _UNPARSED
        parsed = [self._parse_one(each, self._type.__args__[0]) for each in value]
        return _UNPARSED if _UNPARSED in parsed else parsed

    def _parse_one(self, value: Any, kind: Any) -> Any:
        if kind is int and isinstance(value, str) and _INTEGER.fullmatch(value):
            value = int(value)
        if kind in (str, bool, int) and type(value) is kind and self._is_within_limits(value):
            return value
        if isinstance(kind, type) and issubclass(kind, StrEnum) and value in list(kind):
            return kind(value)
        return _UNPARSED

    def _message(self, value: Any) -> str:
        """Return an error message with the value and its limits; empty to use pydantic's message."""
        if self._type == list[int]:
            value = next((each for each in value if self._parse_one(each, int) is _UNPARSED), value)
        named = repr(shortened(str(value), _SHOWN_LENGTH))
        if self._type in (int, list[int]):
            return f"{named} is not a whole number{self._limits()}"
        if self._type is bool:
            return f"{named} is neither true nor false"
        if isinstance(self._type, type) and issubclass(self._type, StrEnum):
            return f"{named} is not one of {', '.join(self._type)}"
        return ""

    def _limits(self) -> str:
        least, most = self._info.min, self._info.max
        if least is not None and most is not None:
            return f" from {least} to {most}"
        return f" of at least {least}" if least is not None else f" of at most {most}" if most is not None else ""

    def _is_within_limits(self, value: Any) -> bool:
        least, most = self._info.min, self._info.max
        return (least is None or value >= least) and (most is None or value <= most)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection while the block imports modules.

    What an import creates lives as long as the process: looking for garbage in it takes a tenth of the start-up time.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
