"""Plans a simulation from shares of a crowd: its requests and their exact result. Pure and seeded."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from extcli.errors import UsageError, shortened

_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_QUANTITY = re.compile(_NUMBER + "(%?)(?:/(s|min|m))?")
_SECONDS_PER_UNIT = {None: 1, "s": 1, "m": 60, "min": 60}


def _parse_quantity(text: str) -> tuple[Fraction, bool, str | None]:
    """Return the number, whether it is a percentage, and the unit of time behind a slash; -1 if the text has none."""
    found = _QUANTITY.fullmatch(text.strip())
    return (Fraction(found[1]), bool(found[2]), found[3]) if found else (Fraction(-1), False, None)


def _option_error(option: str, text: str, what: str, example: str) -> UsageError:
    return UsageError(f"{option}: {shortened(text, 40)!r} is not {what}", fix=f"write it like {example}")


def parse_share(text: str, option: str) -> Fraction:
    """Parse `5%` or `0.05`, from 0 to 1. Raises `UsageError` that names the option."""
    value, is_percentage, unit = _parse_quantity(text)
    value /= 100 if is_percentage else 1
    if unit or not 0 <= value <= 1:
        raise _option_error(option, text, "a share from 0% to 100%", "5%")
    return value


def parse_rate(text: str, option: str) -> float:
    """Parse `500/s`, `600/min` or `500` to requests per second, above 0. Raises `UsageError`."""
    value, is_percentage, unit = _parse_quantity(text)
    if is_percentage or value <= 0:
        raise _option_error(option, text, "a rate", "500/s or 600/min")
    return float(value / _SECONDS_PER_UNIT[unit])


def parse_churn(text: str) -> float:
    """Parse `10%/min` to the share of the connections per second. Raises `UsageError`."""
    value, is_percentage, unit = _parse_quantity(text)
    if not is_percentage or unit is None:
        raise _option_error("--churn", text, "a percentage per time", "10%/min")
    return float(value / 100 / _SECONDS_PER_UNIT[unit])


def parse_mix(text: str) -> dict[str, Fraction]:
    """Parse `0:60,1:30,2:10` to weights above 0 by choice, in order. A choice may contain colons, but no comma."""
    weights: dict[str, Fraction] = {}
    for part in text.split(","):
        choice, _, weight = part.strip().rpartition(":")
        if not choice or choice in weights or not re.fullmatch(_NUMBER, weight) or not Fraction(weight):
            what = "CHOICE:WEIGHT with a new choice and a weight above 0"
            raise _option_error("--mix", part, what, "0:60,1:30,2:10")
        weights[choice] = Fraction(weight)
    return weights


def divide_by_weights(weights: Sequence[Fraction], total: int) -> list[int]:
    """Divide `total` by weights, in whole numbers that add up to it, by largest remainder. Ties go to the first."""
    whole = sum(weights)
    exact = [weight * total / whole for weight in weights]
    counts = [int(each) for each in exact]
    by_remainder = sorted(range(len(weights)), key=lambda index: counts[index] - exact[index])
    for index in by_remainder[: total - sum(counts)]:
        counts[index] += 1
    return counts


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a crowd, in the order of their instants, and the expected result.

    A viewer is a number from 0.
    """

    seed: int
    viewers: int
    senders: array[int]
    """The viewer who sends each request."""
    instants: array[float]
    """Seconds from the start; of late requests, from the start of the late ones."""
    choices: Sequence[str] = ()
    choice_indexes: Sequence[int] = ()
    """The choice in each request, as an index into `choices`."""
    expected: Sequence[int] = ()
    """The users by choice in the end."""
    late: int = 0
    """The number of requests at the end that must be refused, because they come after the end of the poll."""
    notes: Sequence[str] = ()
    """How shares were rounded."""

    def __len__(self) -> int:
        return len(self.senders)

    @property
    def late_from(self) -> int:
        """The index of the first late request, or the number of requests."""
        return len(self) - self.late

    @property
    def duration(self) -> float:
        """Seconds from the start to the last request that is not late."""
        return self.instants[self.late_from - 1] if self.late_from else 0.0

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


def plan_crowd(
    viewers: int,
    mix: dict[str, Fraction],
    pace: Pace,
    *,
    seed: int = 0,
    requests: int | None = None,
    change_mind: Fraction = Fraction(0),
    late: Fraction = Fraction(0),
    what: str = "votes",
) -> Plan:
    """Plan a crowd in which each user has one choice; a later one replaces it. Raises `UsageError` if it cannot be.

    The mix is the final result of the viewers that are in time. A viewer who changes their mind first sends another
    choice. With more `requests`, which are `what`, random viewers send further choices by the mix before their last.
    """
    random, weights = Random(seed), list(mix.values())
    # Halves are rounded up.
    too_late = int(late * viewers + Fraction(1, 2))
    in_time = viewers - too_late
    changing = int(change_mind * in_time + Fraction(1, 2))
    least = in_time + changing
    given = least if requests is None else requests
    if changing and len(mix) < 2:
        raise UsageError("--change-mind needs a mix of two choices or more")
    if given and not in_time:
        raise UsageError(f"--{what} {given:,} is too many: all viewers are late", fix="lower --late")
    if given < least:
        changes = f", and {changing:,} of them change their mind" if changing else ""
        problem = f"--{what} {given:,} is too few: {in_time:,} viewers send {what} in time{changes}"
        raise UsageError(problem, fix=f"use --{what} {least}, or fewer viewers")
    expected = divide_by_weights(weights, in_time)
    final = [index for index, count in enumerate(expected) for _ in range(count)]
    random.shuffle(final)
    changers = random.sample(range(in_time), changing)
    senders = [*range(in_time), *changers, *random.choices(range(in_time or 1), k=given - least)]
    random.shuffle(senders)
    senders += range(in_time, viewers)
    exact = [weight * in_time / sum(weights) for weight in weights]
    return Plan(
        seed=seed,
        viewers=viewers,
        senders=array("l", senders),
        instants=pace.instants(given) + pace.instants(too_late),
        choices=list(mix),
        choice_indexes=_choices_by_request(senders, final, changers, weights, random),
        expected=expected,
        late=too_late,
        notes=[
            f"--mix: {float(number):,.2f} viewers who choose {choice} are rounded to {count:,}"
            for choice, number, count in zip(mix, exact, expected, strict=True)
            if number != count
        ],
    )


def _choices_by_request(
    senders: Sequence[int], final: Sequence[int], changers: Sequence[int], weights: Sequence[Fraction], random: Random
) -> array[int]:
    """Return the choice of each request: at random by weight, except for the last of each viewer in time, which is in
    `final`, and the first of each changer, which is another one.
    """
    count = len(weights)
    choice = array("H", random.choices(range(count), list(map(float, weights)), k=len(senders)))
    last = {viewer: index for index, viewer in enumerate(senders)}
    first = {viewer: index for index, viewer in reversed(list(enumerate(senders)))}
    for viewer in changers:
        choice[first[viewer]] = (final[viewer] + random.randrange(1, count)) % count
    for viewer, wanted in enumerate(final):
        choice[last[viewer]] = wanted
    return choice


def plan_entries(viewers: int, entries: int, pace: Pace, seed: int) -> Plan:
    """Plan entries of a buffer, each by a random viewer. The number of each is its index."""
    senders = Random(seed).choices(range(viewers), k=entries)
    return Plan(seed, viewers, array("l", senders), pace.instants(entries))
