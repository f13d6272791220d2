"""The faults of one service: adding, choosing and removing them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert
from msgspec.structs import replace

from emulator.contract.faults import MAX_FAULTS
from emulator.control.faults import rules
from emulator.control.faults.rules import Known, Pattern
from emulator.core.clock import Clock, clamp_instant
from emulator.core.errors import BadRequest
from emulator.core.faults import DELAY, Fault, Held, Hit, Subject
from emulator.core.observability.audit import audit
from emulator.core.wire.json_codec import misshapen
from emulator.core.wire.refusals import invalid_member
from emulator.http.endpoint import Audience, Call, Parameter, endpoint


class FaultList(Struct, forbid_unknown_fields=True):
    """All faults, oldest first."""

    faults: list[Fault]


class Removal(Struct, forbid_unknown_fields=True):
    """Which faults to remove."""

    id: str | UnsetType = UNSET
    """One of them; all when absent. An empty id is no fault's: a client that lost the id must not remove all."""


class Removed(Struct):
    """The response to a removal."""

    removed: int


@dataclass(eq=False)
class _Armed:
    """A fault of a running service."""

    fault: Fault
    pattern: Pattern
    random: Random
    ends_at: int | None
    hits: int = 0
    is_over: bool = False
    """Once over, a fault stays so, also if the clock is set back."""
    held: Held = field(default_factory=Held)

    def record(self) -> Fault:
        """Return the fault with its present state."""
        times = self.fault.times
        left = None if times is None else times - self.hits
        return replace(self.fault, hits=self.hits, left=left, ends_at=self.ends_at)

    def is_hit(self) -> bool:
        """Draw at random whether the fault hits this match."""
        share = self.fault.share
        return share is None or self.random.random() < share

    def hit(self) -> Hit:
        fault = self.fault
        self.hits += 1
        delay = fault.delay or 0
        if fault.effect == DELAY and fault.delay_max is not None:
            delay = self.random.randint(delay, fault.delay_max)
        return Hit(fault, self.held, delay)


class FaultPlan:
    """The faults of one service; implements `emulator.core.faults.Faults`.

    `known` returns the endpoints and messages that faults can match. A service with several processes accepts no
    faults: each process would count its own hits.
    """

    def __init__(self, clock: Clock, known: Callable[[], Known], *, is_alone: bool) -> None:
        self._clock = clock
        self._known = known
        self._is_alone = is_alone
        self._armed: dict[str, _Armed] = {}
        self.kinds: Collection[str] = frozenset()
        """The kinds of subjects on which a fault may act now."""

    def find(self, id: str) -> Fault | None:
        """Return a fault with its present state, if it is still there."""
        armed = self._armed.get(id)
        return armed.record() if armed else None

    # For seeds

    def prepare(self, documents: Sequence[Mapping[str, Any]]) -> Callable[[], None]:
        """Check faults that all have an id, and return the function that adds them.

        They replace those with the same ids. Raises `BadRequest` that names one, and `Conflict`.
        """
        self._check_alone()
        try:
            faults = convert({"faults": documents}, FaultList).faults
        except ValidationError as error:
            raise misshapen(error) from None
        patterns = self._checked_patterns(faults)
        if (count := len(self._armed.keys() | {fault.id for fault in faults})) > MAX_FAULTS:
            raise rules.too_many_faults(count=count, limit=MAX_FAULTS)

        def put() -> None:
            for fault, pattern in zip(faults, patterns, strict=True):
                self._put(self._arm(fault, pattern, ()))
            self._set_kinds()

        return put

    # For the control API

    def read(self) -> FaultList:
        """Return all faults, including ended ones. Raises `Conflict` if the service has several processes."""
        self._check_alone()
        return FaultList([each.record() for each in self._armed.values()])

    def add(self, fault: Fault) -> Fault:
        """Add a fault, or replace the fault that has its id, which keeps its place in the order.

        Raises `BadRequest` and `Conflict`.
        """
        self._check_alone()
        pattern = rules.checked_pattern(fault, self._known())
        if fault.id not in self._armed and len(self._armed) >= MAX_FAULTS:
            raise rules.too_many_faults(count=len(self._armed) + 1, limit=MAX_FAULTS)
        armed = self._arm(fault, pattern, self._armed)
        self._put(armed)
        self._set_kinds()
        audit("faults added", faults=1, fault=armed.fault.id)
        return armed.record()

    def replace(self, faults: FaultList) -> FaultList:
        """Replace all faults, or none if one is invalid. Raises `BadRequest` that names it, and `Conflict`."""
        self._check_alone()
        if len(faults.faults) > MAX_FAULTS:
            raise rules.too_many_faults(count=len(faults.faults), limit=MAX_FAULTS)
        armed = dict[str, _Armed]()
        taken = {fault.id: None for fault in faults.faults}
        for fault, pattern in zip(faults.faults, self._checked_patterns(faults.faults), strict=True):
            each = self._arm(fault, pattern, {**taken, **armed})
            armed[each.fault.id] = each
        former, self._armed = self._armed, armed
        for each in former.values():
            each.held.release(is_void=False)
        self._set_kinds()
        audit("faults replaced", faults=len(armed))
        return self.read()

    def remove(self, id: str | None) -> Removed:
        """Remove one fault, or all with `None`; held requests continue. Raises `NotFound` and `Conflict`."""
        self._check_alone()
        if id is not None and id not in self._armed:
            raise rules.no_fault(id=id[:64])
        removed = list(self._armed) if id is None else [id]
        for each in removed:
            self._armed.pop(each).held.release(is_void=False)
        self._set_kinds()
        audit("faults removed", faults=len(removed), fault=id or "")
        return Removed(len(removed))

    # For the rest of the service

    def needs_caller(self, subject: Subject) -> bool:
        """Whether a fault that could match has conditions on the caller."""
        return any(
            not each.is_over and rules.needs_caller(each.fault) and each.pattern.matches(subject)
            for each in self._armed.values()
        )

    def choose(self, subject: Subject, without: str = "") -> Hit | None:
        """Return the oldest fault that matches and acts now, and count the hit.

        Faults with the effect `without` are skipped.
        """
        self._end_due()
        for each in self._armed.values():
            fault = each.fault
            if (
                not each.is_over
                and fault.effect != without
                and each.pattern.matches(subject)
                and rules.meets(fault, subject)
                and each.is_hit()
            ):
                hit = each.hit()
                if each.hits == fault.times:
                    each.is_over = True
                    self._set_kinds()
                return hit
        return None

    async def clock_moved(self) -> None:
        """End the faults whose time is over."""
        self._end_due()

    def clear(self) -> None:
        """Forget all faults, at a reset or stop. Requests and broadcasts that they hold back are dropped."""
        armed, self._armed = self._armed, {}
        for each in armed.values():
            each.held.release(is_void=True)
        self._set_kinds()

    def _checked_patterns(self, faults: Sequence[Fault]) -> list[Pattern]:
        """Return the parsed match of each fault. Raises `BadRequest` that names the first invalid one."""
        known, patterns, ids = self._known(), list[Pattern](), set[str]()
        for position, fault in enumerate(faults):
            try:
                patterns.append(rules.checked_pattern(fault, known))
            except BadRequest as error:
                error.detail = f"faults[{position}].{error.detail}"
                raise
            if fault.id in ids:
                raise invalid_member(f"faults[{position}].id", fault.id, "unique")
            ids |= {fault.id} if fault.id else set()
        return patterns

    def _put(self, armed: _Armed) -> None:
        """Add a fault, or replace the one with its id. The caller must announce the change."""
        former = self._armed.get(armed.fault.id)
        self._armed[armed.fault.id] = armed
        if former is not None:
            former.held.release(is_void=False)

    def _arm(self, fault: Fault, pattern: Pattern, taken: Collection[str]) -> _Armed:
        id = fault.id or next(free for number in range(1, len(taken) + 2) if (free := f"f{number}") not in taken)
        ends_at = None if fault.lasts is None else clamp_instant(self._clock.now() + fault.lasts)
        return _Armed(replace(fault, id=id), pattern, Random(fault.seed), ends_at)

    def _end_due(self) -> None:
        now = 0
        for each in self._armed.values():
            if each.ends_at is not None and not each.is_over:
                now = now or self._clock.now()
                if now >= each.ends_at:
                    each.is_over = True
                    self._set_kinds()

    def _set_kinds(self) -> None:
        self.kinds = frozenset(each.pattern.kind for each in self._armed.values() if not each.is_over)

    def _check_alone(self) -> None:
        if not self._is_alone:
            raise rules.not_alone()


