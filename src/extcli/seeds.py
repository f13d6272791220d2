"""Seeds: files with the data that a test begins with. `SEED_FILE` has their fields; `read` checks them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.contract import limits, positions, user_files
from emulator.contract.kinds import Field, ListOf, Report, Table, Text
from emulator.contract.positions import path_text
from emulator.contract.seeds import CHANNEL, CLIENT, CODES, LINK, SEED, check_seed
from extcli import atomic_file
from extcli.codes.entries import Entries
from extcli.codes.upload import entry_problem
from extcli.config.settings import DEFAULT_CHANNEL, DEFAULT_CLIENT_ID
from extcli.errors import UsageError, file_errors
from extcli.faults import FAULTS, api_members
from extcli.reading import Json, document_of
from extcli.tables import Problem, Source, open_source

if TYPE_CHECKING:
    from extcli.api.client import Service

_DEFAULTS = {"client_id": DEFAULT_CLIENT_ID, "channel": DEFAULT_CHANNEL}
_CODES = "the codes themselves, in place of a file"
_TOKEN_FILE = "where to write the game's refresh token, relative to the seed; only you can read it"


def _check_code_set(codes: Json, path: positions.Path, report: Report) -> None:
    """Report a set with a file and codes, or with neither, and a column without a file."""
    if ("file" in codes) == ("codes" in codes):
        report((*path, "codes"), "give either file or codes")
    elif "column" in codes and "codes" in codes:
        report((*path, "column"), "works only with file")


CODES_IN_FILE = Table(
    {
        **CODES.fields,
        "file": Field(Text(4096), "a file of codes, relative to the seed: text, CSV, JSON or JSON lines"),
        "column": Field(Text(256), "the column or member with the code: a CSV heading or number, or a JSON name"),
        "codes": replace(CODES.fields["codes"], meaning=_CODES, required=False),
    },
    _check_code_set,
)
LINK_IN_FILE = Table({**LINK.fields, "refresh_token_file": Field(Text(4096), _TOKEN_FILE)})
SEED_FILE = Table(
    {
        **SEED.fields,
        "client_id": Field(CLIENT, f"the extension's client id; {DEFAULT_CLIENT_ID} by default"),
        "channel": Field(CHANNEL, f"the channel; {DEFAULT_CHANNEL} by default"),
        "codes": replace(SEED.fields["codes"], kind=ListOf(CODES_IN_FILE, "codes")),
        "links": replace(SEED.fields["links"], kind=ListOf(LINK_IN_FILE, "links")),
        "faults": replace(SEED.fields["faults"], kind=FAULTS),
    },
    lambda seed, path, report: check_seed(_DEFAULTS | seed, path, report),
)


def reference(table: Table = SEED_FILE, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield every field as three texts: its path, what it accepts, and its meaning."""
    for name, each in table.fields.items():
        kind, path = each.kind, f"{prefix}{name}"
        allowed = "a client id (see client_id)" if prefix and kind is CLIENT else kind.allowed
        if isinstance(kind, ListOf) and isinstance(kind.kind, Table):
            kind, path, allowed = kind.kind, f"{path}[]", "a list of tables"
        yield path, f"{allowed}; required" if each.required else allowed, each.meaning
        if isinstance(kind, Table):
            yield from reference(kind, f"{path}.")


# The files that a seed names

_TOKEN = re.compile(rb"\s*(?:[\w-]+\.[\w-]+\.[\w-]*)?\s*")


def _allowed_file(name: str, folder: Path, *, trusted: bool) -> Path:
    """Return the path of a file that a seed in this folder names. Raises `UsageError` unless the seed may use it.

    A `trusted` seed may use any file.
    """
    root = folder.resolve()
    place = Path(os.path.normpath(root / name))
    try:
        target = (root / name).resolve()  # not of `place`: after a symbolic link, `..` leads elsewhere
    except RuntimeError:  # a loop of symbolic links
        target = root
    if trusted or (place != root and place.is_relative_to(root) and target == place):
        return folder / name
    why = "outside the folder of the seed, or behind a symbolic link"
    raise UsageError(f"{folder / name} is {why}; --trust-seed allows that")


def _check_replaceable(file: Path) -> None:
    """Raise `UsageError` if a token must not be written over this file."""
    if not file.exists():
        return
    try:
        content = user_files.content(file, user_files.SECRET)
    except OSError as error:
        raise UsageError(f"{file} exists, and cannot be replaced: {error.strerror}") from None
    if not _TOKEN.fullmatch(content):
        raise UsageError(f"{file} exists and holds no token, so it is not replaced; delete it first")


