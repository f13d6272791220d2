"""Faults: their members, their checks, their matches and their refusals. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from emulator.contract.faults import CLOSE_CODES, KINDS, LONGEST_TEXT, RANGES
from emulator.contract.names import NAME, NAME_RULE
from emulator.core.callers import Role
from emulator.core.errors import BadRequest, Conflict, Facts, NotFound, ServiceError, refusal
from emulator.core.faults import BROADCAST, CLOSE, CONNECT, DELAY, MESSAGE, REQUEST, STATUS, TRUNCATE, Fault, Subject
from emulator.core.wire.refusals import invalid_member, missing_member, too_long

_RULE: Final = "docs: Faults"


@refusal(NotFound, "No such fault", _RULE, "There is no fault with this id", "List the faults: `extcli fault list`.")
def no_fault(*, id: str) -> Facts:
    detail = f"id: there is no fault {id!r}; `extcli fault list` names them"
    return Facts(detail, f"fault {id!r}", "the id of a fault")


@refusal(Conflict, "No faults", _RULE, "Faults need a service with one process",
         "Start `extcli serve` with data in memory or in a SQLite file.")  # fmt: skip
def not_alone() -> Facts:
    detail = "faults act in one process, and several may serve this data: keep data in memory or in a SQLite file"
    return Facts(detail, "data on Redis", "data on SQLite")


@refusal(BadRequest, "Too many faults", _RULE, "There are too many faults", "Remove some: `extcli fault rm ID`.")
def too_many_faults(*, count: int, limit: int) -> Facts:
    detail = f"faults: there would be {count}; the limit is {limit}"
    return Facts(detail, f"{count} faults", f"at most {limit} faults")


ANY: Final = "*"
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
    effects = KINDS[pattern.kind].effects
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
    conditions = KINDS[kind].conditions
    for name in KINDS[BROADCAST].conditions:
        value: str = getattr(fault, name)
        if value and name not in conditions:
            only = f"{KINDS[kind].name} have only the conditions {', '.join(conditions)}"
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


ALL_EFFECTS: Final = tuple(dict.fromkeys(effect for kind in KINDS.values() for effect in kind.effects))
