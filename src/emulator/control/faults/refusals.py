"""Refusals of the control of faults."""

from __future__ import annotations

from typing import Final

from emulator.errors import BadRequest, Conflict, Facts, NotFound, refusal

_RULE: Final = "docs: Faults"


@refusal(NotFound, "No such fault", _RULE, "There is no fault with this id", "List the faults: `extcli fault list`.")
def no_fault(*, id: str) -> Facts:
    detail = f"id: there is no fault {id!r}; `extcli fault list` names them"
    return Facts(detail, f"fault {id!r}", "the id of a fault")


@refusal(Conflict, "No faults", _RULE, "Faults need a service with one process",
         "Start `extcli serve --workers 1`, with data in memory or in a SQLite file.")  # fmt: skip
def not_alone() -> Facts:
    detail = "faults act in one process, and several may serve this data: "
    detail += "start one with --workers 1, and data in memory or in a SQLite file"
    return Facts(detail, "several workers, or data on Redis", "one worker and data on SQLite")


@refusal(BadRequest, "Too many faults", _RULE, "There are too many faults", "Remove some: `extcli fault rm ID`.")
def too_many_faults(*, count: int, limit: int) -> Facts:
    detail = f"faults: there would be {count}; the limit is {limit}"
    return Facts(detail, f"{count} faults", f"at most {limit} faults")
