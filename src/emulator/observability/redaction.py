"""What must stand in no log, whoever writes the line. That no code of ours logs it comes first; this comes behind."""

from __future__ import annotations

import errno
import re
import traceback
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(r"eyJ[\w-]{8,}(?:\.[\w-]*)*")
"""A JWT, or what is left of one that was cut: the base64 of `{"`, and on."""
_USER_INFO: Final = re.compile(r"""(?<=://)[^/\s'"]*@""")

_ARGUMENTS: Final = re.compile(r"(?<=with args beginning with: ).*", re.DOTALL)
"""What Redis, or a proxy in front of it, repeats of a command that it does not know: keys and values."""


def discreet(text: str) -> str:
    """`text` without tokens, the user and password of a URL, and what Redis repeats of a command."""
    return _ARGUMENTS.sub("…", _USER_INFO.sub("…@", _TOKEN.sub("…", text)))


def way_of(error: BaseException) -> str:
    """The lines that an exception and its causes passed.

    Their messages are left out, as they may quote what a client sent.
    """
    return "".join(_lines(error, set())).rstrip("\n")


def kind_of(error: BaseException) -> str:
    """The name of an exception's class, and the symbol of the system's error, such as `ENOSPC`, where it is one."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    symbol = errno.errorcode.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    return f"{name} ({symbol})" if symbol else name


def _lines(error: BaseException, told: set[int]) -> Iterator[str]:
    told.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in told:
        yield from _lines(before, told)
        yield "which led to:\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{kind_of(error)}\n"
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield "with:\n"
        yield from _lines(inner, told)
