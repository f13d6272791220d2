"""Reads seeds, and the files that they name, such as files of reward codes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.contract import positions, user_files
from emulator.contract.kinds import Report, instant_of
from emulator.contract.limits import MAX_CODE_LENGTH, MAX_CODES
from emulator.contract.positions import path_text
from extcli import atomic_file, bounded_json
from extcli.codes.entries import Entries
from extcli.codes.validation import problem_of_entry
from extcli.config.settings import DEFAULT_CHANNEL, DEFAULT_CLIENT_ID
from extcli.errors import Refused, UnexpectedResponse, UsageError
from extcli.faults import in_options, members
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.seeds.schema import SEED, VERSION
from extcli.tables import InvalidFile, Problem, Source, source

if TYPE_CHECKING:
    from extcli.api.control import Control

_TOKEN = re.compile(rb"\s*(?:[\w-]+\.[\w-]+\.[\w-]*)?\s*")


def _is_inside(name: str, folder: Path) -> bool:
    """Return whether `folder / name` is a place below that folder, with no symbolic link on the way from there."""
    root = folder.resolve()
    place = Path(os.path.normpath(root / name))
    try:
        target = (root / name).resolve()  # not of `place`: after a symbolic link, `..` leads elsewhere
    except RuntimeError:  # a loop of symbolic links
        return False
    return place != root and place.is_relative_to(root) and target == place


class Place:
    """The folder of a seed. A seed of another author must not reach the files outside."""

    def __init__(self, folder: Path, *, trusted: bool) -> None:
        """A `trusted` seed may name any file."""
        self.folder = folder
        self._trusted = trusted

    def problem_of(self, name: str) -> str:
        """Return why the seed may not use this file; empty if it may."""
        if self._trusted or _is_inside(name, self.folder):
            return ""
        file = self.folder / name
        return f"{file} is outside the folder of the seed, or behind a symbolic link; --trust-seed allows that"


def why_not_readable(file: Path) -> str:
    """Return why a file cannot be read; empty if it can. A device or a pipe might never end."""
    try:
        user_files.opened(file).close()
    except OSError as error:
        return f"cannot read {file}; {error.strerror}"
    return ""


def why_not_replaceable(file: Path) -> str:
    """Return why a token must not be written over this file; empty if it may be."""
    if not file.exists():
        return ""
    try:
        is_token = _TOKEN.fullmatch(user_files.content(file, user_files.SECRET)) is not None
    except OSError as error:
        return f"{file} exists, and cannot be replaced: {error.strerror}"
    return "" if is_token else f"{file} exists and holds no token, so it is not replaced; delete it first"


_MAX_FAULTS = 20
"""Errors reported for one set."""

Located = tuple[positions.Path, str, Any]
"""The field of a code, its place for messages, and the code: a text, or `Unreadable`."""


def read_codes(document: Mapping[str, Any], folder: Place, report: Report) -> None:
    """Replace `file` and `column` in each code set with the codes from that file.

    Reports codes that are invalid, or twice among the sets of a client id.
    """
    seen: dict[tuple[str, str], str] = {}
    for number, code_set in enumerate(document.get("codes", [])):
        client_id = code_set.get("client_id", document["client_id"])
        faults = 0
        for at, place, code in _codes(code_set, folder, ("codes", number), report):
            fault = problem_of_entry(code, "a code", MAX_CODE_LENGTH)
            if not fault and (first := seen.setdefault((client_id, code), place)) != place:
                fault = f"is the same code as {first}"
            if fault and (faults := faults + 1) <= _MAX_FAULTS:
                report(at, fault if place == path_text(at) else f"{place} {fault}")


def _codes(code_set: dict[str, Any], folder: Place, at: positions.Path, report: Report) -> Iterator[Located]:
    """Yield each code of a set. Codes that were read from a file are stored in the set."""
    if "file" not in code_set:
        for position, code in enumerate(code_set["codes"]):
            path = (*at, "codes", position)
            yield path, path_text(path), code
        return
    at, name = (*at, "file"), code_set.pop("file")
    file = folder.folder / name
    if problem := folder.problem_of(name) or why_not_readable(file):
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
    if not 1 <= len(found) <= MAX_CODES:
        report(at, f"{argument} has {len(found)} codes; must be 1 to {MAX_CODES}")
        return
    code_set["codes"] = [code for _, _, code in found]
    yield from found


_MAX_BYTES = 64 * 1024 * 1024
_INSTANTS = ("at", "starts_at", "ends_at")


@dataclass(frozen=True)
class Seed:
    """A valid seed."""

    source: Source
    document: Mapping[str, Any] = field(repr=False)
    """What `PUT /_emulator/seed` takes: plain JSON values, without variables and files."""
    token_files: Mapping[int, Path]
    """Where to write the refresh token of each link that has a file, by its position in `links`."""

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.source.name

    @property
    def body(self) -> bytes:
        """The document as JSON."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":")).encode()

    def refused(self, details: Sequence[str]) -> InvalidFile:
        """Return the error for a seed that the service refused. Each detail begins with a path and a colon."""
        return self.source.refused([in_options(detail, self.document.get("faults", ())) for detail in details])

    def save_tokens(self, refresh_tokens: Sequence[str]) -> None:
        """Write the refresh token of each link to its file, readable by this user only. Raises `UsageError`."""
        for at, path in self.token_files.items():
            if problem := why_not_replaceable(path):  # it may have changed since the seed was read
                raise UsageError(f"cannot write {path}", why=problem)
            atomic_file.save(path, f"{refresh_tokens[at]}\n", keep_mode=False)


