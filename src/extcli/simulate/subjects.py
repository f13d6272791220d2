"""The poll, ranking or buffer of a simulation: reads it before and after the run, and builds the requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isclose, sqrt
from typing import Any

from emulator.contract.shell import quoted
from extcli.api.call import Call, encoded
from extcli.api.client import answer_submission, buffer_addition, vote_cast
from extcli.api.token_sources import GivenToken
from extcli.errors import Refused, UsageError
from extcli.output.sanitize import visible
from extcli.reading.shapes import document_of, expect_shape
from extcli.reading.streams import items
from extcli.session import BACKEND, BROADCASTER, VIEWER, Session, is_global
from extcli.simulate.outcome import ENTRIES, Comparison, compare, compare_entries
from extcli.simulate.plan import Plan

_COUNTED = 64
"""A poll counts the values 0 to 63 one by one."""
_TOP = 100
"""The most answers that a ranking shows."""


class Poll:
    """A poll in which each user has one vote."""

    what, requests = "poll", "votes"
    repeats = frozenset({429, 503})

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self.name = name
        self.closes_at = 0
        """Unix ms of the end of its window; 0 without one."""
        self._definition: Mapping[str, Any] | None = None

    def check(self, choices: Sequence[str]) -> None:
        """Raise `UsageError` if a poll does not count votes for each choice. Sends nothing."""
        for choice in choices:
            if not choice.isdigit() or not choice.isascii() or int(choice) >= _COUNTED or str(int(choice)) != choice:
                raise UsageError(
                    f"--mix: {visible(choice)!r} is not a value from 0 to {_COUNTED - 1}",
                    why="a poll counts only these values one by one",
                )

    def read_definition(self) -> None:
        """Read the definition, if there is one. Raises `UsageError` if the poll takes no votes, or several per user."""
        try:
            answer = self._session.service(VIEWER).read_poll_definition(self.name)
        except Refused as error:
            if error.status != 404:
                raise
            return
        with expect_shape(answer):
            found = dict(document_of(answer))
            self.closes_at = int(found.get("endsAt") or 0) * 1000
        name = visible(self.name)
        if found.get("totalVotesPerUser", 1) != 1:
            raise UsageError(
                f"poll {name} takes several votes of a user", why="a crowd needs a poll with one vote per user"
            )
        if found.get("disabled") or found.get("status") in ("pending", "expired"):
            state = "disabled" if found.get("disabled") else found["status"]
            fix = f"`extcli vote config {quoted(self.name)}` shows its times; `extcli vote edit` changes them"
            raise UsageError(f"poll {name} is {state}, so it refuses every vote", fix=fix)
        self._definition = found

    def check_closing(self) -> None:
        """Raise `UsageError` if the poll cannot close, so that no vote can be late."""
        if self._definition is None:
            raise UsageError(
                f"--late: poll {visible(self.name)} has no definition, so it never closes",
                fix="define it with `extcli vote define`; the crowd closes it after the votes in time",
            )

    def disable(self) -> None:
        """Close the poll: it refuses votes from now on."""
        definition = {name: value for name, value in (self._definition or {}).items() if name not in ("id", "status")}
        if not definition.get("options"):
            definition.pop("options", None)
        owner = self._session.service(BACKEND if is_global(self.name) else BROADCASTER)
        owner.define_poll(self.name, {**definition, "disabled": True})

    def read(self) -> Mapping[str, int]:
        return counts_of(self._stats())

    def _stats(self) -> Mapping[str, Any]:
        answer = self._session.service(VIEWER).read_poll(self.name)
        with expect_shape(answer):
            stats = dict(document_of(answer)["stats"])
            _check_counts([stats["count"], *stats["specific"]])
            wrong_statistics(stats)
        return stats

    def has_voted(self, token: str) -> bool:
        """Return whether the user of a token has a vote."""
        answer = self._session.service_with(GivenToken(token)).read_poll(self.name)
        with expect_shape(answer):
            return "vote" in document_of(answer)

    def call(self, plan: Plan, index: int) -> Call:
        return vote_cast(int(plan.choices[plan.choice[index]]), poll=self.name)

    def compare(
        self, plan: Plan, status: Sequence[int], before: Mapping[str, int], faults: Sequence[str]
    ) -> Comparison:
        stats = self._stats()
        return compare(plan, status, before, counts_of(stats), [*faults, *wrong_statistics(stats)])


def counts_of(stats: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the number of votes for each value; values that the service does not count singly are `other values`."""
    counts = {str(value): votes for value, votes in enumerate(stats["specific"]) if votes}
    others = stats["count"] - sum(counts.values())
    return {**counts, "other values": others} if others else counts


