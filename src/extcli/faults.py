"""Converts faults from command options and file tables to the members of `POST /_emulator/faults`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from emulator.contract.faults import CLOSE_CODES, LONGEST_TEXT, MATCHES, MAX_FAULTS, RANGES
from emulator.contract.kinds import Field, ListOf, Report, Simple, Table, Text, Whole, one_of
from emulator.contract.names import NAME, NAME_RULE, Role
from emulator.contract.positions import Path
from extcli import bounded_json
from extcli.errors import Refused, UsageError
from extcli.output import times
from extcli.reading.shapes import SHAPE_ERRORS
from extcli.tables import source

if TYPE_CHECKING:
    from extcli.api.control import Control

EFFECTS: Final = ("status", "delay", "drop", "reset", "truncate", "stall", "close", "lose", "double", "reorder")
"""A fault has exactly one of these options."""
_BROADCASTS: Final = ("lose", "double", "reorder")
_PARAMETERS: Final = {"status": "status", "truncate": "bytes", "close": "code"}
"""The members that hold the value of an effect."""
_CONDITIONS: Final = MATCHES["broadcast"].conditions
_UNCHANGED: Final = ("id", *_CONDITIONS, "retry_after", "times", "share", "seed")
_OPTIONS: Final = {"bytes": "truncate", "code": "close", "lasts": "for", "delay_max": "delay"}
_MEMBER: Final = re.compile(r"faults\[(\d+)\]\.(\w+)")

Named = Callable[[str], str]
"""Returns an option as the user writes it: `--retry-after` or `retry_after`."""


def problems(options: Mapping[str, Any], named: Named) -> Iterator[tuple[str, str]]:
    """Yield problems with the combination of options: the wrong option, or "" if no single one, and the problem."""
    effects = [name for name in EFFECTS if name in options]
    if not effects:
        yield "", f"give one effect: {_listed_names(EFFECTS, named)}"
    for name in effects[1:]:
        yield name, f"a fault has one effect, and {named(effects[0])} is also given"
    if "retry_after" in options and "status" not in options:
        yield "retry_after", f"is for {named('status')} only"
    if "seed" in options and "share" not in options and ".." not in options.get("delay", ""):
        yield "seed", f"is for {named('share')}, or a range of {named('delay')}, only"
    if "match" not in options and "event" not in options:
        broadcasts = effects and effects[0] in _BROADCASTS
        example = "BROADCAST *" if broadcasts else "POST /v1/e/vote"
        also = f", or {named('event')} for the broadcasts of an event" if broadcasts else ""
        yield "match", f"give {named('match')}, such as '{example}'{also}"
    elif len(effects) == 1:
        yield from _not_allowed(effects[0], options, named)
    for name, read in (("delay", delays), ("for", times.duration)):
        try:
            if name in options:
                read(options[name])
        except UsageError as error:
            yield name, f"{error.what}; {error.fix or error.why}"


def _not_allowed(effect: str, options: Mapping[str, Any], named: Named) -> Iterator[tuple[str, str]]:
    """Yield the effect, conditions and close code that are not allowed for the fault's kind of match."""
    kind = MATCHES[_kind_of(options.get("match", "BROADCAST"))]
    if effect not in kind.effects:
        yield effect, f"does not act on {kind.name}; use {_listed_names(kind.effects, named)}"
    for name in _CONDITIONS:
        if name in options and name not in kind.conditions:
            only = ", ".join(map(named, kind.conditions))
            yield name, f"must be absent: {kind.name} have only the conditions {only}"
    if effect == "close" and not any(low <= options["close"] <= high for low, high in CLOSE_CODES):
        allowed = ", ".join(f"{low} to {high}" for low, high in CLOSE_CODES)
        yield "close", f"{options['close']} may not be sent; use {allowed}"


def _kind_of(match: str) -> str:
    """Return the kind of a match, as a key of `MATCHES`. The service checks the rest of the match."""
    words = match.split()
    if words[:1] == ["SOCKET"]:
        return "connect" if words[1:] == ["connect"] else "message"
    return "broadcast" if words[:1] == ["BROADCAST"] else "request"


def checked_members(given: Mapping[str, Any], named: Named) -> dict[str, Any]:
    """Return the options that are given as members of the API. Raises `UsageError` for the first problem."""
    options = {name: value for name, value in given.items() if value is not None and value is not False}
    for name, problem in problems(options, named):
        raise UsageError(f"{named(name)}: {problem}" if name in options else problem)
    return members(options)


