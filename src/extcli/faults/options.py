"""The options of a fault, and the members of `POST /_emulator/faults` that they become. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from extcli.errors import UsageError
from extcli.output import times

EFFECTS: Final = ("status", "delay", "drop", "reset", "truncate", "stall", "close", "lose", "double", "reorder")
"""The options of which a fault has exactly one."""
_BROADCASTS: Final = ("lose", "double", "reorder")
_PARAMETERS: Final = {"status": "status", "truncate": "bytes", "close": "code"}
"""The members that hold the value of an effect."""
_UNCHANGED: Final = ("id", "role", "channel", "user", "client_id", "event", "retry_after", "times", "share", "seed")
_BELONGS: Final = {"retry_after": "status", "seed": "share"}
"""Options that are allowed only beside another."""

Named = Callable[[str], str]
"""Returns an option as the user writes it: `--retry-after` or `retry_after`."""


def problems(options: Mapping[str, Any], named: Named) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the options as a whole: the option to blame, or "" for none, and the problem."""
    effects = [name for name in EFFECTS if name in options]
    if not effects:
        yield "", f"give one effect: {_listed(EFFECTS, named)}"
    for name in effects[1:]:
        yield name, f"a fault has one effect, and {named(effects[0])} is given, too"
    for name, owner in _BELONGS.items():
        if name in options and owner not in options:
            yield name, f"is for {named(owner)} only"
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
