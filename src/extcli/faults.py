"""Converts faults from command options and file tables to the members of `POST /_emulator/faults`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from emulator.contract import faults
from emulator.contract.faults import VALUE_RANGES
from emulator.contract.kinds import Field, ListOf, Report, Simple, Table, Text, Whole, one_of
from emulator.contract.names import NAME_PATTERN, NAME_RULE, Role
from emulator.contract.positions import Path
from extcli.api.call import encoded
from extcli.errors import UsageError
from extcli.output import times
from extcli.tables import open_source

if TYPE_CHECKING:
    from extcli.api.client import Service

_BROADCAST_EFFECTS: Final = ("lose", "double", "reorder")
_EFFECT_MEMBERS: Final = {"status": "status", "truncate": "bytes", "close": "code"}
"""The members that hold the value of an effect."""
_COPIED_OPTIONS: Final = ("id", *faults.CONDITIONS, "retry_after", "times", "share", "seed")

OptionSpelling = Callable[[str], str]
"""Returns an option as the user writes it: `--retry-after` or `retry_after`."""


def option_problems(options: Mapping[str, Any], named: OptionSpelling) -> Iterator[tuple[str, str]]:
    """Yield problems with the combination of options: the wrong option, or "" if no single one, and the problem."""
    effects = [name for name in faults.EFFECTS if name in options]
    if not effects:
        yield "", f"give one effect: {_listed_names(faults.EFFECTS, named)}"
    for name in effects[1:]:
        yield name, f"a fault has one effect, and {named(effects[0])} is also given"
    if "retry_after" in options and "status" not in options:
        yield "retry_after", f"works only with {named('status')}"
    if "seed" in options and "share" not in options and ".." not in options.get("delay", ""):
        yield "seed", f"works only with {named('share')}, or with a range of {named('delay')}"
    if "match" not in options and "event" not in options:
        broadcasts = effects and effects[0] in _BROADCAST_EFFECTS
        example = "BROADCAST *" if broadcasts else "POST /v1/e/vote"
        also = f", or {named('event')} for the broadcasts of an event" if broadcasts else ""
        yield "match", f"give {named('match')}, such as '{example}'{also}"
    elif len(effects) == 1:
        yield from _disallowed_options(effects[0], options, named)
    for name, read in (("delay", delay_members), ("for", times.parse_duration)):
        try:
            if name in options:
                read(options[name])
        except UsageError as error:
            yield name, f"{error.what}; {error.fix or error.why}"


def _disallowed_options(effect: str, options: Mapping[str, Any], named: OptionSpelling) -> Iterator[tuple[str, str]]:
    """Yield the effect, conditions and close code that are not allowed for the fault's kind of match."""
    kind = faults.MATCHES[_kind_of(options.get("match", "BROADCAST"))]
    if effect not in kind.effects:
        yield effect, f"does not act on {kind.name}; use {_listed_names(kind.effects, named)}"
    for name in faults.CONDITIONS:
        if name in options and name not in kind.conditions:
            only = ", ".join(map(named, kind.conditions))
            yield name, f"must be absent: {kind.name} have only the conditions {only}"
    if effect == "close" and not faults.is_close_code(options["close"]):
        yield "close", f"{options['close']} may not be sent; use {faults.CLOSE_CODES}"


def _kind_of(match: str) -> str:
    """Return the kind of a match, as a key of `faults.MATCHES`. The service checks the rest of the match."""
    words = match.split()
    if words[:1] == ["SOCKET"]:
        return "connect" if words[1:] == ["connect"] else "message"
    return "broadcast" if words[:1] == ["BROADCAST"] else "request"


def checked_members(given: Mapping[str, Any], named: OptionSpelling) -> dict[str, Any]:
    """Return the options that are given as members of the API. Raises `UsageError` for the first problem."""
    options = {name: value for name, value in given.items() if value is not None and value is not False}
    for name, problem in option_problems(options, named):
        raise UsageError(f"{named(name)}: {problem}" if name in options else problem)
    return api_members(options)


