"""The rules by which production differs from the sandbox: one closed list, and the form of a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

REFUSE = "refuse"
"""Production responds with an error."""
UNKNOWN = "unknown"
"""Production may respond with an error. The service cannot know this here."""
DIFFER = "differ"
"""Production responds differently, or stores something else."""


class Rule(NamedTuple):
    """A rule of production."""

    status: int
    """Of production's response."""
    meaning: str


RULES: Mapping[str, Rule] = {
    "endpoint": Rule(404, "production does not have this endpoint"),
    "registration": Rule(401, "the client id is not in the extensions file"),
    "signature": Rule(401, "no secret of the extension signed the token"),
    "secret": Rule(401, "the base64 text of the secret signed the token: decode the secret first"),
    "stage": Rule(403, "the token is for the sandbox: sign it with the extension's secret"),
    "exp": Rule(401, "the token has no exp in seconds"),
    "claims": Rule(401, "the token is for another extension, or a claim is malformed"),
    "caller-rate": Rule(429, "the caller sends more requests per second than production allows"),
    "client-rate": Rule(429, "the client id sends more requests per second than --client-rate"),
    "role": Rule(403, "the caller's role may do this in the sandbox only"),
    "receipt": Rule(400, "the receipt of a purchase is not signed, has expired or is another user's"),
    "pin-guesses": Rule(429, "too many PINs were requested, or too many wrong PINs were sent"),
    "pin-channel": Rule(400, "no broadcaster has bound the PIN to a channel"),
    "lifetime": Rule(200, "a store has expired in the sandbox; production would still have it"),
}
"""The rules in the order in which production applies them."""
_SEPARATOR = "; rule="


def verdict_of(outcome: str, rule: str) -> str:
    """Return a verdict: the value of the header `X-Emulator-Production`, such as `refuse; rule=stage`."""
    return f"{outcome}{_SEPARATOR}{rule}"


def outcome_of(verdict: str) -> str:
    """Return what production does under a verdict: `refuse`, `unknown` or `differ`."""
    return verdict.partition(_SEPARATOR)[0]


def rule_of(verdict: str) -> str:
    """Return the rule of a verdict; empty if it has none."""
    return verdict.partition(_SEPARATOR)[2]
