"""Plans a simulation from shares of a crowd: its requests and their exact result. Pure and seeded."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from random import Random

from extcli.errors import UsageError, shortened

_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_SHARE = re.compile(_NUMBER + r"(%?)")
_RATE = re.compile(_NUMBER + r"(?:/(s|min|m))?")
_CHURN = re.compile(_NUMBER + r"%/(s|min|m)")
_PER_SECOND = {None: 1, "s": 1, "m": 60, "min": 60}


def parse_share(text: str, option: str) -> Fraction:
    """Parse `5%` or `0.05`, from 0 to 1. Raises `UsageError` that names the option."""
    found = _SHARE.fullmatch(text.strip())
    value = Fraction(found[1]) / (100 if found[2] else 1) if found else None
    if value is None or value > 1:
        raise UsageError(f"{option}: {shortened(text, 40)!r} is not a share from 0% to 100%", fix="write it like 5%")
    return value


def parse_rate(text: str, option: str) -> float:
    """Parse `500/s`, `600/min` or `500` to requests per second, above 0. Raises `UsageError`."""
    found = _RATE.fullmatch(text.strip())
    value = Fraction(found[1]) / _PER_SECOND[found[2]] if found else Fraction(0)
    if not value:
        raise UsageError(f"{option}: {shortened(text, 40)!r} is not a rate", fix="write it like 500/s or 600/min")
    return float(value)


def churn(text: str) -> float:
    """Parse `10%/min` to the share of the connections per second. Raises `UsageError`."""
    found = _CHURN.fullmatch(text.strip())
    if not found:
        raise UsageError(
            f"--churn: {shortened(text, 40)!r} is not a share per time",
            why="it is the share of the connections that is closed and opened again",
            fix="write it like 10%/min",
        )
    return float(Fraction(found[1]) / 100 / _PER_SECOND[found[2]])


def mix(text: str) -> dict[str, Fraction]:
    """Parse `0:60,1:30,2:10` to weights above 0 by choice, in order. A choice may contain colons, but no comma."""
    weights: dict[str, Fraction] = {}
    for part in text.split(","):
        choice, colon, weight = part.strip().rpartition(":")
        if not colon or not choice or not re.fullmatch(_NUMBER, weight) or not Fraction(weight):
            raise UsageError(
                f"--mix: {shortened(part, 40)!r} is not CHOICE:WEIGHT with a weight above 0",
                fix="write it like 0:60,1:30,2:10",
            )
        if choice in weights:
            raise UsageError(f"--mix: {shortened(choice, 40)!r} is given twice", fix="add its weights")
        weights[choice] = Fraction(weight)
    return weights


def rounded(weights: Sequence[Fraction], total: int) -> list[int]:
    """Divide `total` by weights, in whole numbers that add up to it, by largest remainder. Ties go to the first."""
    whole = sum(weights)
    exact = [weight * total / whole for weight in weights]
    counts = [int(each) for each in exact]
    by_remainder = sorted(range(len(weights)), key=lambda index: counts[index] - exact[index])
    for index in by_remainder[: total - sum(counts)]:
        counts[index] += 1
    return counts


def part_of(of: Fraction, total: int) -> int:
    """Return a share of `total` as a whole number; halves are rounded up."""
    return int(of * total + Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a crowd, in the order of their instants, and the expected result.

    A viewer is a number from 0. A choice is an index into `choices`.
    """

    seed: int
    viewers: int
    choices: Sequence[str]
    viewer: array[int]
    """The viewer who sends each request."""
    choice: array[int]
    at: array[float]
    """Seconds from the start; of late requests, from the start of the late ones."""
    late_from: int
    """The index of the first late request, or the number of requests."""
    expected: Sequence[int]
    """The users by choice in the end."""
    total: str = "voters"
    """The name of their sum: `voters` or `users`."""
    notes: Sequence[str] = ()
    """How shares were rounded."""

    def __len__(self) -> int:
        return len(self.viewer)

    @property
    def late(self) -> int:
        """The number of requests that must be refused, because they come after the end."""
        return len(self) - self.late_from

    @property
    def duration(self) -> float:
        """Seconds from the start to the last request that is not late."""
        return self.at[self.late_from - 1] if self.late_from else 0.0

    @property
    def users(self) -> Sequence[str]:
        """The user id of each viewer. Plans with different seeds have different users."""
        return [f"sim{self.seed}-{number}" for number in range(1, self.viewers + 1)]


@dataclass(frozen=True, slots=True)
class Pace:
    """When requests are planned: at a steady rate, or all within a burst that is densest at its start."""

    per_second: float = 0.0
    burst: float = 0.0
    """Seconds; 0 for a steady rate."""

    def instants(self, count: int) -> array[float]:
        """Return when to send each of `count` requests, in seconds from the start."""
        if not self.burst:
            return array("d", (index / self.per_second for index in range(count)))
        return array("d", (self.burst * (1 - (1 - index / count) ** 0.5) for index in range(count)))


@dataclass(frozen=True, slots=True)
class Crowd:
    """A crowd in which each user has one choice. A later choice replaces it."""

    viewers: int
    mix: dict[str, Fraction]
    pace: Pace
    seed: int = 0
    requests: int | None = None
    """How many requests in time; `None` for as many as the viewers need."""
    change_mind: Fraction = Fraction(0)
    late: Fraction = Fraction(0)
    total: str = "voters"
    option: str = "--votes"
    """The option with the number of requests, for errors."""


