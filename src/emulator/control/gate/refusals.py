"""Refusals of callers of the control API."""

from __future__ import annotations

from typing import Final

from emulator.errors import Facts, Forbidden, refusal

_GATE: Final = (Forbidden, "Forbidden", "W5")
_ELSEWHERE: Final = "A client on another machine called the control API"


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
