"""Seeds: files with the data that a test begins with. `SEED` is the reference of their fields; `read` checks them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.contract import kinds, limits, positions, user_files
from emulator.contract.kinds import Field, Json, ListOf, MapOf, Report, Table, Text, Whole, instant_of
from emulator.contract.names import CLIENT_ID, CLIENT_ID_RULE, GLOBAL, POLL_ID, POLL_ID_RULE, VIEWER_STORES
from emulator.contract.positions import path_text
from extcli import atomic_file
from extcli.api.call import encoded
from extcli.codes.entries import Entries
from extcli.codes.upload import problem_of_entry
from extcli.config.settings import DEFAULT_CHANNEL, DEFAULT_CLIENT_ID
from extcli.errors import UsageError
from extcli.faults import FAULTS, members
from extcli.reading import document_of
from extcli.tables import Problem, Source, source

if TYPE_CHECKING:
    from extcli.api.client import Service

VERSION = 1
STORES = (
    "extension_state",
    "channel_state",
    *VIEWER_STORES,
    "extension_hidden_state",
    "extension_config",
    "channel_config",
)
_MANY = 100_000


@dataclass(frozen=True)
class OneOrMore:
    """A value, or a list of such values."""

    kind: kinds.ValueKind
    most: int

    @property
    def allowed(self) -> str:
        return f"{self.kind.allowed}, or a list of them"

    def check(self, value: object, path: positions.Path, report: Report) -> None:
        kind = ListOf(self.kind, "values", self.most, 1) if isinstance(value, list) else self.kind
        kind.check(value, path, report)


_required = partial(Field, required=True)
_FLAG = kinds.Simple("true or false", lambda value: isinstance(value, bool))
_INSTANT = kinds.Simple('a time with a zone in RFC 3339, such as "2026-12-24T18:00:00Z"', instant_of)
"""A point in time with a zone: a TOML date and time, or a text in RFC 3339."""
_CLIENT_ID = Text(pattern=CLIENT_ID, rule=f"a client id: {CLIENT_ID_RULE}")
_CHANNEL = _ID = Text(limits.MAX_ID_LENGTH)
_POLL_ID = Text(pattern=POLL_ID, rule=POLL_ID_RULE)
_VOTE = OneOrMore(Whole(limits.LOWEST, limits.HIGHEST), limits.MAX_VOTES)
_VOTES = Whole(1, limits.MAX_VOTES)
_OPTIONS = ListOf(Text(bytes=limits.MAX_OPTION_BYTES), "options", limits.MAX_OPTIONS, 1)
_DISTINCT = Whole(1, limits.MAX_DISTINCT_OPTIONS)
_CODES = ListOf(Text(limits.MAX_CODE_LENGTH), "codes", limits.MAX_CODES)
_OF_EXTENSION = {"client_id": Field(_CLIENT_ID, "the client id, if not the one at the top")}
_PLACE = {**_OF_EXTENSION, "channel": Field(_CHANNEL, "the channel, if not the one at the top")}


def _poll_rule(poll: dict[str, Any], path: positions.Path, report: Report) -> None:
    starts, ends = instant_of(poll.get("starts_at")), instant_of(poll.get("ends_at"))
    if starts and ends and starts > ends:
        report((*path, "starts_at"), "must not be after ends_at")
    for user, votes in poll.get("votes", {}).items():
        values = votes if isinstance(votes, list) else [votes]
        numbers = {
            "total_votes_per_user": len(values),
            "votes_per_option": max(Counter(values).values()),
            "distinct_options_per_user": len(set(values)),
        }
        exceeded = [name for name, number in numbers.items() if number > poll.get(name, 1)]
        for name in exceeded[:1]:
            report((*path, "votes", user), f"{numbers[name]} is more than {name}, which is {poll.get(name, 1)}")


def _store_rule(store: dict[str, Any], path: positions.Path, report: Report) -> None:
    is_of_user = store["store"] in VIEWER_STORES
    if is_of_user != ("user" in store):
        problem = "missing" if is_of_user else "must be left out"
        report((*path, "user"), f"{problem}; {store['store']} belongs to {'a' if is_of_user else 'no'} user")


def _codes_rule(codes: dict[str, Any], path: positions.Path, report: Report) -> None:
    if ("file" in codes) == ("codes" in codes):
        report((*path, "codes"), "give either file or codes")
    elif "column" in codes and "codes" in codes:
        report((*path, "column"), "is for file only")


def _clock_rule(clock: dict[str, Any], path: positions.Path, report: Report) -> None:
    if not clock:
        report(path, "give at, or frozen, or both")


def _seed_rule(seed: dict[str, Any], path: positions.Path, report: Report) -> None:
    """Report polls, rankings and other records that two tables of a seed describe."""
    at_top = {"client_id": DEFAULT_CLIENT_ID, "channel": DEFAULT_CHANNEL} | seed
    for kind in ("polls", "rankings", "buffers", "stores", "json_stores", "codes", "links", "faults"):
        taken: dict[tuple[object, ...], int] = {}
        for at, each in enumerate(seed.get(kind, [])):
            for name, *identity in _identities(kind, at_top | each):
                if (first := taken.setdefault((name, *identity), at)) != at:
                    report((kind, at, name), f"{kind}[{first}] has the same {name}")


def _identities(kind: str, each: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the field with the id of a record, and all values that distinguish the record from others."""
    client_id, channel = each["client_id"], each["channel"]
    if kind == "codes":
        yield from ((name, client_id, each[name]) for name in ("index", "name"))
    elif kind == "stores":
        store = each["store"]
        of_channel = channel if store.startswith("channel") or store == "viewer_state" else None
        yield "store", None if store.startswith("channel") else client_id, of_channel, store, each.get("user")
    elif kind == "links":
        yield "channel", client_id, channel
    elif kind == "faults":
        if "id" in each:
            yield "id", each["id"]
    else:
        is_shared = each["id"].startswith("global" if kind == "json_stores" else GLOBAL) and kind != "buffers"
        yield "id", client_id, None if is_shared else channel, each["id"]