def _codes_by_place(file: Path, column: str | None) -> list[tuple[str, Any]]:
    """Return the codes of a file, each with its place for messages. Raises `UsageError`."""
    with file_errors(f"read {file}"):
        user_files.opened(file).close()  # a device or a pipe might never end
    with closing(Entries(str(file), column=column)) as entries:
        found = [(entries.place(number), item) for number, item in entries]
    if not 1 <= len(found) <= limits.MAX_CODES:
        raise UsageError(f"{file} has {len(found)} codes; must be 1 to {limits.MAX_CODES}")
    return found


def _read_codes(document: Mapping[str, Any], allowed_file: Callable[[str], Path], report: Report) -> None:
    """Replace `file` and `column` in each code set with the codes from that file.

    Reports files that cannot be read, and codes that are invalid, or twice among the sets of a client id.
    """
    first_places: dict[tuple[str, str], str] = {}
    for number, code_set in enumerate(document.get("codes", [])):
        client_id = code_set.get("client_id", document["client_id"])
        is_in_file = "file" in code_set
        at: positions.Path = ("codes", number, "file" if is_in_file else "codes")
        if is_in_file:
            try:
                found = _codes_by_place(allowed_file(code_set.pop("file")), code_set.pop("column", None))
            except UsageError as error:
                report(at, "; ".join(filter(None, (error.what, error.why))).replace("--column", "column"))
                continue
            code_set["codes"] = [code for _, code in found]
        else:
            found = [(path_text((*at, position)), code) for position, code in enumerate(code_set["codes"])]
        for position, (place, code) in enumerate(found):
            fault = entry_problem(code, "a code", limits.MAX_CODE_LENGTH)
            if not fault and (first := first_places.setdefault((client_id, str(code)), place)) != place:
                fault = f"is the same code as {first}"
            if fault and is_in_file:
                report(at, f"{place} {fault}")
            elif fault:
                report((*at, position), fault)


@dataclass(frozen=True)
class Seed:
    """A valid seed."""

    source: Source
    body: bytes = field(repr=False)
    """What `PUT /_emulator/seed` takes: JSON without variables and files."""
    token_files: Mapping[int, Path]
    """Where to write the refresh token of each link that has a file, by its position in `links`."""

    def save_tokens(self, refresh_tokens: Sequence[str]) -> None:
        """Write the refresh token of each link to its file, readable by this user only. Raises `UsageError`."""
        for at, path in self.token_files.items():
            _check_replaceable(path)  # it may have changed since the seed was read
            atomic_file.replace_text(path, f"{refresh_tokens[at]}\n", keep_mode=False)


def read(path: str | Path, environ: Mapping[str, str], *, trusted: bool = False) -> Seed:
    """Read a seed from a file, or from standard input for `-`. Raises `InvalidFile`, and `UsageError` without a file.

    The files that it names must be in its folder (for standard input, the working directory) unless it is `trusted`.
    A file whose name ends in .json is JSON, as is standard input that begins with a brace; any other is TOML.
    """
    opened = open_source(path)
    document = _DEFAULTS | opened.value(SEED_FILE, environ)
    document["faults"] = [api_members(fault) for fault in document.get("faults", [])]
    found: list[Problem] = []
    allowed_file = partial(_allowed_file, folder=opened.folder, trusted=trusted)
    _read_codes(document, allowed_file, lambda at, problem: found.append((at, problem)))
    files: dict[int, Path] = {}
    for number, link in enumerate(document.get("links", [])):
        if name := link.pop("refresh_token_file", None):
            try:
                files[number] = allowed_file(name)
                _check_replaceable(files[number])
            except UsageError as error:
                found.append((("links", number, "refresh_token_file"), error.what))
    if found:
        raise opened.invalid(found)
    return Seed(opened, json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str).encode(), files)


def apply(seed: Seed, service: Service) -> Json:
    """Apply a seed to a service, write the files with refresh tokens, and return how many records were created.

    Raises `InvalidFile` if the service found errors; then nothing was changed.
    """
    response = seed.source.send(service, "seed", seed.body)
    result: Json = document_of(response, {"counts": dict, "links": [{"refresh": str}]})
    seed.save_tokens([link.pop("refresh") for link in result["links"]])
    return result
