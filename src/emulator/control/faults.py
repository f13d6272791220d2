"""Faults made on purpose: their checks and refusals, and the faults of one service."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from random import Random
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.faults import (
    CLOSE_CODES,
    CONDITIONS,
    EFFECTS,
    MATCHES,
    MAX_FAULTS,
    MAX_TEXT_LENGTH,
    VALUE_RANGES,
    is_close_code,
)
from emulator.contract.names import NAME_PATTERN, NAME_RULE
from emulator.core.callers import Role
from emulator.core.clock import Clock, clamp_instant
from emulator.core.errors import BadRequest, Conflict, Facts, NotFound, ServiceError, refusal
from emulator.core.faults import (
    ANY,
    BROADCAST,
    CLOSE,
    CONNECT,
    DELAY,
    MESSAGE,
    REQUEST,
    STATUS,
    TRUNCATE,
    ArmedFault,
    Fault,
    FaultPattern,
    Faults,
    FaultSubject,
)
from emulator.core.observability.audit import audit
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import invalid_member, missing_member, too_long
from emulator.core.wire.url import normalize_path
from emulator.http.endpoint import Call, Parameter, control_endpoint

_RULE = "docs: Faults"


@refusal(NotFound, "No such fault", _RULE, "There is no fault with this id", "List the faults: `extcli fault list`.")
def no_fault(*, id: str) -> Facts:
    detail = f"id: there is no fault {id!r}; `extcli fault list` lists all faults"
    return Facts(detail, f"fault {id!r}", "the id of a fault")


@refusal(Conflict, "No faults", _RULE, "Faults need a service with one process",
         "Keep the data of `extcli serve` in memory or in a SQLite file.")  # fmt: skip
def not_alone() -> Facts:
    detail = "faults need a service with one process: keep data in memory or in a SQLite file"
    return Facts(detail, "data on Redis", "data on SQLite")


@refusal(BadRequest, "Too many faults", _RULE, "There are too many faults", "Remove some: `extcli fault rm ID`.")
def too_many_faults(*, count: int, limit: int) -> Facts:
    detail = f"faults: {count} are too many; the limit is {limit}"
    return Facts(detail, f"{count} faults", f"at most {limit} faults")


_EFFECT_OF_MEMBER: Mapping[str, str] = {
    "status": STATUS,
    "retry_after": STATUS,
    "delay": DELAY,
    "delay_max": DELAY,
    "bytes": TRUNCATE,
    "code": CLOSE,
}
"""The members that belong to one effect."""
_SOCKET = "SOCKET"
_BROADCAST = "BROADCAST"
_ACTIONS_WITH_ANY_TARGET = ("subscribe", "unsubscribe")
"""Actions that take the name of any event as their target."""


class MatchTargets(NamedTuple):
    """The endpoints and messages of a service, which faults can match."""

    endpoints: Collection[tuple[str, str]]
    """The methods and declared paths for extensions."""
    actions: Collection[tuple[str, str]]
    """The actions and targets of games' messages."""


def checked_pattern(fault: Fault, known: MatchTargets) -> FaultPattern:
    """Return the parsed match of a fault. Raises `BadRequest` that names the member."""
    pattern = parse_match(fault.match, known)
    _check_effect(fault, pattern)
    _check_conditions_and_ranges(fault, pattern.kind)
    return pattern


def parse_match(match: str, known: MatchTargets) -> FaultPattern:
    """Return the pattern of a `match`. Raises `BadRequest` for one that nothing can match."""
    if len(match) > MAX_TEXT_LENGTH:
        raise too_long("match", size=len(match), unit="characters", limit=MAX_TEXT_LENGTH)
    words = match.split()
    if not words:
        raise missing_member("match", "a pattern such as 'POST /v1/e/vote', 'SOCKET set state' or 'BROADCAST *'")
    if words[0] == _SOCKET:
        return _socket_pattern(match, words[1:], known)
    if words[0] == _BROADCAST:
        if len(words) < 2:
            raise invalid_member("match", match, "BROADCAST followed by an event or '*'")
        return FaultPattern(BROADCAST, match.split(None, 1)[1].strip())
    return _request_pattern(match, words, known)


def _socket_pattern(match: str, words: list[str], known: MatchTargets) -> FaultPattern:
    if words == [CONNECT]:
        return FaultPattern(CONNECT, ANY)
    action, target = (*words, ANY)[:2] if words else ("", "")
    if not action or len(words) > 2:
        raise invalid_member("match", match, "'SOCKET <action> <target>' or 'SOCKET connect'")
    pattern = FaultPattern(MESSAGE, action, target)
    if action in _ACTIONS_WITH_ANY_TARGET:
        return pattern
    if not any(pattern.matches(FaultSubject(MESSAGE, *each)) for each in known.actions):
        names = [f"{_SOCKET} {each} {of}".rstrip() for each, of in known.actions]
        raise _unknown_match(match, "a message", [*names, f"{_SOCKET} {CONNECT}"])
    return pattern