POLL = Table(
    {
        "id": _required(_POLL_ID, "the poll's id; all channels share one that starts with global-"),
        "prompt": Field(Text(bytes=limits.MAX_PROMPT_BYTES), "the question"),
        "options": Field(_OPTIONS, "the options; a vote for the first has value 0"),
        "user_data": Field(Json(limits.MAX_USER_DATA_BYTES), "your own data"),
        "starts_at": Field(_INSTANT, "when it opens"),
        "ends_at": Field(_INSTANT, "when it ends; it has its votes even if that is past"),
        "user_id_voting": Field(_FLAG, "whether only users who share their identity can vote"),
        "distinct_options_per_user": Field(_DISTINCT, "the most options of one user; 1 by default"),
        "total_votes_per_user": Field(_VOTES, "the most votes of one user; 1 by default, more add up"),
        "votes_per_option": Field(_VOTES, "the most votes of one user for one option; 1 by default"),
        "disabled": Field(_FLAG, "whether it refuses votes"),
        "votes": Field(MapOf(_VOTE), "the votes by user, in order"),
        **_PLACE,
    },
    _poll_rule,
)
RANKING = Table(
    {
        "id": _required(_ID, "the ranking's id; all channels share one that starts with global-"),
        "answers": _required(MapOf(Text(bytes=limits.MAX_ANSWER_BYTES)), "the answers by user, in order"),
        **_PLACE,
    }
)
ENTRY = Table({"user": _required(kinds.USER, "who added it"), "data": _required(Json(255), "the JSON value")})
BUFFER = Table(
    {
        "id": _required(_ID, "the buffer's id"),
        "entries": _required(ListOf(ENTRY, "entries", _MANY, 1), "tables, oldest first"),
        **_PLACE,
    }
)
STORE = Table(
    {
        "store": _required(kinds.one_of(STORES), "the store"),
        "user": Field(kinds.USER, "whose it is, for viewer_state and extension_viewer_state"),
        "data": _required(Json(limits.MAX_STORE_BYTES, is_object=True), "its content"),
        **_PLACE,
    },
    _store_rule,
)
JSON_STORE = Table(
    {
        "id": _required(_ID, "the store's id; all channels share one that starts with global"),
        "data": _required(Json(limits.MAX_JSON_STORE_BYTES, is_object=True), "its content"),
        **_PLACE,
    }
)
CODES = Table(
    {
        "index": _required(Whole(0, limits.MAX_SETS - 1), "the set's index"),
        "name": _required(Text(limits.MAX_SET_NAME_LENGTH), "the set's name"),
        "file": Field(Text(4096), "a file of codes, relative to the seed: text, CSV, JSON or JSON lines"),
        "column": Field(Text(256), "the column of a CSV file, by heading or number; the member of JSON lines"),
        "codes": Field(_CODES, "the codes themselves, in place of a file"),
        "marked": Field(MapOf(Whole(1, 1_000)), "how many of the codes each marked user may redeem"),
        **_OF_EXTENSION,
    },
    _codes_rule,
)
_TOKEN_FILE = "where to write the game's refresh token, relative to the seed; only you can read it"
LINK = Table({"refresh_token_file": Field(Text(4096), _TOKEN_FILE), **_PLACE})
CLOCK = Table(
    {"at": Field(_INSTANT, "the time to set it to"), "frozen": Field(_FLAG, "whether it stands still")}, _clock_rule
)
SEED = Table(
    {
        "extcli": _required(Whole(VERSION, VERSION), "the version of this format"),
        "client_id": Field(_CLIENT_ID, f"the extension's client id; {DEFAULT_CLIENT_ID} by default"),
        "channel": Field(_CHANNEL, f"the channel; {DEFAULT_CHANNEL} by default"),
        "clock": Field(CLOCK, "the service's clock, which then runs on unless it is frozen"),
        "polls": Field(ListOf(POLL, "polls", _MANY), "polls: definitions and votes"),
        "rankings": Field(ListOf(RANKING, "rankings", _MANY), "rankings: the answers of users"),
        "buffers": Field(ListOf(BUFFER, "buffers", _MANY), "buffers of small JSON values"),
        "stores": Field(ListOf(STORE, "stores", _MANY), "state and config stores"),
        "json_stores": Field(ListOf(JSON_STORE, "json_stores", _MANY), "JSON stores"),
        "codes": Field(ListOf(CODES, "codes", _MANY), "sets of reward codes"),
        "links": Field(ListOf(LINK, "links", _MANY), "channels that a game is linked to"),
        "faults": Field(FAULTS, "faults: failures on purpose"),
    },
    _seed_rule,
)


