"""The poll, ranking or buffer of a simulation: reads it before and after the run, and builds the requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose, sqrt
from typing import Any

from extcli.api.call import Call, answer_submission, buffer_addition, encoded, vote_cast
from extcli.api.tokens import GivenToken
from extcli.errors import UsageError
from extcli.output.sanitize import visible
from extcli.reading import document_of, expect_shape, stream_items
from extcli.session import BROADCASTER, VIEWER, Session, definer_role
from extcli.simulate.outcome import Comparison, Counts, compare_choices, compare_items
from extcli.simulate.plan import Plan

_COUNTED_VALUES = 64
"""A poll counts the values 0 to 63 one by one."""
_POLL_SHAPE = {"stats": {"count": int, "sum": float, "mean": float, "stddev": float, "specific": [int]}}
_LATE_MARGIN = 0.2
"""Seconds after the end of a poll's window at which late votes begin."""
_MOST_SHOWN_ANSWERS = 100
"""The most answers that a ranking shows."""


@dataclass
class _NamedSubject:
    session: Session
    name: str


class Poll(_NamedSubject):
    """A poll in which each user has one vote."""

    verb, what, requests, total = "crowd", "poll", "votes", "voters"
    repeated_statuses = frozenset({429, 503})

    def check_choices(self, choices: Sequence[str]) -> None:
        """Raise `UsageError` if a poll does not count votes for each choice. Sends nothing."""
        if others := [choice for choice in choices if choice not in map(str, range(_COUNTED_VALUES))]:
            what = f"--mix: {visible(others[0])!r} is not a value from 0 to {_COUNTED_VALUES - 1}"
            raise UsageError(what, why="a poll counts only the votes for these values separately")

    def poll_closer(self, *, has_late_votes: bool) -> Callable[[], float] | None:
        """Return a function that ends the poll before the late votes, and returns the seconds to wait after it.

        Return `None` without late votes. Raises `UsageError` if the poll allows several votes per user, or cannot end.
        """
        answer = self.session.service(VIEWER).find("vote_config", id=self.name)
        definition = {} if answer is None else document_of(answer, {"endsAt?": (int, None)})
        if definition.get("totalVotesPerUser", 1) != 1:
            what = f"poll {visible(self.name)} allows several votes per user"
            raise UsageError(what, why="`extcli simulate crowd` needs a poll with one vote per user")
        if not has_late_votes:
            return None
        if not definition:
            raise UsageError(
                f"--late: poll {visible(self.name)} has no definition, so it never closes",
                fix="define it with `extcli vote define`; the simulation closes it before the late votes",
            )

        def close() -> float:
            ends_at = float(definition.get("endsAt") or 0)
            if ends_at:
                return max(ends_at - self.session.now() / 1000, 0) + _LATE_MARGIN
            dropped = ("id", "status") if definition.get("options") else ("id", "status", "options")
            kept = {name: value for name, value in definition.items() if name not in dropped}
            self.session.service(definer_role(self.name)).define_poll(self.name, {**kept, "disabled": True})
            return 0.0

        return close

    def read_counts(self) -> Counts:
        return _votes_by_value(self._read_statistics())

    def _read_statistics(self) -> Mapping[str, Any]:
        return dict(document_of(self.session.service(VIEWER).get("vote", id=self.name), _POLL_SHAPE)["stats"])

    def has_crowd_of_seed(self, seed: int, token: str) -> bool:
        """Return whether a crowd of this seed voted before. `token` is of one of its viewers."""
        return "vote" in document_of(self.session.service_with(GivenToken(token)).get("vote", id=self.name))

    def call(self, plan: Plan, index: int) -> Call:
        return vote_cast(int(plan.choices[plan.choice_indexes[index]]), poll=self.name)

    def compare(self, plan: Plan, status: Sequence[int], before: Counts, faults: Sequence[str]) -> Comparison:
        stats = self._read_statistics()
        return compare_choices(plan, status, before, _votes_by_value(stats), [*faults, *wrong_statistics(stats)])


