"""Refused resets, undos and moves of the clock."""

from __future__ import annotations

from typing import Final

from emulator.errors import Conflict, Facts, Forbidden, NotFound, Unavailable, refusal

_CONTROL: Final = "docs: Control"


@refusal(Forbidden, "Forbidden", _CONTROL, "The clock of several workers cannot be moved",
         "Start `extcli serve --workers 1`.")  # fmt: skip
def fixed_clock() -> Facts:
    detail = "the clock cannot be moved with --workers over 1, because each process has its own"
    return Facts(detail, "several workers", "one worker")


@refusal(Forbidden, "Cannot fork", "docs: Namespaces", "This storage cannot copy a namespace",
         "Start `extcli serve --data sqlite://`.")  # fmt: skip
def no_fork(*, engine: str) -> Facts:
    detail = f"namespaces on {engine} cannot be forked: a copy needs SQLite (serve --data sqlite://…)"
    return Facts(detail, f"data on {engine}", "data on SQLite")


@refusal(Forbidden, "Cannot undo", _CONTROL, "This service cannot keep the data for an undo",
         "Reset without undo, or start `extcli serve --workers 1 --data sqlite://`.")  # fmt: skip
def no_undo() -> Facts:
    detail = "undo: this storage cannot copy data, or several workers share it; leave undo out"
    return Facts(detail, "data on Redis, or several workers", "one worker and data on SQLite")


@refusal(NotFound, "Nothing to undo", _CONTROL, "No reset can be undone now",
         "Keep the data at the next reset: `extcli reset --keep 1m`.")  # fmt: skip
def nothing_to_undo() -> Facts:
    detail = "undo: no reset can be undone now; `extcli reset --keep 1m` keeps the data for a minute"
    return Facts(detail, "no reset that kept its data", "a reset that kept its data, not too long ago")


@refusal(Conflict, "Nothing to undo", _CONTROL, "Only the latest reset can be undone",
         "Undo the latest reset: `extcli reset --undo`.")  # fmt: skip
def earlier_reset() -> Facts:
    detail = "undo: this is the token of an earlier reset; only the latest is kept"
    return Facts(detail, "the token of an earlier reset", "the token of the latest reset")


@refusal(Unavailable, "Service Unavailable", "docs: Restarts", "The service is starting",
         "Wait until it is ready: `extcli wait`.")  # fmt: skip
def starting() -> Facts:
    return Facts("the service is starting; try again", "a service that is starting", "a service that is ready")
