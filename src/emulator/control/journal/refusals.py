"""Refusals of the journal."""

from __future__ import annotations

from emulator.errors import Facts, NotFound, refusal


@refusal(NotFound, "No such entry", "docs: Journal", "The journal has no such entry",
         "List what it has: `extcli logs`.")  # fmt: skip
def no_entry(*, id: str) -> Facts:
    detail = f"id: the journal has no {id!r}; it may be too old, or from before a reset or restart"
    return Facts(detail, f"id {id!r}", "an entry that the journal still keeps")
