"""Replaces `${NAME}` in texts, and checks that they are Unicode. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from extcli.tables.kinds import Report
from extcli.tables.positions import Path

_VARIABLE = re.compile(r"\$(?P<escape>\$)?\{(?P<name>[A-Za-z_][A-Za-z0-9_]*\})?")


def replaced(value: Any, environ: Mapping[str, str], report: Report, path: Path = ()) -> Any:
    """Return the value with each `${NAME}` in its texts replaced. `$${` stands for `${`; any other `$` for itself.

    Names of fields stay as they are, and the value of a variable is not searched for variables.
    """
    if isinstance(value, dict):
        for name in value:
            _check_unicode(name, path, report)
        return {name: replaced(member, environ, report, (*path, name)) for name, member in value.items()}
    if isinstance(value, list):
        return [replaced(element, environ, report, (*path, at)) for at, element in enumerate(value)]
    if not isinstance(value, str):
        return value

    def text_of(found: re.Match[str]) -> str:
        if found["escape"]:
            return "${" + (found["name"] or "")
        name = (found["name"] or "").removesuffix("}")
        if not name:
            report(path, "${ must be followed by a name and }; write $${ for the text ${")
        elif name not in environ:
            report(path, f"the variable {name} is not set")
        return environ.get(name, "")

    text = _VARIABLE.sub(text_of, value) if "${" in value else value
    _check_unicode(text, path, report)
    return text


def _check_unicode(text: str, path: Path, report: Report) -> None:
    """Report a text with half a surrogate pair: from an escape of JSON, or a variable that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        report(path, "must be Unicode text")
