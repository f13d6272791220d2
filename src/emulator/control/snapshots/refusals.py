"""Refusals of snapshots."""

from __future__ import annotations

from emulator.errors import BadRequest, Facts, refusal


@refusal(BadRequest, "Invalid snapshot", "docs: Snapshots", "The snapshot is invalid",
         "Save it again: `extcli snapshot save FILE`.")  # fmt: skip
def invalid(line: int, problem: str) -> Facts:
    """A line of a snapshot is invalid. `line` counts from 1; 0 means that the record is not part of a file."""
    detail = f"line {line}: {problem}" if line else problem
    return Facts(detail, detail, "a snapshot as it was saved")
