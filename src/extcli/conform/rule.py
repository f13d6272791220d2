"""A rule: what must hold, what a probe of it needs, and the probe."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emulator.contract.json_values import are_equal
from emulator.contract.names import Role

ROLES = tuple(map(str, Role))
Probe = Callable[[Any], None]
"""Takes a `Deployment`, and raises `Differs` if the rule is not kept there."""


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
    roles: frozenset[str]
    """The roles that it acts in."""
    writes: bool
    """Whether it changes data: only of ids of its own."""
    extension: bool
    """Whether it changes what belongs to the whole extension: codes, its config and its state."""
    secret: bool
    """Whether it signs tokens of unusual content."""
    emulator: bool
    """Whether it needs the control API of a sandbox emulator."""
    mode: str | None
    """`sandbox` or `production` if it holds only there."""
    specified: bool
    """Whether the specification says so. Otherwise other services may differ: the result is `unknown`, not `fail`."""


def rule(
    source: str,
    *roles: str,
    writes: bool = False,
    extension: bool = False,
    secret: bool = False,
    emulator: bool = False,
    mode: str | None = None,
    specified: bool | None = None,
) -> Callable[[Probe], Rule]:
    """Make a probe a rule, named after its source and the function. Its docstring is the sentence of reports.

    Rules of sections are `specified` by default.
    """

    def decorate(probe: Probe) -> Rule:
        prefix = source.rpartition(": ")[2].lower().replace(" ", "-") if ":" in source else source
        return Rule(
            name=f"{prefix}.{probe.__name__.replace('_', '-')}",
            source=source,
            sentence=" ".join((probe.__doc__ or "").split()),
            probe=probe,
            roles=frozenset(roles),
            writes=writes or extension,
            extension=extension,
            secret=secret,
            emulator=emulator,
            mode=mode,
            specified=source.startswith("spec:") if specified is None else specified,
        )

    return decorate


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
    """Raise `Differs` unless both are equal. `true` and `1` are not equal, as in JSON.

    For a status, raise `Unspecified` if both are refusals (400 to 499).
    """
    if not are_equal(expected, seen):
        are_refusals = all(isinstance(each, int) and 400 <= each < 500 for each in (expected, seen))
        raise (Unspecified if are_refusals and what.startswith("the status") else Differs)(what, expected, seen)


def expect_that(what: str, holds: bool, expected: object, seen: object) -> None:
    """Raise `Differs` unless the condition holds. `expected` describes it."""
    if not holds:
        raise Differs(what, expected, seen)


def shown(value: object) -> str:
    """Return a value as one line of JSON, for reports. A set becomes a sorted array; bytes become text."""
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    return json.dumps(value, ensure_ascii=False, default=lambda found: sorted(found, key=str))
