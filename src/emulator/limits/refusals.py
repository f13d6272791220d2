"""What limits refuse."""

from __future__ import annotations

from emulator.errors import BadRequest
from emulator.refusals import Facts, refusal


@refusal(
    BadRequest,
    "Too many ids",
    rule="gaps: Limits",
    title="Too many ids are in use",
    next_step="Reuse ids, delete old ones, or raise --max-ids of `extcli serve`.",
)
def too_many_ids(*, used: int, channel: str, limit: int) -> Facts:
    where = f"in channel {channel}" if channel else "without a channel"
    detail = f"id: {used} of this kind are in use {where}, limit {limit}"
    return Facts(detail, f"{used} ids {where}", f"at most {limit} ids")