def api_members(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without problems as members of the API."""
    (effect,) = (name for name in faults.EFFECTS if name in options)
    document = {name: options[name] for name in _COPIED_OPTIONS if name in options}
    document["match"] = options.get("match") or f"BROADCAST {document.pop('event')}"
    document["effect"] = effect
    if effect == "delay":
        document |= delay_members(options["delay"])
    elif effect in _EFFECT_MEMBERS:
        document[_EFFECT_MEMBERS[effect]] = options[effect]
    if "for" in options:
        document["lasts"] = times.parse_duration(options["for"])
    return document


def delay_members(text: str) -> dict[str, int]:
    """Return `200ms` as the member `delay` in ms, and `200ms..2s` with `delay_max`. Raises `UsageError`."""
    shortest, dots, longest = text.partition("..")
    found = {"delay": times.parse_duration(shortest)}
    if dots:
        found["delay_max"] = times.parse_duration(longest)
        if found["delay_max"] < found["delay"]:
            raise UsageError(f"{text!r} is not a delay", why="write the shorter duration first: 200ms..2s")
    return found


def _listed_names(names: Sequence[str], named: OptionSpelling) -> str:
    *others, last = map(named, names)
    return f"{', '.join(others)} or {last}"


def _parses(read: Callable[[str], Mapping[str, int]]) -> Callable[[object], bool]:
    """Return the test whether `read` accepts a text, and finds members in their ranges."""

    def accepts(value: object) -> bool:
        try:
            found = read(str(value))
        except UsageError:
            return False
        ranges = [(number, *VALUE_RANGES[name]) for name, number in found.items()]
        return isinstance(value, str) and all(least <= number <= most for number, least, most in ranges)

    return accepts


def _check_options(fault: dict[str, Any], path: Path, report: Report) -> None:
    for name, problem in option_problems(fault, lambda option: option):
        report((*path, name) if name else path, problem)


_TEXT = Text(faults.MAX_TEXT_LENGTH)
_TRUE = Simple("true", lambda value: value is True)
_DURATION = Simple('a duration over 0, such as "10s"', _parses(lambda text: {"lasts": times.parse_duration(text)}))
_DELAY = Simple('a duration of at most 10 minutes or a range of two, such as "200ms..2s"', _parses(delay_members))
_SHARE = Simple("a number over 0, at most 1", lambda value: type(value) in (int, float) and 0 < value <= 1)
FAULT = Table(
    {
        "id": Field(Text(pattern=NAME_PATTERN, rule=NAME_RULE), "the fault's id"),
        "match": Field(_TEXT, "the target: a method and a path, SOCKET with action and target, or BROADCAST"),
        "event": Field(_TEXT, "only broadcasts of this event"),
        "role": Field(one_of(tuple(Role)), "only callers with this role"),
        "user": Field(_TEXT, "only this user"),
        "client_id": Field(_TEXT, "only this client id"),
        "channel": Field(_TEXT, "only this channel"),
        "status": Field(Whole(*VALUE_RANGES["status"]), "effect: respond with this status"),
        "retry_after": Field(Whole(*VALUE_RANGES["retry_after"]), "with status: seconds for the header Retry-After"),
        "delay": Field(_DELAY, "effect: respond later"),
        "drop": Field(_TRUE, "effect: close the connection without a response"),
        "reset": Field(_TRUE, "effect: reset the connection"),
        "truncate": Field(Whole(*VALUE_RANGES["bytes"]), "effect: cut the response's body after this many bytes"),
        "stall": Field(_TRUE, "effect: never respond"),
        "close": Field(Whole(1000, 4999), "effect: close the socket with this code"),
        "lose": Field(_TRUE, "effect: do not deliver the broadcast"),
        "double": Field(_TRUE, "effect: deliver the broadcast twice"),
        "reorder": Field(_TRUE, "effect: deliver the broadcast after the next one"),
        "times": Field(Whole(*VALUE_RANGES["times"]), "the fault ends after this many hits"),
        "share": Field(_SHARE, "act on only this share of the matches, at random"),
        "seed": Field(Whole(*VALUE_RANGES["seed"]), "the seed of the random share and delay; 0 by default"),
        "for": Field(_DURATION, "only for this long, by the service's clock"),
    },
    _check_options,
)
FAULTS = ListOf(FAULT, "faults", faults.MAX_FAULTS)
FAULTS_FILE = Table({"faults": Field(FAULTS, "the faults", required=True)})
"""A file of faults."""


def load_faults(path: str, environ: Mapping[str, str], service: Service) -> Any:
    """Send the faults of a TOML or JSON file and return the response. Raises `UsageError` and `InvalidFile`.

    If the file or the service finds an error, nothing was changed.
    """
    opened = open_source(path)
    members = [api_members(fault) for fault in opened.value(FAULTS_FILE, environ)["faults"]]
    return opened.send(service, "faults", encoded({"faults": members}))