def _request_pattern(match: str, words: list[str], known: MatchTargets) -> FaultPattern:
    if len(words) != 2:
        raise invalid_member("match", match, "a method and a path, or a pattern with SOCKET or BROADCAST")
    method, path = words[0].upper(), words[1]
    pattern = FaultPattern(REQUEST, method, path if path.endswith(ANY) else normalize_path(path))
    if not any(pattern.matches(FaultSubject(REQUEST, *each)) for each in known.endpoints):
        if path.startswith("/_emulator"):
            needed = (
                "a path below /v1/e/, or else SOCKET or BROADCAST: faults never act on the control API or the dashboard"
            )
            raise invalid_member("match", match, needed)
        raise _unknown_match(match, "an endpoint", [" ".join(each) for each in known.endpoints])
    return pattern


def _unknown_match(match: str, what: str, names: Iterable[str]) -> ServiceError:
    from difflib import get_close_matches

    found = get_close_matches(match, sorted(names), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(found)}?" if found else ""
    return invalid_member("match", match, f"{what} of the service{hint}")


def _check_effect(fault: Fault, pattern: FaultPattern) -> None:
    effects = MATCHES[pattern.kind].effects
    if fault.effect not in EFFECTS:
        raise invalid_member("effect", fault.effect, f"one of {', '.join(EFFECTS)}")
    if fault.effect not in effects:
        needed = (
            f"one of {', '.join(effects)}: the effects for {MATCHES[pattern.kind].name} such as {fault.match[:80]!r}"
        )
        raise invalid_member("effect", fault.effect, needed)
    for name, effect in _EFFECT_OF_MEMBER.items():
        if effect != fault.effect and getattr(fault, name) is not None:
            problem = f"belongs to the effect {effect!r}, not to {fault.effect!r}"
            raise invalid_member(name, getattr(fault, name), f"no {name}, or the effect {effect}", problem)
    if fault.effect == DELAY and fault.delay is None:
        raise missing_member("delay", f"the effect 'delay' needs a delay of 0 to {VALUE_RANGES['delay'][1]} ms")
    if fault.delay_max is not None and fault.delay_max < (fault.delay or 0):
        raise invalid_member("delay_max", fault.delay_max, f"at least {fault.delay}, the value of delay")


def _check_conditions_and_ranges(fault: Fault, kind: str) -> None:
    if fault.id and not re.fullmatch(NAME_PATTERN, fault.id):
        raise invalid_member("id", fault.id, NAME_RULE)
    conditions = MATCHES[kind].conditions
    for name in CONDITIONS:
        value: str = getattr(fault, name)
        if value and name not in conditions:
            only = f"{MATCHES[kind].name} have only the conditions {', '.join(conditions)}"
            raise invalid_member(name, value, only, f"must be absent with {fault.match[:80]!r}; {only}")
        if len(value) > MAX_TEXT_LENGTH:
            raise too_long(name, size=len(value), unit="characters", limit=MAX_TEXT_LENGTH)
    if fault.role and fault.role not in set(Role):
        raise invalid_member("role", fault.role, f"one of {', '.join(Role)}")
    for name, (low, high) in VALUE_RANGES.items():
        number: int | None = getattr(fault, name)
        if number is not None and not low <= number <= high:
            raise invalid_member(name, number, f"within {low} to {high}")
    if fault.share is not None and not 0 < fault.share <= 1:
        raise invalid_member("share", fault.share, "above 0 and at most 1")
    if fault.code is not None and not is_close_code(fault.code):
        raise invalid_member("code", fault.code, f"within {CLOSE_CODES}")


class FaultList(Struct, forbid_unknown_fields=True):
    """All faults, oldest first."""

    faults: list[Fault]


class FaultRemoval(Struct, forbid_unknown_fields=True):
    """Which faults to remove."""

    id: str | UnsetType = UNSET
    """The id of one fault; all when absent. An empty id matches none: a client that lost the id must not remove all."""


class RemovalResult(Struct):
    """The response to a removal."""

    removed: int


_ID_PARAMETER = Parameter("id", "The id of the fault to remove. Default: all faults.")


