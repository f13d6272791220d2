"""Faults: their members, their checks, and their matches. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from emulator.callers import Role
from emulator.contract.faults import CLOSE_CODES, KINDS, LONGEST_TEXT, RANGES
from emulator.contract.names import NAME, NAME_RULE
from emulator.errors import ServiceError
from emulator.faults import BROADCAST, CLOSE, CONNECT, DELAY, MESSAGE, REQUEST, STATUS, TRUNCATE, Subject
from emulator.wire.refusals import invalid_member, missing_member, too_long

DEFAULT_STATUS: Final = 503
DEFAULT_CODE: Final = 1012
"""The close code for a service that restarts."""
ANY: Final = "*"
EFFECTS: Final[Mapping[str, Sequence[str]]] = {name: each.effects for name, each in KINDS.items()}
"""The effects that each kind of match can have."""
CONDITIONS: Final[Mapping[str, Sequence[str]]] = {name: each.conditions for name, each in KINDS.items()}
"""The conditions that each kind of match can have."""
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    STATUS: ("status", "retry_after"),
    DELAY: ("delay", "delay_max"),
    TRUNCATE: ("bytes",),
    CLOSE: ("code",),
}
_SOCKET: Final = "SOCKET"
_BROADCAST: Final = "BROADCAST"
_EVERY_TARGET: Final = ("subscribe", "unsubscribe")
"""Actions that take the name of any event as their target."""


class Fault(Struct, forbid_unknown_fields=True):
    """A fault, with flat members. Only one fault acts on a request: the oldest that matches and is due."""

    match: str
    """`POST /v1/e/vote`: a method or `*`, and a path or a beginning of one with `*`.

    `SOCKET set state`: action and target of a game's message. `SOCKET connect`: a handshake. `BROADCAST game_start`,
    `game_*`, or `*`.
    """
    effect: str
    """`status`, `delay`, `drop`, `reset`, `truncate`, `stall`, `close`, `lose`, `double` or `reorder`."""
    id: str = ""
    """1 to 64 letters, digits, `-` and `_`. When absent, `f1`, `f2` and so on. The same id replaces a fault."""
    role: str = ""
    """Only for callers with this role."""
    channel: str = ""
    """Only in this channel."""
    user: str = ""
    """Only for callers with this user id or opaque id."""
    client_id: str = ""
    """Only for this extension."""
    event: str = ""
    """Only for broadcasts of this event."""
    status: int | None = None
    """Of `status`: 400 to 599, 503 when absent."""
    retry_after: int | None = None
    """Of `status`: the header `Retry-After`, in seconds."""
    delay: int | None = None
    """Of `delay`: in ms of real time."""
    delay_max: int | None = None
    """Of `delay`: with it, the delay is random from `delay` to `delay_max`."""
    bytes: int | None = None
    """Of `truncate`: bytes of the body before the connection closes; 0 when absent."""
    code: int | None = None
    """Of `close`: the close code, 1012 when absent."""
    times: int | None = None
    """The number of hits after which the fault is over."""
    share: float | None = None
    """The share of the matching requests that it hits, above 0, at most 1. With `times`, only hits count."""
    seed: int = 0
    """Of `share` and of random delays: the same seed makes the same choices."""
    lasts: int | None = None
    """Milliseconds of the service's clock after which the fault is over."""
    hits: int = 0
    """How often it has acted so far. Ignored in requests."""
    left: int | None = None
    """With `times`: hits left. Ignored in requests."""
    ends_at: int | None = None
    """With `lasts`: Unix ms by the service's clock. Ignored in requests."""


class Known(NamedTuple):
    """The endpoints and messages of a service, which faults can match."""

    endpoints: Collection[tuple[str, str]]
    """The methods and declared paths for extensions."""
    actions: Collection[tuple[str, str]]
    """The actions and targets of games' messages."""
    normalize: Callable[[str], str]
    """Returns the declared path of an alias."""


class Pattern(NamedTuple):
    """The subjects that a fault matches, apart from its conditions."""

    kind: str
    name: str
    """The method, the action or the event. Here and in `target`, `*` at the end stands for any text."""
    target: str = ANY
    """The path or the target."""

    def matches(self, subject: Subject) -> bool:
        return (
            self.kind == subject.kind
            and _matches_text(self.name, subject.name)
            and _matches_text(self.target, subject.target)
        )