def read(path: str | Path, environ: Mapping[str, str], *, trusted: bool = False) -> Seed:
    """Read a seed from a file, or from standard input for `-`. Raises `InvalidFile`, and `UsageError` without a file.

    The files that it names must be in its folder, or below, unless it is `trusted`. For standard input, that is the
    working directory.
    A file whose name ends in .json is JSON, as is standard input that begins with a brace; any other is TOML.
    """
    found: list[Problem] = []
    opened = source(path)
    document = _document(opened.value(SEED, environ))
    place = Place(opened.folder, trusted=trusted)
    read_codes(document, place, lambda at, problem: found.append((at, problem)))
    names = {
        at: link.pop("refresh_token_file")
        for at, link in enumerate(document.get("links", []))
        if "refresh_token_file" in link
    }
    files = {at: place.folder / name for at, name in names.items()}
    for number, file in files.items():
        if problem := place.problem_of(names[number]) or why_not_replaceable(file):
            found.append((("links", number, "refresh_token_file"), problem))
    seed = Seed(opened, document, files)
    if not found and len(seed.body) > _MAX_BYTES:
        found.append((("extcli",), f"the seed has {len(seed.body)} bytes as JSON; the limit is {_MAX_BYTES}"))
    if found:
        raise opened.invalid(found)
    return seed


def _document(seed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the seed with its defaults, every point in time as RFC 3339, and faults as the service takes them."""
    defaults = {"extcli": VERSION, "client_id": DEFAULT_CLIENT_ID, "channel": DEFAULT_CHANNEL}
    document: dict[str, Any] = {**defaults, **seed}
    for name, part in document.items():
        if isinstance(part, list):
            document[name] = [_with_iso_times(table) for table in part]
        elif isinstance(part, dict):
            document[name] = _with_iso_times(part)
    if "faults" in document:
        document["faults"] = [members(fault) for fault in document["faults"]]
    return document


def _with_iso_times(table: Mapping[str, Any]) -> dict[str, Any]:
    instants = {name: instant_of(table[name]) for name in _INSTANTS if name in table}
    return {**table, **{name: instant.isoformat() for name, instant in instants.items() if instant}}


def apply(seed: Seed, service: Control) -> dict[str, Any]:
    """Apply a seed to a service, write the files with refresh tokens, and return how many records were created.

    Raises `InvalidFile` if the service found errors; then nothing was changed.
    """
    try:
        response = service.apply_seed(seed.body)
    except Refused as error:
        if details := _problems(error.body):
            raise seed.refused(details) from None
        raise
    try:
        result: dict[str, Any] = document_of(response, {"counts": dict, "links": [{"refresh": str}]})
        seed.save_tokens([link.pop("refresh") for link in result["links"]])
    except SHAPE_ERRORS as error:
        raise UnexpectedResponse(response) from error
    return result


def _problems(body: bytes) -> list[str]:
    """Return the problems that an error response lists about a seed; empty if the error is about something else."""
    try:
        document = bounded_json.decoded(body)
        is_about_seed = document["reason"] in ("Invalid seed", "Invalid body")
        return [error["detail"] for error in document["errors"]] if is_about_seed else []
    except SHAPE_ERRORS:
        return []
