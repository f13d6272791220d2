"""Parses shares, rates and mixes of options, and rounds shares to whole numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from extcli.errors import UsageError, shortened

_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_SHARE = re.compile(_NUMBER + r"(%?)")
_RATE = re.compile(_NUMBER + r"(?:/(s|min|m))?")
_CHURN = re.compile(_NUMBER + r"%/(s|min|m)")
_PER_SECOND = {None: 1, "s": 1, "m": 60, "min": 60}


def share(text: str, option: str) -> Fraction:
    """Parse `5%` or `0.05`, from 0 to 1. Raises `UsageError` that names the option."""
    found = _SHARE.fullmatch(text.strip())
    value = Fraction(found[1]) / (100 if found[2] else 1) if found else None
    if value is None or value > 1:
        raise UsageError(f"{option}: {shortened(text, 40)!r} is not a share from 0% to 100%", fix="write it like 5%")
    return value


def rate(text: str, option: str) -> float:
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
    """Divide `total` by weights, in whole numbers that add up to it: by largest remainder, ties in order."""
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
