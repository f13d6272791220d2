"""The rules by which production differs from the sandbox: one closed list, with the effect of each. No I/O.

A verdict says what production does and by which rule. It is empty if nothing differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emulator.contract.parity import DIFFER, REFUSE, RULES, UNKNOWN, verdict_of

ANSWERS: Final[Mapping[str, int]] = {name: rule.status for name, rule in RULES.items()}
"""The status of production's response by rule, in the order in which production applies them."""

ENDPOINT: Final = verdict_of(REFUSE, "endpoint")
"""Production does not have this endpoint."""
REGISTRATION: Final = verdict_of(REFUSE, "registration")
"""The client id is not in the extensions file."""
UNREGISTERED: Final = verdict_of(UNKNOWN, "registration")
"""There is no extensions file, and no token."""
SIGNATURE: Final = verdict_of(REFUSE, "signature")
"""No secret of the extension signed the token."""
UNDECODED: Final = verdict_of(REFUSE, "secret")
"""The base64 text of a secret signed the token, not the secret."""
UNVERIFIED: Final = verdict_of(UNKNOWN, "signature")
"""No secret of the extension is known here."""
STAGE: Final = verdict_of(REFUSE, "stage")
"""The token is for the sandbox."""
FOR_SANDBOX: Final = verdict_of(UNKNOWN, "stage")
"""The token is for the sandbox, and there is no extensions file with a secret for another.

Counted once, and not shown with each request.
"""
EXP: Final = verdict_of(REFUSE, "exp")
"""The token never expires, or says so in milliseconds."""
CLAIMS: Final = verdict_of(REFUSE, "claims")
"""The token is for another extension, or a claim is malformed."""
CALLER_RATE: Final = verdict_of(REFUSE, "caller-rate")
"""The caller, or the address, sends more requests than production's default rate."""
CLIENT_RATE: Final = verdict_of(REFUSE, "client-rate")
"""The callers of the client id send too many requests together."""
FREER_RATE: Final = verdict_of(DIFFER, "client-rate")
"""The sandbox refuses, but production had counted fewer requests, because it had refused some."""
ROLE: Final = verdict_of(REFUSE, "role")
"""The role may do this in the sandbox only."""
RECEIPT: Final = verdict_of(REFUSE, "receipt")
"""The receipt of a purchase is not signed, has expired or is another user's."""
OTHER_POSTER: Final = verdict_of(DIFFER, "receipt")
"""The sandbox refuses a purchase that another caller has posted; production knows who may post it from the receipt."""
PIN_GUESSES: Final = verdict_of(REFUSE, "pin-guesses")
"""Too many PINs were requested, or typed wrong."""
PIN_CHANNEL: Final = verdict_of(REFUSE, "pin-channel")
"""The PIN is bound to no channel."""
LIFETIME: Final = verdict_of(DIFFER, "lifetime")
"""A store expired that production would still have."""
UNJUDGED: Final = "-"
"""A request that gets no verdict."""


def is_final(verdict: str) -> bool:
    """Whether production would make no later check, because it has refused, or because the request gets no verdict."""
    return verdict not in _OPEN


_OPEN: Final = frozenset({"", UNREGISTERED, UNVERIFIED, FOR_SANDBOX})
_STATUSES: Final = {
    **{verdict_of(outcome, rule): status for outcome in (REFUSE, UNKNOWN) for rule, status in ANSWERS.items()},
    **{verdict_of(DIFFER, rule): 0 for rule in ANSWERS},
}
"""The status of production's response by verdict; 0 if that is not all that differs."""


def final_verdict(verdict: str, status: int, answered: int | None = None) -> str:
    """Return the verdict; empty if the sandbox returned the status that production would.

    `answered` is production's status, if it differs from the rule's.
    """
    if verdict == UNJUDGED:
        return ""
    there = _STATUSES[verdict]
    return "" if status == ((answered or there) if there else 0) else verdict