class FaultPlan(Faults):
    """The faults of one service, as the control API and seeds manage them.

    `known` returns the endpoints and messages that faults can match. A service with several processes accepts no
    faults: each process would count its own hits.
    """

    def __init__(self, clock: Clock, known: Callable[[], MatchTargets], *, is_alone: bool) -> None:
        super().__init__(clock)
        self._known = known
        self._is_alone = is_alone

    def prepare(self, documents: Sequence[Mapping[str, Any]]) -> Callable[[], object]:
        """Check the faults of a seed, which all have an id, and return the function that adds them.

        They replace those with the same ids. Raises `BadRequest` that names one, and `Conflict`.
        """
        self._check_alone()
        faults = json_codec.convert({"faults": documents}, FaultList, inside="").faults
        checked = self._check_all(faults)
        _check_fault_count(len(self.armed.keys() | {fault.id for fault in faults}))
        return partial(self._add, checked)

    def read(self) -> FaultList:
        """Return all faults, including ended ones. Raises `Conflict` if the service has several processes."""
        self._check_alone()
        return FaultList([each.fault for each in self.armed.values()])

    @control_endpoint("POST", "/_emulator/faults", body=Fault, answer=Fault)
    async def add_fault(self, call: Call) -> Fault:
        """Add a fault, or replace the one with the same id.

        `match` is a method and a path, `SOCKET` with the action and target of a game's message, `SOCKET connect`, or
        `BROADCAST` with an event. Only one fault acts on a request: the oldest that matches and is due. A response that
        a fault changed or delayed has the header `X-Emulator-Fault`. A reset removes all faults.
        """
        fault = call.body(Fault)
        self._check_alone()
        pattern = checked_pattern(fault, self._known())
        _check_fault_count(len(self.armed) + (fault.id not in self.armed))
        self._add([(fault, pattern)])
        audit("faults added", faults=1, fault=fault.id)
        return fault

    @control_endpoint("GET", "/_emulator/faults", answer=FaultList)
    async def list_faults(self, call: Call) -> FaultList:
        """List all faults with their hits, oldest first."""
        return self.read()

    @control_endpoint("PUT", "/_emulator/faults", body=FaultList, answer=FaultList)
    async def replace_faults(self, call: Call) -> FaultList:
        """Replace all faults; if one is invalid, nothing changes. Hits count from 0 again."""
        faults = call.body(FaultList).faults
        self._check_alone()
        _check_fault_count(len(faults))
        checked = self._check_all(faults)
        former, self.armed = self.armed, {}
        self._add(checked)
        for each in former.values():
            each.release(is_void=False)
        audit("faults replaced", faults=len(self.armed))
        return self.read()

    @control_endpoint("DELETE", "/_emulator/faults", query=(_ID_PARAMETER,), answer=RemovalResult)
    async def remove_faults(self, call: Call) -> RemovalResult:
        """Remove one fault, or all. Requests and broadcasts that it held back continue."""
        return self._remove(call.query.get("id"))

    @control_endpoint("POST", "/_emulator/faults/remove", body=FaultRemoval, answer=RemovalResult)
    async def remove_faults_by_form(self, call: Call) -> RemovalResult:
        """Remove one fault, or all, as DELETE does: HTML forms can send only POST."""
        id = call.body(FaultRemoval).id
        return self._remove(None if id is UNSET else id)

    def _remove(self, id: str | None) -> RemovalResult:
        """Remove one fault, or all with `None`; held requests continue. Raises `NotFound` and `Conflict`."""
        self._check_alone()
        if id is not None and id not in self.armed:
            raise no_fault(id=id[:64])
        removed = list(self.armed) if id is None else [id]
        for each in removed:
            self.armed.pop(each).release(is_void=False)
        self.update_kinds()
        audit("faults removed", faults=len(removed), fault=id or "")
        return RemovalResult(len(removed))

    def _check_all(self, faults: Sequence[Fault]) -> list[tuple[Fault, FaultPattern]]:
        """Return the faults, each with its parsed match. Raises `BadRequest` that names the first invalid one."""
        known, checked, ids = self._known(), list[tuple[Fault, FaultPattern]](), set[str]()
        for position, fault in enumerate(faults):
            try:
                checked.append((fault, checked_pattern(fault, known)))
            except BadRequest as error:
                error.detail = f"faults[{position}].{error.detail}"
                raise
            if fault.id in ids:
                raise invalid_member(f"faults[{position}].id", fault.id, "unique")
            if fault.id:
                ids.add(fault.id)
        return checked

    def _add(self, checked: Sequence[tuple[Fault, FaultPattern]]) -> None:
        """Add faults, or replace those with their ids. New ids are none of those."""
        taken = {fault.id for fault, _ in checked}
        for fault, pattern in checked:
            if not fault.id:
                free = (f"f{number}" for number in count(1))
                fault.id = next(id for id in free if id not in self.armed and id not in taken)
            fault.hits, fault.left = 0, fault.times
            fault.ends_at = None if fault.lasts is None else clamp_instant(self._clock.now() + fault.lasts)
            former = self.armed.get(fault.id)
            self.armed[fault.id] = ArmedFault(fault, pattern, Random(fault.seed))
            if former is not None:
                former.release(is_void=False)
        self.update_kinds()

    def _check_alone(self) -> None:
        if not self._is_alone:
            raise not_alone()


def _check_fault_count(count: int) -> None:
    if count > MAX_FAULTS:
        raise too_many_faults(count=count, limit=MAX_FAULTS)
