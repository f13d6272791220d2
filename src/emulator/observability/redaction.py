"""Removes secrets from log lines. A second line of defense: no code of the service logs a secret in the first place."""

from __future__ import annotations

import errno
import re
import traceback
from collections.abc import Iterator
from typing import Final

TOKEN: Final = re.compile(r"eyJ[\w-]{8,}(?:\.[\w-]*)*|ZXlK[\w+/-]{8,}")
"""A JWT, or a truncated one: base64 that starts with `{"`. Or the base64 of that."""
_USER_INFO: Final = re.compile(r"""(?<=://)[^/\s'"]*@""")

_ARGUMENTS: Final = re.compile(r"(?<=with args beginning with: ).*", re.DOTALL)
"""The keys and values that Redis, or a proxy in front of it, quotes from an unknown command."""


def redact(text: str) -> str:
    """Return `text` without tokens, credentials in URLs, and arguments of Redis commands."""
    return _ARGUMENTS.sub("…", _USER_INFO.sub("…@", TOKEN.sub("…", text)))


def safe_traceback(error: BaseException) -> str:
    """Format the tracebacks of an exception and its causes without their messages, which may quote a client."""
    return "".join(_lines(error, set())).rstrip("\n")


def exception_name(error: BaseException) -> str:
    """Return the qualified class name, with the symbol of an OS error: `OSError (ENOSPC)`."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    symbol = errno.errorcode.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    return f"{name} ({symbol})" if symbol else name


def _lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen:
        yield from _lines(cause, seen)
        yield "which led to:\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{exception_name(error)}\n"
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield "with:\n"
        yield from _lines(inner, seen)