def members(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without problems as members of the API."""
    (effect,) = (name for name in EFFECTS if name in options)
    document = {name: options[name] for name in _UNCHANGED if name in options}
    document["match"] = options.get("match") or f"BROADCAST {document.pop('event')}"
    document["effect"] = effect
    if effect == "delay":
        document |= delays(options["delay"])
    elif effect in _PARAMETERS:
        document[_PARAMETERS[effect]] = options[effect]
    if "for" in options:
        document["lasts"] = times.duration(options["for"])
    return document


def in_options(detail: str, documents: Sequence[Mapping[str, Any]]) -> str:
    """Return a detail of a refusal, which begins with a member such as `faults[0].bytes`, with the option's name.

    `documents` are the members of the faults that were sent.
    """
    found = _MEMBER.match(detail)
    if not found:
        return detail
    at, member = int(found[1]), found[2]
    name = documents[at]["effect"] if member == "effect" else _OPTIONS.get(member, member)
    return f"faults[{at}].{name}{detail[found.end() :]}"


def delays(text: str) -> dict[str, int]:
    """Return `200ms` as the member `delay` in ms, and `200ms..2s` with `delay_max`. Raises `UsageError`."""
    shortest, dots, longest = text.partition("..")
    found = {"delay": times.duration(shortest)}
    if dots:
        found["delay_max"] = times.duration(longest)
        if found["delay_max"] < found["delay"]:
            raise UsageError(f"{text!r} is not a delay", why="the second duration is the longest: 200ms..2s")
    return found


def _listed_names(names: Sequence[str], named: Named) -> str:
    *others, last = map(named, names)
    return f"{', '.join(others)} or {last}"


def _read_by(read: Callable[[str], object]) -> Callable[[object], bool]:
    """Return the test whether `read` accepts a text."""

    def accepts(value: object) -> bool:
        try:
            read(str(value))
        except UsageError:
            return False
        return isinstance(value, str)

    return accepts


@dataclass(frozen=True)
class Only:
    """The only allowed value is `true`, for an effect without a value."""

    allowed: str = "true"

    def check(self, value: object, path: Path, report: Report) -> None:
        if value is not True:
            report(path, f"must be {self.allowed}, or left out")


def _rule(fault: dict[str, Any], path: Path, report: Report) -> None:
    for name, problem in problems(fault, lambda option: option):
        report((*path, name) if name else path, problem)


def _ids_rule(document: dict[str, Any], path: Path, report: Report) -> None:
    report_repeated_ids(document["faults"], report)


def report_repeated_ids(faults: list[dict[str, Any]], report: Report) -> None:
    """Report faults with the same id."""
    first: dict[str, int] = {}
    for at, fault in enumerate(faults):
        if "id" in fault and first.setdefault(fault["id"], at) != at:
            report(("faults", at, "id"), f"faults[{first[fault['id']]}] has the same id")


_TEXT = Text(LONGEST_TEXT)
_EFFECT = Only()
_DURATION = Simple('a duration, such as "10s"', _read_by(times.duration))
_DELAY = Simple('a duration or two, such as "200ms" or "200ms..2s"', _read_by(delays))
_SHARE = Simple("a number over 0, at most 1", lambda value: type(value) in (int, float) and 0 < value <= 1)
FAULT = Table(
    {
        "id": Field(Text(pattern=NAME, rule=NAME_RULE), "the fault's id"),
        "match": Field(_TEXT, "what it acts on: a method and a path, SOCKET with action and target, or BROADCAST"),
        "event": Field(_TEXT, "only broadcasts of this event"),
        "role": Field(one_of(tuple(Role)), "only callers with this role"),
        "user": Field(_TEXT, "only this user"),
        "client_id": Field(_TEXT, "only this client id"),
        "channel": Field(_TEXT, "only this channel"),
        "status": Field(Whole(*RANGES["status"]), "effect: respond with this status"),
        "retry_after": Field(Whole(*RANGES["retry_after"]), "with status: seconds for the header Retry-After"),
        "delay": Field(_DELAY, "effect: respond later"),
        "drop": Field(_EFFECT, "effect: close the connection without a response"),
        "reset": Field(_EFFECT, "effect: reset the connection"),
        "truncate": Field(Whole(*RANGES["bytes"]), "effect: cut the response's body after this many bytes"),
        "stall": Field(_EFFECT, "effect: never respond"),
        "close": Field(Whole(1000, 4999), "effect: close the socket with this code"),
        "lose": Field(_EFFECT, "effect: do not deliver the broadcast"),
        "double": Field(_EFFECT, "effect: deliver the broadcast twice"),
        "reorder": Field(_EFFECT, "effect: deliver the broadcast after the next one"),
        "times": Field(Whole(*RANGES["times"]), "end after this many hits"),
        "share": Field(_SHARE, "hit only this share, at random"),
        "seed": Field(Whole(*RANGES["seed"]), "another choice of share and delay; 0 by default"),
        "for": Field(_DURATION, "only for this long, by the service's clock"),
    },
    _rule,
)
FAULTS = ListOf(FAULT, "faults", MAX_FAULTS)
DOCUMENT = Table({"faults": Field(FAULTS, "the faults", required=True)}, _ids_rule)
"""A file of faults."""


_PLACE = re.compile(r"faults\[\d+\]")


def load_faults(path: str, environ: Mapping[str, str], service: Control) -> Any:
    """Send the faults of a TOML or JSON file and return the response. Raises `UsageError` and `InvalidFile`.

    If the file or the service finds an error, nothing was changed.
    """
    opened = source(path)
    faults = [members(fault) for fault in opened.value(DOCUMENT, environ)["faults"]]
    try:
        return service.replace_faults(faults)
    except Refused as error:
        if details := _problems(error.body):
            raise opened.refused([in_options(detail, faults) for detail in details]) from None
        raise


def _problems(body: bytes) -> list[str]:
    """Return the details of an error response that name a fault; none if it is about something else."""
    try:
        details = [error["detail"] for error in bounded_json.decoded(body)["errors"]]
    except SHAPE_ERRORS:
        return []
    return details if all(map(_PLACE.match, details)) else []
