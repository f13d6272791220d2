"""Replaces `${NAME}` in the texts of a seed. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from extcli.seeds.kinds import Report
from extcli.seeds.positions import Path

_VARIABLE = re.compile(r"\$(?P<escape>\$)?\{(?P<name>[A-Za-z_][A-Za-z0-9_]*\})?")


def replaced(value: Any, environ: Mapping[str, str], report: Report, path: Path = ()) -> Any:
    """Return the value with each `${NAME}` in its texts replaced. `$${` stands for `${`; any other `$` for itself.

    Names of fields stay as they are, and the value of a variable is not searched for variables.
    """
    if isinstance(value, dict):
        return {name: replaced(member, environ, report, (*path, name)) for name, member in value.items()}
    if isinstance(value, list):
        return [replaced(element, environ, report, (*path, at)) for at, element in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
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

    return _VARIABLE.sub(text_of, value)
