"""What sockets refuse."""

from __future__ import annotations

from emulator.errors import Unauthorized
from emulator.refusals import Facts, refusal


@refusal(
    Unauthorized,
    "Unauthorized",
    "X3",
    "The connection is not authenticated",
    "Send the action authenticate first, with a PIN or a token; `extcli socket send` does so by itself.",
)
def not_authenticated() -> Facts:
    detail = "authenticate first: before, only authenticate and subscribing to authentication are allowed"
    return Facts(detail, "an unauthenticated connection", "authenticate with pin, jwt or refresh")
