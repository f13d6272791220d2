"""The options of a fault, and the members of `POST /_emulator/faults` that they become. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from extcli.errors import UsageError
from extcli.output import times

EFFECTS: Final = ("status", "delay", "drop", "reset", "truncate", "stall", "close", "lose", "double", "reorder")
"""The options of which a fault has exactly one."""
_BROADCASTS: Final = ("lose", "double", "reorder")
_PARAMETERS: Final = {"status": "status", "truncate": "bytes", "close": "code"}
"""The members that hold the value of an effect."""
_UNCHANGED: Final = ("id", "role", "channel", "user", "client_id", "event", "retry_after", "times", "share", "seed")
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
    if "times" in options and "share" in options:
        yield "share", f"give {named('times')} or {named('share')}, not both"
    if "match" not in options and "event" not in options:
        broadcasts = effects and effects[0] in _BROADCASTS
        example = "BROADCAST *" if broadcasts else "POST /v1/e/vote"
        also = f", or {named('event')} for the broadcasts of an event" if broadcasts else ""
        yield "match", f"give {named('match')}, such as '{example}'{also}"
    for name, read in (("delay", delays), ("for", times.duration)):
        try:
            if name in options:
                read(options[name])
        except UsageError as error:
            yield name, f"{error.what}; {error.fix or error.why}"


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


def _listed(names: tuple[str, ...], named: Named) -> str:
    *others, last = map(named, names)
    return f"{', '.join(others)} or {last}"
