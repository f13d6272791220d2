"""What the control API refuses."""

from __future__ import annotations

from typing import Final

from emulator.errors import Conflict, Forbidden, NotFound, Unavailable
from emulator.refusals import Facts, refusal

_GATE: Final = (Forbidden, "Forbidden", "W5")
_ELSEWHERE: Final = "A client on another machine called the control API"
_CONTROL: Final = "docs: Control"


@refusal(*_GATE, "The control API does not know this host",
         "Use a loopback address, or start `extcli serve --control-host NAME`.")  # fmt: skip
def unknown_host(*, host: str) -> Facts:
    detail = f"the control API does not answer to the host {host!r}; allow it with --control-host, "
    detail += "or send the control token: EXTCLI_CONTROL_TOKEN of extcli"
    return Facts(detail, f"Host {host!r}", "a loopback host, or one of --control-host")


@refusal(*_GATE, _ELSEWHERE, "Set EXTCLI_CONTROL_TOKEN to the token that `extcli serve` printed at its start.")
def no_control_token() -> Facts:
    detail = "the control API answers clients on another machine only with the control token, in "
    detail += "X-Emulator-Token or EXTCLI_CONTROL_TOKEN of extcli"
    held = "a client on another machine without the token"
    return Facts(detail, held, "the control token, or a client on this machine")


@refusal(*_GATE, _ELSEWHERE, "Call it on this machine, or start `extcli serve --control-host NAME`.")
def foreign_proxy() -> Facts:
    detail = "the control API does not answer a proxy whose client is on another machine; "
    detail += "allow the proxy's host name with --control-host"
    return Facts(detail, "a proxy with a client elsewhere", "a client on this machine")


@refusal(*_GATE, "A web page of another origin called the control API",
         "Call it from a program or from a page of the service itself.")  # fmt: skip
def foreign_page() -> Facts:
    held = "Origin or Sec-Fetch-Site of another site"
    detail = "the control API does not answer web pages of another origin"
    return Facts(detail, held, "a request without them, or of the same origin")


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
