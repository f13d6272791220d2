"""Refusals of limits."""

from __future__ import annotations

from typing import Final

from emulator.core.errors import BadRequest, Facts, TooManyRequests, refusal

TOO_MANY: Final = "Too many connections"
_RETRY_AFTER: Final = 10
"""Seconds, a guess: a connection may close at any time."""


@refusal(BadRequest, "Too many ids", "W10", "Too many ids are in use",
         "Reuse ids, have the owner delete old ones, or raise --max-ids of `extcli serve`.")  # fmt: skip
def too_many_ids(*, used: int, whose: str, channel: str, limit: int) -> Facts:
    where = f"in channel {channel}" if channel else "without a channel"
    detail = f"id: {used} of this kind that {whose} began are in use {where}; the limit is {limit}"
    return Facts(detail, f"{used} ids that {whose} began {where}", f"at most {limit} ids")


@refusal(TooManyRequests, TOO_MANY, "gaps: Limits", "Too many connections are open",
         "Close some, or raise the limit of open files, or --max-sockets, --address-connections, --address-sockets or "
         "--address-pages of `extcli serve`.")  # fmt: skip
def too_many_connections(*, what: str, count: int, limit: int) -> Facts:
    detail = f"{count} {what} are open; the limit is {limit}"
    return Facts(detail, f"{count} open {what}", f"at most {limit}", (), _RETRY_AFTER)


_TOO_MANY: Final = (TooManyRequests, "Too many requests", "gaps: Limits")


@refusal(
    *_TOO_MANY,
    "Too many requests",
    "Wait {seconds} s and send less often, or raise --caller-rate or --client-rate of `extcli serve`.",
)
def too_many_requests(*, by: str, seconds: int) -> Facts:
    held, needed = f"more requests {by} than the rate allows", f"a wait of {seconds} s before the next request"
    return Facts(f"too many requests {by}; retry in {seconds} s", held, needed, (), seconds)


@refusal(*_TOO_MANY, "Too many invalid credentials",
         "Wait {seconds} s, and send a valid token; `extcli token inspect` shows why.")  # fmt: skip
def too_many_credentials(*, seconds: int) -> Facts:
    detail = f"too many invalid credentials from this address; retry in {seconds} s"
    return Facts(detail, "more invalid credentials than the rate allows", f"a wait of {seconds} s", (), seconds)