_ID = Parameter("id", "The id of the fault; all when absent.")


@endpoint("POST", "/_emulator/faults", audience=Audience.CONTROL, body=Fault, answer=Fault)
async def add_fault(faults: FaultPlan, call: Call) -> Fault:
    """Add a fault, or replace the one with the same id.

    `match` is a method and a path, `SOCKET` with the action and target of a game's message, `SOCKET connect`, or
    `BROADCAST` with an event. Only one fault acts on a request: the oldest that matches and is due. A response that a
    fault changed or delayed has the header `X-Emulator-Fault`. A reset removes all faults.
    """
    return faults.add(call.body(Fault))


@endpoint("GET", "/_emulator/faults", audience=Audience.CONTROL, answer=FaultList)
async def list_faults(faults: FaultPlan, call: Call) -> FaultList:
    """List all faults with their hits, oldest first."""
    return faults.read()


@endpoint("PUT", "/_emulator/faults", audience=Audience.CONTROL, body=FaultList, answer=FaultList)
async def replace_faults(faults: FaultPlan, call: Call) -> FaultList:
    """Replace all faults; if one is invalid, nothing changes. Hits count from 0 again."""
    return faults.replace(call.body(FaultList))


@endpoint("DELETE", "/_emulator/faults", audience=Audience.CONTROL, query=(_ID,), answer=Removed)
async def remove_faults(faults: FaultPlan, call: Call) -> Removed:
    """Remove one fault, or all. Requests and broadcasts that it held back continue."""
    return faults.remove(call.query.get("id"))


@endpoint("POST", "/_emulator/faults/remove", audience=Audience.CONTROL, body=Removal, answer=Removed)
async def remove_faults_by_form(faults: FaultPlan, call: Call) -> Removed:
    """Remove one fault, or all, as DELETE does: HTML forms know POST only."""
    id = call.body(Removal).id
    return faults.remove(None if id is UNSET else id)


endpoints: Final = (add_fault, list_faults, replace_faults, remove_faults, remove_faults_by_form)
