"""Reads a seed: parses it, replaces variables, checks every field and reads its files."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extcli import atomic_file
from extcli.config.settings import DEFAULT_CHANNEL, DEFAULT_CLIENT_ID
from extcli.errors import UsageError
from extcli.seeds import positions
from extcli.seeds.code_files import read_codes
from extcli.seeds.errors import InvalidSeed
from extcli.seeds.kinds import instant_of
from extcli.seeds.positions import Position, path_text, positions_of
from extcli.seeds.schema import SEED, VERSION
from extcli.seeds.variables import replaced

_MAX_BYTES = 64 * 1024 * 1024
_INSTANTS = ("at", "starts_at", "ends_at")
_START = Position(1, 1)
_PLACE_OF_ERROR = re.compile(r"line (\d+),? column (\d+)")


@dataclass(frozen=True)
class Seed:
    """A valid seed."""

    name: str
    """The file's name, for messages."""
    document: Mapping[str, Any] = field(repr=False)
    """What `PUT /_emulator/seed` takes: plain JSON values, without variables and files."""
    token_files: Mapping[int, Path]
    """Where to write the refresh token of each link that has a file, by its position in `links`."""
    text: str = field(repr=False)

    @property
    def body(self) -> bytes:
        """The document as JSON."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":")).encode()

    def refused(self, details: Sequence[str]) -> InvalidSeed:
        """Return the error for a seed that the service refused. Each detail begins with a path and a colon."""
        places = {path_text(path): place for path, place in positions_of(self.text).items()}
        found = [max((each for each in places if _begins(detail, each)), key=len, default="") for detail in details]
        lines = [
            _line(self.name, places.get(each, _START), detail) for each, detail in zip(found, details, strict=True)
        ]
        return InvalidSeed(self.name, lines)

    def save_tokens(self, refresh_tokens: Sequence[str]) -> None:
        """Write the refresh token of each link to its file, readable by this user only. Raises `UsageError`."""
        for at, path in self.token_files.items():
            try:
                atomic_file.replace(path, f"{refresh_tokens[at]}\n", keep_mode=False)
            except OSError as error:
                raise atomic_file.cannot_be_written(path, error) from None


def read(path: str | Path, environ: Mapping[str, str]) -> Seed:
    """Read a seed from a file, or from standard input for `-`. Raises `InvalidSeed`, and `UsageError` without a file.

    A file whose name ends in .json is JSON, as is standard input that begins with a brace; any other is TOML.
    """
    name = "standard input" if str(path) == "-" else str(path)
    text = _text(path, name)
    try:
        return _read(text, name, Path() if name != str(path) else Path(path).parent, environ)
    except RecursionError:
        raise InvalidSeed(name, [_line(name, _START, "nested too deeply")]) from None


def _read(text: str, name: str, folder: Path, environ: Mapping[str, str]) -> Seed:
    """Return the seed in a text. Files are relative to `folder`."""
    found: list[tuple[positions.Path, str]] = []

    def report(at: positions.Path, problem: str) -> None:
        found.append((at, problem))

    value = replaced(_parsed(text, name), environ, report)
    # A missing variable is enough: the empty text in its place may break other rules.
    if not found:
        SEED.check(value, (), report)
    if not found:
        document = _document(value)
        read_codes(document, folder, report)
        files = {
            at: folder / link.pop("refresh_token_file")
            for at, link in enumerate(document.get("links", []))
            if "refresh_token_file" in link
        }
        seed = Seed(name, document, files, text)
    if not found and len(seed.body) > _MAX_BYTES:
        found.append((("extcli",), f"the seed has {len(seed.body)} bytes as JSON; the limit is {_MAX_BYTES}"))
    if found:
        places = positions_of(text)
        raise InvalidSeed(name, [_line(name, _nearest(places, at), f"{path_text(at)}: {why}") for at, why in found])
    return seed


def _text(path: str | Path, name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}", why=error.strerror or "") from None
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidSeed(name, [_line(name, Position(line, 1), "not UTF-8 text")]) from None


def _parsed(text: str, name: str) -> Any:
    is_json = name.endswith(".json") or text.lstrip().startswith("{")
    try:
        if not is_json:
            return tomllib.loads(text)
        parsed, repeated = json.loads(text, parse_constant=_refuse), positions.repeated_in(text).items()
    except json.JSONDecodeError as error:
        place, problem = Position(error.lineno, error.colno), error.msg
    except tomllib.TOMLDecodeError as error:
        numbers = _PLACE_OF_ERROR.search(str(error))
        place = Position(int(numbers[1]), int(numbers[2])) if numbers else Position(text.count("\n") + 1, 1)
        problem = str(error).partition(" (at ")[0]
    except ValueError:  # Python's limit of 4,300 digits
        place, problem = _START, "a number has too many digits"
    else:
        if repeated:
            raise InvalidSeed(name, [_line(name, at, f"{path_text(path)}: is there twice") for path, at in repeated])
        return parsed
    kind = "JSON" if is_json else "TOML"
    raise InvalidSeed(name, [_line(name, place, f"not valid {kind}: {problem[:1].lower()}{problem[1:]}")])


def _refuse(constant: str) -> Any:
    """Raise the error for NaN and Infinity, which are not JSON."""
    raise json.JSONDecodeError(f"{constant} is not a number of JSON", "", 0)


def _document(seed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the seed with its defaults, and with every point in time as RFC 3339. Data are left alone."""
    defaults = {"extcli": VERSION, "client_id": DEFAULT_CLIENT_ID, "channel": DEFAULT_CHANNEL}
    document: dict[str, Any] = {**defaults, **seed}
    for name, part in document.items():
        if isinstance(part, list):
            document[name] = [_with_texts(table) for table in part]
        elif isinstance(part, dict):
            document[name] = _with_texts(part)
    return document


def _with_texts(table: Mapping[str, Any]) -> dict[str, Any]:
    instants = {name: instant_of(table[name]) for name in _INSTANTS if name in table}
    return {**table, **{name: instant.isoformat() for name, instant in instants.items() if instant}}


def _nearest(places: Mapping[positions.Path, Position], path: positions.Path) -> Position:
    """Return where a field is; if it is missing, where the one around it is."""
    while path and path not in places:
        path = path[:-1]
    return places.get(path, _START)


def _begins(detail: str, place: str) -> bool:
    """Whether a detail is about the field at `place`, or one inside."""
    return detail.startswith(place) and detail[len(place) : len(place) + 1] in (":", ".", "[", " ")


def _line(name: str, place: Position, fault: str) -> str:
    return f"{name}:{place.line}:{place.column}: {fault}"