def _matches_text(pattern: str, text: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith(ANY) else text == pattern


def needs_caller(fault: Fault) -> bool:
    """Whether a fault has conditions on the caller of a request."""
    return bool(fault.role or fault.channel or fault.user or fault.client_id)


def meets(fault: Fault, subject: Subject) -> bool:
    """Whether a subject meets the conditions of a fault."""
    caller = subject.caller
    return (
        (not fault.client_id or fault.client_id == subject.client_id)
        and (not fault.channel or fault.channel == subject.channel)
        and (not fault.role or (caller is not None and fault.role == caller.role))
        and (not fault.user or (caller is not None and fault.user in (caller.user_id, caller.opaque_id)))
        and (not fault.event or fault.event == subject.name)
    )


def checked_pattern(fault: Fault, known: Known) -> Pattern:
    """Return the parsed match of a fault. Raises `BadRequest` that names the member."""
    pattern = pattern_of(fault.match, known)
    _check_effect(fault, pattern)
    _check_members(fault, pattern.kind)
    return pattern


def pattern_of(match: str, known: Known) -> Pattern:
    """Return the pattern of a `match`. Raises `BadRequest` for one that nothing can match."""
    if len(match) > LONGEST_TEXT:
        raise too_long("match", size=len(match), unit="characters", limit=LONGEST_TEXT)
    words = match.split()
    if not words:
        raise missing_member("match", "a pattern such as 'POST /v1/e/vote', 'SOCKET set state' or 'BROADCAST *'")
    if words[0] == _SOCKET:
        return _socket_pattern(match, words[1:], known)
    if words[0] == _BROADCAST:
        if len(words) < 2:
            raise invalid_member("match", match, "BROADCAST and an event, or '*'")
        return Pattern(BROADCAST, match.split(None, 1)[1].strip())
    return _request_pattern(match, words, known)


def _socket_pattern(match: str, words: list[str], known: Known) -> Pattern:
    if words == [CONNECT]:
        return Pattern(CONNECT, ANY)
    action, target = (*words, ANY)[:2] if words else ("", "")
    if not action or len(words) > 2:
        raise invalid_member("match", match, "'SOCKET <action> <target>' or 'SOCKET connect'")
    pattern = Pattern(MESSAGE, action, target)
    if action in _EVERY_TARGET:
        return pattern
    if not any(pattern.matches(Subject(MESSAGE, *each)) for each in known.actions):
        names = [f"{_SOCKET} {each} {of}".rstrip() for each, of in known.actions]
        raise _unknown(match, "a message", [*names, f"{_SOCKET} {CONNECT}"])
    return pattern


def _request_pattern(match: str, words: list[str], known: Known) -> Pattern:
    if len(words) != 2:
        raise invalid_member("match", match, "a method and a path, SOCKET … or BROADCAST …")
    method, path = words[0].upper(), words[1]
    pattern = Pattern(REQUEST, method, path if path.endswith(ANY) else known.normalize(path))
    if not any(pattern.matches(Subject(REQUEST, *each)) for each in known.endpoints):
        if path.startswith("/_emulator"):
            needed = (
                "a path below /v1/e/, SOCKET … or BROADCAST …: faults never act on the control API and the dashboard"
            )
            raise invalid_member("match", match, needed)
        raise _unknown(match, "an endpoint", [" ".join(each) for each in known.endpoints])
    return pattern


def _unknown(match: str, what: str, names: Iterable[str]) -> ServiceError:
    from difflib import get_close_matches

    found = get_close_matches(match, sorted(names), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(found)}?" if found else ""
    return invalid_member("match", match, f"{what} of the service{hint}")


def _check_effect(fault: Fault, pattern: Pattern) -> None:
    effects = EFFECTS[pattern.kind]
    if fault.effect not in ALL_EFFECTS:
        raise invalid_member("effect", fault.effect, f"one of {', '.join(ALL_EFFECTS)}")
    if fault.effect not in effects:
        needed = f"one of {', '.join(effects)}, the effects on {KINDS[pattern.kind].name} such as {fault.match[:80]!r}"
        raise invalid_member("effect", fault.effect, needed)
    taken = _PARAMETERS.get(fault.effect, ())
    for effect, names in _PARAMETERS.items():
        for name in names:
            if name not in taken and getattr(fault, name) is not None:
                problem = f"must be absent with the effect {fault.effect!r}; it belongs to {effect!r}"
                raise invalid_member(name, getattr(fault, name), f"no {name}, or the effect {effect}", problem)
    if fault.effect == DELAY and fault.delay is None:
        raise missing_member("delay", f"the effect 'delay' needs 0 to {RANGES['delay'][1]} ms")
    if fault.delay_max is not None and fault.delay_max < (fault.delay or 0):
        raise invalid_member("delay_max", fault.delay_max, f"{fault.delay} or more, the delay")


def _check_members(fault: Fault, kind: str) -> None:
    if fault.id and not re.fullmatch(NAME, fault.id):
        raise invalid_member("id", fault.id, NAME_RULE)
    for name in CONDITIONS[BROADCAST]:
        value: str = getattr(fault, name)
        if value and name not in CONDITIONS[kind]:
            only = f"{KINDS[kind].name} have only the conditions {', '.join(CONDITIONS[kind])}"
            raise invalid_member(name, value, only, f"must be absent with {fault.match[:80]!r}; {only}")
        if len(value) > LONGEST_TEXT:
            raise too_long(name, size=len(value), unit="characters", limit=LONGEST_TEXT)
    if fault.role and fault.role not in set(Role):
        raise invalid_member("role", fault.role, f"one of {', '.join(Role)}")
    for name, (low, high) in RANGES.items():
        number: int | None = getattr(fault, name)
        if number is not None and not low <= number <= high:
            raise invalid_member(name, number, f"within {low} to {high}")
    if fault.share is not None and not 0 < fault.share <= 1:
        raise invalid_member("share", fault.share, "over 0, and at most 1")
    if fault.code is not None and not any(low <= fault.code <= high for low, high in CLOSE_CODES):
        ranges = ", ".join(f"{low} to {high}" for low, high in CLOSE_CODES)
        raise invalid_member("code", fault.code, f"within {ranges}")


ALL_EFFECTS: Final = tuple(dict.fromkeys(effect for effects in EFFECTS.values() for effect in effects))
