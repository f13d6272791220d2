"""Refusals of the control of sockets."""

from __future__ import annotations

from emulator.errors import Facts, NotFound, refusal


@refusal(NotFound, "Not Found", "docs: Control", "There is no such open socket", "List them: `extcli socket list`.")
def no_socket(*, socket: int | None) -> Facts:
    detail = f"socket: there is no open socket {socket} in this process"
    return Facts(detail, f"socket {socket}", "the number of an open socket of this process")