def reference(table: Table = SEED, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield every field as three texts: its path, what it accepts, and its meaning."""
    for name, each in table.fields.items():
        kind, path = each.kind, f"{prefix}{name}"
        allowed = "a client id, as at the top" if prefix and kind is _CLIENT_ID else kind.allowed
        if isinstance(kind, ListOf) and isinstance(kind.kind, Table):
            kind, path, allowed = kind.kind, f"{path}[]", "a list of tables"
        yield path, f"{allowed}; required" if each.required else allowed, each.meaning
        if isinstance(kind, Table):
            yield from reference(kind, f"{path}.")


# The files that a seed names

_TOKEN = re.compile(rb"\s*(?:[\w-]+\.[\w-]+\.[\w-]*)?\s*")


def _why_not_allowed(name: str, folder: Path, *, trusted: bool) -> str:
    """Return why a seed in this folder may not use a file; empty if it may. A `trusted` seed may use any."""
    root = folder.resolve()
    place = Path(os.path.normpath(root / name))
    try:
        target = (root / name).resolve()  # not of `place`: after a symbolic link, `..` leads elsewhere
    except RuntimeError:  # a loop of symbolic links
        target = root
    if trusted or (place != root and place.is_relative_to(root) and target == place):
        return ""
    return f"{folder / name} is outside the folder of the seed, or behind a symbolic link; --trust-seed allows that"


def _why_not_replaceable(file: Path) -> str:
    """Return why a token must not be written over this file; empty if it may be."""
    if not file.exists():
        return ""
    try:
        is_token = _TOKEN.fullmatch(user_files.content(file, user_files.SECRET)) is not None
    except OSError as error:
        return f"{file} exists, and cannot be replaced: {error.strerror}"
    return "" if is_token else f"{file} exists and holds no token, so it is not replaced; delete it first"


def _read_codes(document: Mapping[str, Any], folder: Path, why_not: Callable[[str], str], report: Report) -> None:
    """Replace `file` and `column` in each code set with the codes from that file, unless `why_not` has a reason.

    Reports codes that are invalid, or twice among the sets of a client id.
    """
    seen: dict[tuple[str, str], str] = {}
    for number, code_set in enumerate(document.get("codes", [])):
        client_id = code_set.get("client_id", document["client_id"])
        is_in_file = "file" in code_set
        at: positions.Path = ("codes", number, "file" if is_in_file else "codes")
        if is_in_file:
            try:
                found = _codes_of_file(code_set.pop("file"), code_set.pop("column", None), folder, why_not)
            except UsageError as error:
                report(at, "; ".join(filter(None, (error.what, error.why))).replace("--column", "column"))
                continue
            code_set["codes"] = [code for _, code in found]
        else:
            found = [(path_text((*at, position)), code) for position, code in enumerate(code_set["codes"])]
        for position, (place, code) in enumerate(found):
            fault = problem_of_entry(code, "a code", limits.MAX_CODE_LENGTH)
            if not fault and (first := seen.setdefault((client_id, str(code)), place)) != place:
                fault = f"is the same code as {first}"
            if fault and is_in_file:
                report(at, f"{place} {fault}")
            elif fault:
                report((*at, position), fault)


def _codes_of_file(
    name: str,
    column: str | None,
    folder: Path,
    why_not: Callable[[str], str],
) -> list[tuple[str, Any]]:
    """Return the codes of a file, each with its place for messages. Raises `UsageError`."""
    if problem := why_not(name):
        raise UsageError(problem)
    file = str(folder / name)
    try:
        user_files.opened(file).close()  # a device or a pipe might never end
    except OSError as error:
        raise UsageError(f"cannot read {file}", why=error.strerror or "") from None
    with closing(Entries(file, column=column)) as entries:
        found = [(entries.place(number), item) for number, item in entries]
    if not 1 <= len(found) <= limits.MAX_CODES:
        raise UsageError(f"{file} has {len(found)} codes; must be 1 to {limits.MAX_CODES}")
    return found


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
            if problem := _why_not_replaceable(path):  # it may have changed since the seed was read
                raise UsageError(f"cannot write {path}", why=problem)
            atomic_file.save(path, f"{refresh_tokens[at]}\n", keep_mode=False)


def read(path: str | Path, environ: Mapping[str, str], *, trusted: bool = False) -> Seed:
    """Read a seed from a file, or from standard input for `-`. Raises `InvalidFile`, and `UsageError` without a file.

    The files that it names must be in its folder (for standard input, the working directory) unless it is `trusted`.
    A file whose name ends in .json is JSON, as is standard input that begins with a brace; any other is TOML.
    """
    found: list[Problem] = []
    opened = source(path)
    document = _document(opened.value(SEED, environ))
    why_not = partial(_why_not_allowed, folder=opened.folder, trusted=trusted)
    _read_codes(document, opened.folder, why_not, lambda at, problem: found.append((at, problem)))
    files: dict[int, Path] = {}
    for number, link in enumerate(document.get("links", [])):
        if name := link.pop("refresh_token_file", None):
            files[number] = opened.folder / name
            if problem := why_not(name) or _why_not_replaceable(files[number]):
                found.append((("links", number, "refresh_token_file"), problem))
    if found:
        raise opened.invalid(found)
    return Seed(opened, encoded(document), files)


def _document(seed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the seed with its defaults, every point in time as RFC 3339, and faults as the service takes them."""
    document: dict[str, Any] = {"extcli": VERSION, "client_id": DEFAULT_CLIENT_ID, "channel": DEFAULT_CHANNEL, **seed}
    for table in (document.get("clock", {}), *document.get("polls", [])):
        for name in ("at", "starts_at", "ends_at"):
            if instant := instant_of(table.get(name)):
                table[name] = instant.isoformat()
    if "faults" in document:
        document["faults"] = [members(fault) for fault in document["faults"]]
    return document


def apply(seed: Seed, service: Service) -> dict[str, Any]:
    """Apply a seed to a service, write the files with refresh tokens, and return how many records were created.

    Raises `InvalidFile` if the service found errors; then nothing was changed.
    """
    response = seed.source.send(service, "seed", seed.body)
    result: dict[str, Any] = document_of(response, {"counts": dict, "links": [{"refresh": str}]})
    seed.save_tokens([link.pop("refresh") for link in result["links"]])
    return result
