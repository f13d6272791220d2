"""Refusals of waits."""

from __future__ import annotations

from emulator.errors import BadRequest, Facts, Forbidden, refusal


@refusal(Forbidden, "Forbidden", "docs: Waits", "This does not work with several workers",
         "Start `extcli serve --workers 1`.")  # fmt: skip
def several_workers() -> Facts:
    detail = "since, pin, broadcast and sockets do not work with --workers over 1, "
    detail += "because each process knows only its own changes and connections"
    return Facts(detail, "several workers", "one worker")


@refusal(
    BadRequest,
    "Malformed since parameter",
    "docs: Waits",
    "The mark cannot be used",
    "Take a new mark just before the wait: `extcli wait mark`.",
)
def mark_unusable(*, since: int, problem: str) -> Facts:
    return Facts(f"since: {since} {problem}", f"since {since}", "a mark of this run of the service")
