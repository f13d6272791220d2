"""The options of a fault, and the members of `POST /_emulator/faults` that they become. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from extcli.errors import UsageError
from extcli.output import times

EFFECTS: Final = ("status", "delay", "drop", "reset", "truncate", "stall", "close", "lose", "double", "reorder")
"""The options of which a fault has exactly one."""
_BROADCASTS: Final = ("lose", "double", "reorder")
_PARAMETERS: Final = {"status": "status", "truncate": "bytes", "close": "code"}
"""The members that hold the value of an effect."""
_CONDITIONS: Final = ("role", "channel", "user", "client_id", "event")
_UNCHANGED: Final = ("id", *_CONDITIONS, "retry_after", "times", "share", "seed")
_OPTIONS: Final = {"bytes": "truncate", "code": "close", "lasts": "for", "delay_max": "delay"}
_MEMBER: Final = re.compile(r"faults\[(\d+)\]\.(\w+)")

Named = Callable[[str], str]
"""Returns an option as the user writes it: `--retry-after` or `retry_after`."""


def problems(options: Mapping[str, Any], named: Named) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the options as a whole: the option to blame, or "" for none, and the problem."""
    effects = [name for name in EFFECTS if name in options]
    if not effects:
        yield "", f"give one effect: {_listed(EFFECTS, named)}"
    for name in effects[1:]:
        yield name, f"a fault has one effect, and {named(effects[0])} is given, too"
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
    """Yield the effect, the conditions and the close code that what the fault matches cannot have."""
    kind = _allowed()["matches"][_kind_of(options.get("match", "BROADCAST"))]
    if effect not in kind["effects"]:
        yield effect, f"does not act on {kind['name']}; use {_listed(kind['effects'], named)}"
    for name in _CONDITIONS:
        if name in options and name not in kind["conditions"]:
            only = ", ".join(map(named, kind["conditions"]))
            yield name, f"must be absent: {kind['name']} have only the conditions {only}"
    ranges = _allowed()["close_codes"]
    if effect == "close" and not any(low <= options["close"] <= high for low, high in ranges):
        allowed = ", ".join(f"{low} to {high}" for low, high in ranges)
        yield "close", f"{options['close']} may not be sent; use {allowed}"


def _kind_of(match: str) -> str:
    """Return what a match is about, as a key of `matches`; the service checks the rest of it."""
    words = match.split()
    if words[:1] == ["SOCKET"]:
        return "connect" if words[1:] == ["connect"] else "message"
    return "broadcast" if words[:1] == ["BROADCAST"] else "request"


@cache
def _allowed() -> Any:
    """Return what each kind of match can have, which the service's package ships as data."""
    return json.loads((files("emulator") / "control" / "faults" / "allowed.json").read_text("utf-8"))


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


def _listed(names: Sequence[str], named: Named) -> str:
    *others, last = map(named, names)
    return f"{', '.join(others)} or {last}"
