"""Files that a seed names, such as those of reward codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from extcli.codes.entries import Entries
from extcli.codes.validation import fault_in
from extcli.errors import UsageError
from extcli.reading import user_files
from extcli.tables import positions
from extcli.tables.kinds import Report
from extcli.tables.positions import path_text

_TOKEN = re.compile(rb"\s*(?:[\w-]+\.[\w-]+\.[\w-]*)?\s*")


class Place:
    """The folder of a seed. A seed of another author must not reach the files outside."""

    def __init__(self, folder: Path, *, trusted: bool) -> None:
        """A `trusted` seed may name any file."""
        self._folder = folder
        self._trusted = trusted

    def path(self, name: str) -> Path:
        """Return the path of a file that the seed names."""
        return self._folder / name

    def problem_of(self, name: str) -> str:
        """Return why the seed may not name this file; empty if it may."""
        if self._trusted or user_files.is_inside(name, self._folder):
            return ""
        return (
            f"{self.path(name)} is outside the folder of the seed, or behind a symbolic link; --trust-seed allows that"
        )


def problem_of_reading(file: Path) -> str:
    """Return why a file cannot be read; empty if it can. A device or a pipe might never end."""
    try:
        user_files.opened(file).close()
    except OSError as error:
        return f"cannot read {file}; {error.strerror}"
    return ""


def problem_of_replacing(file: Path) -> str:
    """Return why a token must not overwrite this file; empty if it may."""
    if not file.exists():
        return ""
    try:
        is_token = _TOKEN.fullmatch(user_files.content(file, user_files.SECRET)) is not None
    except OSError as error:
        return f"{file} exists, and cannot be replaced: {error.strerror}"
    return "" if is_token else f"{file} exists and holds no token, so it is not replaced; delete it first"


_MAX_CODE = 63
_MAX_CODES = 999_999
_MAX_FAULTS = 20
"""Errors reported for one set."""

Located = tuple[positions.Path, str, Any]
"""The field of a code, its place for messages, and the code: a text, or `Unreadable`."""


def read_codes(document: Mapping[str, Any], folder: Place, report: Report) -> None:
    """Put the codes of its file in place of `file` and `column` in each set.

    Reports codes that are invalid, or twice among the sets of a client id.
    """
    seen: dict[tuple[str, str], str] = {}
    for number, code_set in enumerate(document.get("codes", [])):
        client_id = code_set.get("client_id", document["client_id"])
        faults = 0
        for at, place, code in _codes(code_set, folder, ("codes", number), report):
            fault = fault_in(code, "a code", _MAX_CODE)
            if not fault and (first := seen.setdefault((client_id, code), place)) != place:
                fault = f"is the same code as {first}"
            if fault and (faults := faults + 1) <= _MAX_FAULTS:
                report(at, fault if place == path_text(at) else f"{place} {fault}")


def _codes(code_set: dict[str, Any], folder: Place, at: positions.Path, report: Report) -> Iterator[Located]:
    """Yield each code of a set. Leaves the codes of its file in the set."""
    if "file" not in code_set:
        for position, code in enumerate(code_set["codes"]):
            path = (*at, "codes", position)
            yield path, path_text(path), code
        return
    at, name = (*at, "file"), code_set.pop("file")
    file = folder.path(name)
    if problem := folder.problem_of(name) or problem_of_reading(file):
        report(at, problem)
        return
    argument = str(file)
    found: list[Located] = []
    try:
        with closing(Entries(argument, column=code_set.pop("column", None))) as entries:
            for batch in entries:
                found += [(at, entries.place(n), item) for n, item in zip(batch.numbers, batch.items, strict=True)]
    except UsageError as error:
        report(at, "; ".join(filter(None, (error.what, error.why))).replace("--column", "column"))
        return
    if not 1 <= len(found) <= _MAX_CODES:
        report(at, f"{argument} has {len(found)} codes; must be 1 to {_MAX_CODES}")
        return
    code_set["codes"] = [code for _, _, code in found]
    yield from found