def crowd_plan(crowd: Crowd) -> Plan:
    """Plan a crowd. Raises `UsageError` if its numbers cannot be met.

    The mix is the final result of the viewers that are in time. A viewer who changes their mind first sends another
    choice. Requests beyond these are further choices of random viewers, at random by the mix, before their last.
    """
    random = Random(crowd.seed)
    late = part_of(crowd.late, crowd.viewers)
    in_time = crowd.viewers - late
    changing = part_of(crowd.change_mind, in_time)
    if changing and len(crowd.mix) < 2:
        raise UsageError("--change-mind needs a mix of two choices or more")
    total = _total(crowd, in_time, changing)
    expected = rounded(list(crowd.mix.values()), in_time)
    final = _shuffle([index for index, count in enumerate(expected) for _ in range(count)], random)
    changers = _shuffle(range(in_time), random)[:changing]
    further = [int(random.random() * in_time) for _ in range(total - in_time - changing)]
    senders = _shuffle([*range(in_time), *changers, *further], random)
    senders += range(in_time, crowd.viewers)
    at = crowd.pace.instants(total)
    at.extend(crowd.pace.instants(late))
    return Plan(
        seed=crowd.seed,
        viewers=crowd.viewers,
        choices=list(crowd.mix),
        viewer=array("l", senders),
        choice=_choices(crowd, senders, final, changers, random),
        at=at,
        late_from=total,
        expected=expected,
        total=crowd.total,
        notes=_rounding_notes(crowd, expected, in_time, changing, late),
    )


def entries_plan(viewers: int, entries: int, pace: Pace, seed: int) -> Plan:
    """Plan entries of a buffer, each by a random viewer. The choice of each is 0; its number is its index."""
    random = Random(seed)
    senders = array("l", (int(random.random() * viewers) for _ in range(entries)))
    choice = array("H", bytes(2 * entries))
    return Plan(
        seed=seed,
        viewers=viewers,
        choices=["entries"],
        viewer=senders,
        choice=choice,
        at=pace.instants(entries),
        late_from=entries,
        expected=[entries],
    )


def _total(crowd: Crowd, in_time: int, changing: int) -> int:
    given = crowd.requests
    least = in_time + changing
    if given is not None and given < least:
        changed = f" with {changing:,} changes of mind" if changing else ""
        raise UsageError(
            f"{crowd.option}: {given:,} are too few for {in_time:,} viewers{changed}",
            fix=f"give at least {least:,}, or fewer viewers",
        )
    if given and not in_time:
        raise UsageError(f"{crowd.option} needs a viewer who is not late", fix="lower --late, or leave it out")
    return least if given is None else given


def _shuffle(items: Iterable[int], random: Random) -> list[int]:
    """Shuffle with `random()` only, because other methods differ between versions of Python."""
    shuffled = list(items)
    for index in range(len(shuffled) - 1, 0, -1):
        other = int(random.random() * (index + 1))
        shuffled[index], shuffled[other] = shuffled[other], shuffled[index]
    return shuffled


def _choices(
    crowd: Crowd, senders: Sequence[int], final: Sequence[int], changers: Sequence[int], random: Random
) -> array[int]:
    """Return the choice of each request.

    The last request of a viewer in time has the choice in `final`. The first of a changer has another one. All others,
    also of late viewers, are drawn by the mix.
    """
    draw, others = _drawer_by_weight(list(crowd.mix.values()), random), len(crowd.mix) - 1
    left = array("l", bytes(array("l").itemsize * crowd.viewers))
    for viewer in senders:
        left[viewer] += 1
    changes = bytearray(crowd.viewers)
    for viewer in changers:
        changes[viewer] = 1
    chosen = array("H")
    for viewer in senders:
        left[viewer] -= 1
        if not left[viewer] and viewer < len(final):
            chosen.append(final[viewer])
        elif changes[viewer]:
            changes[viewer] = 0
            chosen.append((final[viewer] + 1 + int(random.random() * others)) % len(crowd.mix))
        else:
            chosen.append(draw())
    return chosen


def _drawer_by_weight(weights: Sequence[Fraction], random: Random) -> Callable[[], int]:
    """Return a function that draws an index by weight."""
    from bisect import bisect_right

    limits = [float(each / sum(weights)) for each in accumulate(weights)][:-1]
    return lambda: bisect_right(limits, random.random())


def _rounding_notes(crowd: Crowd, expected: Sequence[int], in_time: int, changing: int, late: int) -> list[str]:
    """Return a note for each share that is not a whole number of viewers."""
    notes = []
    for name, of, total, count in (
        ("--late", crowd.late, crowd.viewers, late),
        ("--change-mind", crowd.change_mind, in_time, changing),
    ):
        if of * total != count:
            notes.append(f"{name}: {_exact_number(of * total)} of {total:,} viewers is rounded to {count:,}")
    whole = sum(crowd.mix.values())
    for (choice, weight), count in zip(crowd.mix.items(), expected, strict=True):
        if weight * in_time / whole != count:
            notes.append(
                f"--mix: {_exact_number(weight * in_time / whole)} viewers for {choice} are rounded to {count:,}"
            )
    return notes


def _exact_number(value: Fraction) -> str:
    return f"{float(value):,.2f}"
