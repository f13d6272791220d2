"""Turns usage errors of Typer into extcli's form: what is wrong, then where to read the usage."""

from __future__ import annotations

import re
from typing import Any, Final

from extcli.errors import UsageError

_INVALID: Final = re.compile(r"Invalid value for '([^']+)'(?: / '[^']+')*(?: \(env var: '(\w+)'\))?: ")
_EXTRA: Final = re.compile(r"Got unexpected extra argument\(s\) \((.+)\)")
_QUOTED: Final = re.compile(r"'(--?[a-z][\w-]*)'")


def is_help(error: Any) -> bool:
    """Return whether an exception is for a noun without a verb: Typer puts the help of the noun into it."""
    return str(error.message).startswith("Usage: ")


def usage_error(error: Any) -> UsageError:
    """Return the error of extcli for an exception of Typer about the arguments."""
    what = "missing command" if is_help(error) else what_is_wrong(error.format_message())
    context = getattr(error, "ctx", None)
    return UsageError(what, fix=f"`{context.command_path} -h` shows the usage" if context else "")


def what_is_wrong(message: str) -> str:
    """Return Typer's message on one line. Where a value is wrong, its option or argument comes first."""
    line = " ".join(message.split()).rstrip(".")
    line = _INVALID.sub(lambda found: f"{' or '.join(filter(None, found.groups()))}: ", line)
    line = _EXTRA.sub(r"unexpected argument: \1", line)
    line = _QUOTED.sub(r"\1", line)
    return line if line[:2].isupper() else line[:1].lower() + line[1:]  # an argument is named in capitals