def wrong_statistics(stats: Mapping[str, Any]) -> list[str]:
    """Return the statistics of a poll that contradict its votes by value."""
    votes = list(enumerate(stats["specific"]))
    count = sum(each for _, each in votes)
    if count != stats["count"] or not count:
        return []
    total = sum(value * each for value, each in votes)
    squares = sum(value * value * each for value, each in votes)
    expected = {"sum": total, "mean": total / count, "stddev": sqrt(count * squares - total * total) / count}
    return [
        f"{name} is {stats[name]:g}, but the votes give {value:g}"
        for name, value in expected.items()
        if not isclose(stats[name], value, rel_tol=1e-9, abs_tol=1e-9)
    ]


class Ranking:
    """A ranking, in which each user has one answer."""

    what, requests = "ranking", "answers"
    repeats = frozenset({429, 503})

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self.name = name

    def check(self, choices: Sequence[str]) -> None:
        """Raise `UsageError` if a ranking cannot show all of these answers. Sends nothing."""
        if len(choices) > _TOP:
            raise UsageError(f"--mix: {len(choices)} answers are too many: a ranking shows {_TOP}")

    def read(self) -> Mapping[str, int]:
        owner = self._session.service(BACKEND if is_global(self.name) else BROADCASTER)
        answer = owner.read_ranking(self.name)
        with expect_shape(answer):
            scores = {str(each["key"]): each["score"] for each in document_of(answer)["data"]}
            _check_counts(scores.values())
        return scores

    def call(self, plan: Plan, index: int) -> Call:
        return answer_submission(plan.choices[plan.choice[index]], ranking=self.name)

    def compare(
        self, plan: Plan, status: Sequence[int], before: Mapping[str, int], faults: Sequence[str]
    ) -> Comparison:
        comparison = compare(plan, status, before, self.read(), faults)
        if not before:
            return comparison
        # A caller can read no user's answer, so the run could not check this before.
        hint = f", or viewers of seed {plan.seed} had answered before: use another --seed"
        return replace(comparison, suspicion=hint)


class Buffer:
    """A buffer, in which each entry stays."""

    what, requests = "buffer", "entries"
    repeats = frozenset({429})
    """After 503 the entry may be there already."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self.name = name

    def read(self) -> Mapping[str, int]:
        return {ENTRIES: count} if (count := len(self._entries())) else {}

    def call(self, plan: Plan, index: int) -> Call:
        return buffer_addition(encoded({"simulation": plan.seed, "number": index}), buffer=self.name)

    def compare(
        self, plan: Plan, status: Sequence[int], before: Mapping[str, int], faults: Sequence[str]
    ) -> Comparison:
        """Compare the buffer with the plan. An entry that occurs more than once counts as `doubled`."""
        seen, doubled, others = bytearray(len(plan)), 0, 0
        for data in self._entries():
            number = data.get("number") if isinstance(data, dict) and data.get("simulation") == plan.seed else None
            if not isinstance(number, int) or not 0 <= number < len(plan):
                others += 1
            elif seen[number]:
                doubled += 1
            else:
                seen[number] = 1
        found = {ENTRIES: sum(seen), "doubled": doubled, "of others": others - sum(before.values())}
        return compare_entries(plan, status, {name: count for name, count in found.items() if count}, faults)

    def has_entries(self, seed: int) -> bool:
        """Return whether a crowd with this seed has added entries before."""
        return any(isinstance(each, dict) and each.get("simulation") == seed for each in self._entries())

    def _entries(self) -> list[Any]:
        with self._session.service(BROADCASTER).read_buffer(self.name) as answer, expect_shape(answer):
            return [each["data"] for each in items(answer.iter_bytes(), "data.item", f"buffer {visible(self.name)}")]


Subject = Poll | Ranking | Buffer
"""What a crowd acts on: `what` it is, what its `requests` are called, its `name`, and the statuses that `repeats` has,
after which a request may be sent again, because it changed nothing or does no harm twice.

`read` returns the counts that the service has, `call` one request of the plan by its index, and `compare` the result
against the plan.
"""


def _check_counts(counts: Iterable[object]) -> None:
    if not all(isinstance(each, int) for each in counts):
        raise TypeError("a count is not a whole number")
