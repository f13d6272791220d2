"""A rule: what must hold, what a probe of it needs, and the probe."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from emulator.contract.kinds import are_equal_json
from emulator.contract.names import Role

ROLES = tuple(map(str, Role))
Probe = Callable[[Any], None]
"""Takes a `Deployment`, and raises `Differs` if the rule is not kept there."""
Trait = Literal["writes", "specified", "anonymous", "secret", "extension", "emulator", "sandbox", "production"]
"""What a rule is, besides one that reads.

`writes` changes data, only of ids of its own; `extension` also what belongs to the whole extension: codes, its config
and its state. `specified` is a ruling that the specification has too. `anonymous` needs no token; `secret` signs tokens
of unusual content. `emulator` needs the control API of a sandbox emulator. `sandbox` and `production` hold only there.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule that a service must keep, and the probe that checks it."""

    name: str
    """`W3.empty-list`: its source, and what the probe is about."""
    source: str
    """A ruling of docs/gaps.md (`W3`), or a section of it (`gaps: Trivia`) or of the specification (`spec: Voting`)."""
    sentence: str
    """What must hold, for reports."""
    probe: Probe
    traits: frozenset[Trait]


def reads(source: str, *traits: Trait) -> Callable[[Probe], Rule]:
    """Make a probe a rule, named after its source and the function. Its docstring is the sentence of reports."""
    section = source.rpartition(": ")[2].lower().replace(" ", "-") if ":" in source else source

    def decorate(probe: Probe) -> Rule:
        name = f"{section}.{probe.__name__.replace('_', '-')}"
        return Rule(name, source, " ".join((probe.__doc__ or "").split()), probe, frozenset(traits))

    return decorate


def writes(source: str, *traits: Trait) -> Callable[[Probe], Rule]:
    """Make a probe that changes data a rule, as `reads` does."""
    return reads(source, "writes", *traits)


class Differs(Exception):
    """Raised if the service does not keep the rule."""

    def __init__(self, what: str, expected: object, seen: object) -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.seen = seen


class Unknown(Differs):
    """Raised if the specification allows both: `expected`, which `extcli serve` does, and `seen`, which this service
    does.
    """


class Unspecified(Differs):
    """Raised if the service refuses the call, but not with the expected status.

    The specification names no REST statuses.
    """


class Skipped(Exception):
    """Raised if the probe cannot run against this service. The message says why."""


def expect(what: str, expected: object, seen: object) -> None:
    """Raise `Differs` unless both are equal. `true` and `1` are not equal, as in JSON."""
    if not are_equal_json(expected, seen):
        raise Differs(what, expected, seen)


def expect_status(what: str, expected: int, seen: object, text: str = "") -> None:
    """Raise `Differs` unless the status is the expected one, or `Unspecified` if both are refusals (400 to 499).

    `text` is what reports show of the response.
    """
    if seen != expected:
        are_refusals = all(isinstance(each, int) and 400 <= each < 500 for each in (expected, seen))
        raise (Unspecified if are_refusals else Differs)(what, expected, f"{seen}: {text}" if text else seen)


def expect_that(what: str, holds: bool, expected: object, seen: object) -> None:
    """Raise `Differs` unless the condition holds. `expected` describes it."""
    if not holds:
        raise Differs(what, expected, seen)


def expect_string(what: str, seen: object) -> None:
    """Raise `Differs` unless the value is a string."""
    expect_that(what, isinstance(seen, str), "a string", seen)


def expect_members(wanted: Mapping[str, object], found: Mapping[str, object], of: str = "") -> None:
    """Raise `Differs` unless these members of an object have these values. It may have others."""
    expect(f"{', '.join(wanted)} {of}".rstrip(), wanted, {name: found.get(name) for name in wanted})


def shown(value: object) -> str:
    """Return a value as one line of JSON, for reports. A set becomes a sorted array; bytes become text."""
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    return json.dumps(value, ensure_ascii=False, default=lambda found: sorted(found, key=str))
