"""Reads a seed: parses it, replaces variables, checks every field and reads its files."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
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
from extcli.seeds.positions import Position, path_text
from extcli.seeds.schema import SEED, VERSION
from extcli.seeds.variables import replaced

_MAX_BYTES = 64 * 1024 * 1024
_INSTANTS = ("at", "starts_at", "ends_at")
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

    def refused(self, details: Iterable[str]) -> InvalidSeed:
        """Return the error for a seed that the service refused. Each detail begins with a path and a colon."""
        places = _named_positions(self.text)
        return InvalidSeed(self.name, [_complaint(self.name, places, detail) for detail in details])

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
    found: list[tuple[positions.Path, str]] = []

    def report(at: positions.Path, problem: str) -> None:
        found.append((at, problem))

    value = replaced(_parsed(text, name), environ, report)
    # A missing variable is enough: the empty text in its place may break other rules.
    if not found:
        SEED.check(value, (), report)
    if not found:
        folder = Path() if name != str(path) else Path(path).parent
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
        places = _named_positions(text)
        complaints = [_complaint(name, places, f"{path_text(at)}: {problem}") for at, problem in found]
        raise InvalidSeed(name, complaints)
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
        raise InvalidSeed(name, [f"{name}:{line}:1: is not UTF-8 text"]) from None


def _parsed(text: str, name: str) -> Any:
    is_json = name.endswith(".json") or text.lstrip().startswith("{")
    try:
        if not is_json:
            return tomllib.loads(text)
        parsed, repeated = json.loads(text, parse_constant=_refuse), positions.repeated_in(text)
    except json.JSONDecodeError as error:
        line, column, problem = error.lineno, error.colno, error.msg
    except tomllib.TOMLDecodeError as error:
        place = _PLACE_OF_ERROR.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, 1)
        problem = str(error).partition(" (at ")[0]
    except RecursionError:
        line, column, problem = 1, 1, "nested too deeply"
    else:
        if repeated:
            lines = [
                f"{name}:{at.line}:{at.column}: {path_text(path)}: is there twice" for path, at in repeated.items()
            ]
            raise InvalidSeed(name, lines)
        return parsed
    kind = "JSON" if is_json else "TOML"
    raise InvalidSeed(name, [f"{name}:{line}:{column}: not valid {kind}: {problem[:1].lower()}{problem[1:]}"])


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


def _named_positions(text: str) -> Mapping[str, Position]:
    return {path_text(path): position for path, position in positions.positions_of(text).items()}


def _complaint(name: str, places: Mapping[str, Position], detail: str) -> str:
    """Return a detail with the file, line and column of the field that it begins with, or of the nearest around it."""
    place = detail.partition(": ")[0]
    while place and place not in places:
        place = re.sub(r"(?:^|\.)[^.\[\]]+$|\[[^\[\]]*\]$", "", place) if not place.endswith('"]') else _outside(place)
    line, column = places.get(place, Position(1, 1))
    return f"{name}:{line}:{column}: {detail}"


def _outside(place: str) -> str:
    """Return a path without its last member, whose name is in brackets and quotes."""
    return place[: place.rindex('["')]
