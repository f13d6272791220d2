"""Files of tables in TOML or JSON: their text, their errors, and the variables in them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.contract import positions, user_files
from emulator.contract.kinds import Report, Table
from emulator.contract.positions import START, Position, field_positions, nearest_position, path_text
from extcli import bounded_json
from extcli.errors import Refused, UsageError, count_text
from extcli.reading import Response, read_source, shape_problem, source_name

if TYPE_CHECKING:
    from extcli.api.client import Service

MAX_NAMED = 50
"""Errors named for one file; others are counted."""


class InvalidFile(UsageError):
    """A file with errors. Nothing was changed."""

    def __init__(self, name: str, faults: Sequence[str]) -> None:
        """`faults` are one line each: file, line, column, field, what is wrong and what is allowed."""
        count, more = len(faults), len(faults) - MAX_NAMED
        named = [*faults[:MAX_NAMED], *([f"and {more:,} more"] if more > 0 else [])]
        what = f"{name} has {count_text(count, 'error')}; nothing was changed"
        super().__init__(what, details=named, facts={"faults": named})

    def __str__(self) -> str:
        return "\n  ".join([self.what, *self.details])


_VARIABLE = re.compile(r"\$(?P<escape>\$)?\{(?P<name>[A-Za-z_][A-Za-z0-9_]*\})?")


def replace_variables(value: Any, environ: Mapping[str, str], report: Report, path: positions.Path = ()) -> Any:
    """Return the value with each `${NAME}` in its texts replaced. `$${` stands for `${`; any other `$` for itself.

    Names of fields stay as they are, and the value of a variable is not searched for variables.
    """
    if isinstance(value, dict):
        for name in value:
            _check_unicode(name, path, report)
        return {name: replace_variables(member, environ, report, (*path, name)) for name, member in value.items()}
    if isinstance(value, list):
        return [replace_variables(element, environ, report, (*path, at)) for at, element in enumerate(value)]
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


def _check_unicode(text: str, path: positions.Path, report: Report) -> None:
    """Report a text with half a surrogate pair: from an escape of JSON, or a variable that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        report(path, "must be Unicode text")


_PLACE_OF_ERROR = re.compile(r"line (\d+),? column (\d+)")

Problem = tuple[positions.Path, str]
"""The path of an invalid field, and what is wrong with it."""


@dataclass(frozen=True)
class Source:
    """The text of a file or of standard input, with its format."""

    name: str
    """For messages."""
    folder: Path
    """Other files that it names are relative to this folder."""
    text: str = field(repr=False)

    def value(self, table: Table, environ: Mapping[str, str]) -> Any:
        """Return the content with variables replaced. Raises `InvalidFile` unless `table` allows it."""
        found: list[Problem] = []

        def report(at: positions.Path, problem: str) -> None:
            found.append((at, problem))

        try:
            value = replace_variables(_parse(self.text, self.name), environ, report)
            # A missing variable is enough: the empty text in its place may break other rules.
            if not found:
                table.check(value, (), report)
            if found:
                raise self.invalid(found)
        except RecursionError:
            raise InvalidFile(self.name, [_fault_line(self.name, START, "nested too deeply")]) from None
        return value

    def invalid(self, problems: Iterable[Problem]) -> InvalidFile:
        """Return the error for these problems."""
        places = field_positions(self.text)
        found = [(nearest_position(places, at), f"{path_text(at)}: {why}" if at else why) for at, why in problems]
        return InvalidFile(self.name, [_fault_line(self.name, place, text) for place, text in found])

    def send(self, service: Service, path: str, body: bytes) -> Response:
        """Send the content as this body with PUT, and return the response.

        Raises `InvalidFile` if the service found errors; then nothing was changed.
        """
        try:
            return service.send("PUT", path, body)
        except Refused as error:
            answer = bounded_json.members(error.body)
            is_about_content = answer.get("reason") in ("Invalid seed", "Invalid body")
            if not is_about_content or shape_problem(answer, {"errors": [{"detail": str}]}):
                raise
            raise self.refusal_error([each["detail"] for each in answer["errors"]]) from None

    def refusal_error(self, details: Sequence[str]) -> InvalidFile:
        """Return the error for content that the service refused. Each detail begins with a path and a colon."""
        places = {path_text(path): place for path, place in field_positions(self.text).items()}
        lines = []
        for detail in details:
            named = max((each for each in places if _is_about_field(detail, each)), key=len, default="")
            lines.append(_fault_line(self.name, places.get(named, START), detail))
        return InvalidFile(self.name, lines)


def open_source(path: str | Path) -> Source:
    """Open a file, or standard input for `-`. Raises `UsageError` if it cannot be read, and `InvalidFile`.

    A file whose name ends in .json is JSON, as is standard input that begins with a brace; any other is TOML.
    """
    name, raw = source_name(path), read_source(path)
    try:
        return Source(name, Path(path).parent, raw.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidFile(name, [_fault_line(name, Position(line, 1), "not UTF-8 text")]) from None


def _parse(text: str, name: str) -> Any:
    is_json = name.endswith(".json") or text.lstrip().startswith("{")
    try:
        return bounded_json.decoded(text, strict=True) if is_json else user_files.parse_toml(text)
    except json.JSONDecodeError as error:
        place, problem = Position(error.lineno, error.colno), f"not valid JSON: {error.msg}"
    except tomllib.TOMLDecodeError as error:
        numbers = _PLACE_OF_ERROR.search(str(error))
        place = Position(int(numbers[1]), int(numbers[2])) if numbers else Position(text.count("\n") + 1, 1)
        problem = f"not valid TOML: {str(error).partition(' (at ')[0]}"
    except ValueError as error:  # too large in some way, or Python's limit of 4,300 digits
        place, problem = START, "a number has too many digits" if "digits" in str(error) else str(error)
    raise InvalidFile(name, [_fault_line(name, place, problem)])


def _is_about_field(detail: str, place: str) -> bool:
    """Whether an error's detail is about the field at `place`, or about a field inside it."""
    return detail.startswith(place) and detail[len(place) : len(place) + 1] in (":", ".", "[", " ")


def _fault_line(name: str, place: Position, fault: str) -> str:
    return f"{name}:{place.line}:{place.column}: {fault}"
