"""Files of faults: their fields, and sending them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from extcli import bounded_json
from extcli.errors import Refused, UsageError
from extcli.faults.options import delays, in_options, members, problems
from extcli.output import times
from extcli.reading.shapes import SHAPE_ERRORS
from extcli.tables.kinds import Field, ListOf, OneOf, Report, Table, Text, Whole
from extcli.tables.positions import Path
from extcli.tables.source import source

_MOST = 100
_LONGEST_TEXT = 256
_LONGEST_WAIT = 86_400
_LARGEST_BODY = 1 << 30
_MOST_TIMES = 1_000_000_000


@dataclass(frozen=True)
class Duration:
    """A duration such as `200ms`, or also a range of them."""

    is_range: bool = False

    @property
    def allowed(self) -> str:
        return 'a duration, such as "10s"' if not self.is_range else 'a duration or two, such as "200ms" or "200ms..2s"'

    def check(self, value: object, path: Path, report: Report) -> None:
        try:
            if not isinstance(value, str):
                raise UsageError("not a text")
            delays(value) if self.is_range else times.duration(value)
        except UsageError:
            report(path, f"must be {self.allowed}")


@dataclass(frozen=True)
class Share:
    """A number over 0, at most 1."""

    allowed: str = "a number over 0, at most 1"

    def check(self, value: object, path: Path, report: Report) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            report(path, f"must be {self.allowed}")


@dataclass(frozen=True)
class Only:
    """`true`: an effect without a value."""

    allowed: str = "true"

    def check(self, value: object, path: Path, report: Report) -> None:
        if value is not True:
            report(path, f"must be {self.allowed}, or left out")


def _rule(fault: dict[str, Any], path: Path, report: Report) -> None:
    for name, problem in problems(fault, lambda option: option):
        report((*path, name) if name else path, problem)


def _ids_rule(document: dict[str, Any], path: Path, report: Report) -> None:
    report_repeated_ids(document["faults"], report)


def report_repeated_ids(faults: list[dict[str, Any]], report: Report) -> None:
    """Report faults with the same id."""
    first: dict[str, int] = {}
    for at, fault in enumerate(faults):
        if "id" in fault and first.setdefault(fault["id"], at) != at:
            report(("faults", at, "id"), f"faults[{first[fault['id']]}] has the same id")


_TEXT = Text(_LONGEST_TEXT)
_EFFECT = Only()
FAULT = Table(
    {
        "id": Field(
            Text(pattern=r"[A-Za-z0-9_-]{1,64}", rule="1 to 64 letters, digits, '-' and '_'"), "the fault's id"
        ),
        "match": Field(_TEXT, "what it acts on: a method and a path, SOCKET with action and target, or BROADCAST"),
        "event": Field(_TEXT, "only broadcasts of this event"),
        "role": Field(OneOf(("viewer", "broadcaster", "admin", "backend")), "only callers with this role"),
        "user": Field(_TEXT, "only this user"),
        "client_id": Field(_TEXT, "only this client id"),
        "channel": Field(_TEXT, "only this channel"),
        "status": Field(Whole(400, 599), "effect: answer with this status"),
        "retry_after": Field(Whole(0, _LONGEST_WAIT), "with status: seconds for the header Retry-After"),
        "delay": Field(Duration(is_range=True), "effect: answer later"),
        "drop": Field(_EFFECT, "effect: close the connection without an answer"),
        "reset": Field(_EFFECT, "effect: reset the connection"),
        "truncate": Field(Whole(0, _LARGEST_BODY), "effect: cut the answer's body after this many bytes"),
        "stall": Field(_EFFECT, "effect: never answer"),
        "close": Field(Whole(1000, 4999), "effect: close the socket with this code"),
        "lose": Field(_EFFECT, "effect: do not deliver the broadcast"),
        "double": Field(_EFFECT, "effect: deliver the broadcast twice"),
        "reorder": Field(_EFFECT, "effect: deliver the broadcast after the next one"),
        "times": Field(Whole(1, _MOST_TIMES), "end after this many hits"),
        "share": Field(Share(), "hit only this share, at random"),
        "seed": Field(Whole(-(1 << 63), (1 << 63) - 1), "another choice of share and delay; 0 by default"),
        "for": Field(Duration(), "only for this long, by the service's clock"),
    },
    _rule,
)
FAULTS = ListOf(FAULT, "faults", _MOST)
DOCUMENT = Table({"faults": Field(FAULTS, "the faults", required=True)}, _ids_rule)
"""A file of faults."""


_PLACE = re.compile(r"faults\[\d+\]")


class Target(Protocol):
    """The service, or a namespace of it."""

    def replace_faults(self, faults: Sequence[Mapping[str, Any]]) -> Any:
        """Send the faults and return the answer. Raises `Refused`."""


def load_faults(path: str, environ: Mapping[str, str], service: Target) -> Any:
    """Send the faults of a TOML or JSON file and return the answer. Raises `UsageError` and `InvalidFile`.

    If the file or the service finds an error, nothing was changed.
    """
    opened = source(path)
    faults = [members(fault) for fault in opened.value(DOCUMENT, environ)["faults"]]
    try:
        return service.replace_faults(faults)
    except Refused as error:
        if details := _problems(error.body):
            raise opened.refused([in_options(detail, faults) for detail in details]) from None
        raise


def _problems(body: bytes) -> list[str]:
    """Return the details of an error answer that name a fault; none if it is about something else."""
    try:
        details = [error["detail"] for error in bounded_json.decoded(body)["errors"]]
    except SHAPE_ERRORS:
        return []
    return details if all(map(_PLACE.match, details)) else []
