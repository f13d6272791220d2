"""Compares the planned result of a crowd with what the service has. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from extcli.simulate.plan import Plan
from extcli.simulate.work import NO_ANSWER

ENTRIES = "entries"


class Verdict(StrEnum):
    """How the result compares with the plan."""

    AS_PLANNED = "as planned"
    DIFFERS = "differs"
    NOT_DECIDED = "not decided"
    """The difference may come from requests without an answer, or with 5xx."""


@dataclass(frozen=True, slots=True)
class Count:
    """One figure of the result."""

    name: str
    planned: int
    acknowledged: tuple[int, int]
    """The least and the most that the answers allow."""
    found: int

    @property
    def differs(self) -> bool:
        return self.found != self.planned

    @property
    def is_possible(self) -> bool:
        """Whether the service has what its answers acknowledge, as far as there are answers."""
        return self.acknowledged[0] <= self.found <= self.acknowledged[1]

    @property
    def is_open(self) -> bool:
        """Whether the answers allow both what was found and what was planned."""
        return self.is_possible and self.acknowledged[0] <= self.planned <= self.acknowledged[1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The whole result."""

    counts: Sequence[Count]
    undecided: int
    """How many users, or entries, may or may not have been counted."""
    faults: Sequence[str] = field(default_factory=list)
    """Other differences from the plan, such as a late vote that was counted."""
    suspicion: str = ""
    """Another possible cause, if the service has something else than it acknowledged."""

    @property
    def verdict(self) -> Verdict:
        wrong = [count for count in self.counts if count.differs]
        if not wrong and not self.faults:
            return Verdict.AS_PLANNED
        is_open = not self.faults and all(count.is_open for count in wrong)
        return Verdict.NOT_DECIDED if self.undecided and is_open else Verdict.DIFFERS

    @property
    def is_as_acknowledged(self) -> bool:
        """Whether the service has what its answers acknowledge, so that a difference comes from refusals."""
        return not self.faults and all(count.is_possible for count in self.counts)


def is_accepted(status: int) -> bool:
    return 200 <= status < 300


def is_refused(status: int) -> bool:
    return 300 <= status < 500


def is_unknown(status: int) -> bool:
    """Return whether a request may or may not have been applied."""
    return status == NO_ANSWER or status >= 500


def acknowledged(plan: Plan, status: Sequence[int]) -> tuple[list[tuple[int, int]], tuple[int, int], int]:
    """Return the least and the most users by choice and in all that the answers allow, and how many are undecided.

    A user has the choice of the last accepted request. After a request without an answer, that one is possible, too.
    """
    none = -1
    latest = [none] * plan.viewers
    open_choices: dict[int, set[int]] = {}
    for index in range(plan.late_from):
        viewer = plan.viewer[index]
        if is_accepted(status[index]):
            latest[viewer] = plan.choice[index]
        elif is_unknown(status[index]):
            open_choices.setdefault(viewer, set()).add(plan.choice[index])
    least, most = [0] * len(plan.choices), [0] * len(plan.choices)
    voters_least = voters_most = undecided = 0
    for viewer, choice in enumerate(latest):
        possible = open_choices.get(viewer, set()) | {choice}
        undecided += len(possible) > 1
        voters_least += none not in possible
        voters_most += possible != {none}
        for each in possible - {none}:
            most[each] += 1
            least[each] += len(possible) == 1
    return list(zip(least, most, strict=True)), (voters_least, voters_most), undecided


def compare(
    plan: Plan, status: Sequence[int], before: Mapping[str, int], after: Mapping[str, int], faults: Sequence[str]
) -> Comparison:
    """Compare users by choice before and after a run, and their number. Other choices must not change."""
    by_choice, voters, undecided = acknowledged(plan, status)
    counts = []
    for choice, planned, answers in zip(plan.choices, plan.expected, by_choice, strict=True):
        counts.append(Count(choice, planned, answers, after.get(choice, 0) - before.get(choice, 0)))
    for choice in sorted({*before, *after} - set(plan.choices)):
        if (change := after.get(choice, 0) - before.get(choice, 0)) != 0:
            counts.append(Count(choice, 0, (0, 0), change))
    total = sum(after.values()) - sum(before.values())
    counts.append(Count(plan.total, sum(plan.expected), voters, total))
    return Comparison(counts, undecided, faults)


def compare_entries(
    plan: Plan, status: Sequence[int], found: Mapping[str, int], faults: Sequence[str] = ()
) -> Comparison:
    """Compare the entries of a buffer, of which each must be there once. `found` also counts what must not be there."""
    accepted = sum(map(is_accepted, status))
    unknown = sum(map(is_unknown, status))
    counts = [Count(ENTRIES, len(plan), (accepted, accepted + unknown), found.get(ENTRIES, 0))]
    counts += [Count(name, 0, (0, 0), found[name]) for name in found if name != ENTRIES]
    return Comparison(counts, unknown, faults)