def _votes_by_value(stats: Mapping[str, Any]) -> Counts:
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


class Ranking(_NamedSubject):
    """A ranking, in which each user has one answer."""

    verb, what, requests, total = "rank", "ranking", "answers", "users"
    repeated_statuses = frozenset({429, 503})

    def check_choices(self, choices: Sequence[str]) -> None:
        """Raise `UsageError` if a ranking cannot show all of these answers. Sends nothing."""
        if len(choices) > _MOST_SHOWN_ANSWERS:
            raise UsageError(f"--mix: {len(choices)} answers are too many: a ranking shows {_MOST_SHOWN_ANSWERS}")

    def read_counts(self) -> Counts:
        answer = self.session.service(definer_role(self.name)).get("rank", id=self.name)
        return {str(each["key"]): each["score"] for each in document_of(answer, _RANKING_SHAPE)["data"]}

    def has_crowd_of_seed(self, seed: int, token: str) -> bool:
        """Return False: a caller can read no user's answer, so `compare` names an earlier crowd as a possible cause."""
        return False

    def call(self, plan: Plan, index: int) -> Call:
        return answer_submission(plan.choices[plan.choice_indexes[index]], ranking=self.name)

    def compare(self, plan: Plan, status: Sequence[int], before: Counts, faults: Sequence[str]) -> Comparison:
        comparison = compare_choices(plan, status, before, self.read_counts(), faults, self.total)
        hint = f", or viewers of seed {plan.seed} had answered before: use another --seed"
        return replace(comparison, suspicion=hint) if before else comparison


_RANKING_SHAPE = {"data": [{"key": object, "score": int}]}


class Buffer(_NamedSubject):
    """A buffer, in which each entry stays."""

    verb, what, requests = "accumulate", "buffer", "entries"
    repeated_statuses = frozenset({429})
    """After 503 the entry may be there already."""

    def read_counts(self) -> Counts:
        count = len(self._read_entries())
        return {self.requests: count} if count else {}

    def has_crowd_of_seed(self, seed: int, token: str) -> bool:
        """Return whether a crowd of this seed has added entries before."""
        return bool(self._entry_numbers(seed))

    def call(self, plan: Plan, index: int) -> Call:
        return buffer_addition(encoded({"simulation": plan.seed, "number": index}), buffer=self.name)

    def compare(self, plan: Plan, status: Sequence[int], before: Counts, faults: Sequence[str]) -> Comparison:
        """Compare the buffer with the plan. An entry that occurs more than once counts as `doubled`."""
        numbers = self._entry_numbers(plan.seed)
        found = len(set(numbers))
        return compare_items(self.requests, status, found, {"doubled": len(numbers) - found}, faults)

    def _entry_numbers(self, seed: int) -> list[str]:
        """Return the number of each entry that a crowd of this seed has added."""
        own = (each for each in self._read_entries() if isinstance(each, dict) and each.get("simulation") == seed)
        return [str(each.get("number")) for each in own]

    def _read_entries(self) -> list[Any]:
        buffer = self.session.service(BROADCASTER).stream("accumulate", id=self.name, start=0)
        with buffer as answer, expect_shape(answer):
            entries = stream_items(answer.iter_bytes(), "data.item", f"buffer {visible(self.name)}")
            return [each["data"] for each in entries]


Subject = Poll | Ranking | Buffer
"""What a crowd acts on: a poll, ranking or buffer with a `name`.

`verb` is the command, `what` the kind, and `requests` and `total` are the words for requests and users. After a status
in `repeated_statuses`, a request may be sent again, because it changed nothing or does no harm twice.

`read_counts` returns the counts that the service has, `has_crowd_of_seed` whether a crowd of a seed was here, `call`
the request of the plan with an index, and `compare` compares the result with the plan.
"""
