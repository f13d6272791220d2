"""Which rulings apply to an endpoint or action, and which values a refused request sent. No I/O."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from emulator.wire.url import parameters_of

_SUBJECTS: Final = tuple(
    (re.compile(pattern), rule, roles_rule)
    for pattern, rule, roles_rule in (
        (r"/_ns\b", "docs: Namespaces", "W5"),
        (r"_emulator/clock", "docs: Clock", "W5"),
        (r"_emulator/seed", "docs: Seeds", "W5"),
        (r"_emulator/snapshot", "docs: Snapshots", "W5"),
        (r"_emulator/faults", "docs: Faults", "W5"),
        (r"_emulator/wait", "docs: Waits", "W5"),
        (r"_emulator/", "docs: Control", "W5"),
        (r"codes/redeem|codes/elig", "C5", "C1"),
        (r"codes/mark", "C3", "C1"),
        (r"codes", "C2", "C1"),
        (r"json_store", "S5", "S5"),
        (r"broadcast|whisper", "W6", "B1"),
        (r"curated_poll|team_membership", "gaps: Trivia", "gaps: Trivia"),
        (r"transaction|twitchPurchaseBits", "gaps: Purchases", "gaps: Purchases"),
        (r"datastream", "X9", "spec: Authentication"),
        (r"vote_config|poll$", "P4", "P4"),
        (r"/polls$|/rankings$|/buffers$", "gaps: Polls and stores", "gaps: Polls and stores"),
        (r"vote", "P2", "spec: Authentication"),
        (r"rank", "R1", "spec: Authentication"),
        (r"(?i)get .*accumulate", "R2", "spec: Authentication"),
        (r"accumulate", "R3", "spec: Authentication"),
        (r"validate_pin|pin_token|/pin$|link/pin|authenticate", "T2", "spec: Authentication"),
        (r"user_ids|user_info|authtoken", "gaps: Clock and directory", "gaps: Clock and directory"),
        (r"state|config|channel|extension", "S2", "S1"),
    )
)


def rules_about(name: str) -> tuple[str, str]:
    """Return the rule about the input of an endpoint or action, and the one about its roles."""
    return next(((rule, roles) for subject, rule, roles in _SUBJECTS if subject.search(name)), ("W2", "A4"))


_SHORT: Final = 60
"""Characters of a body that is shown as it is."""


def what_was_sent(detail: str, path: str, body: bytes) -> str:
    """Return the field that the detail of an error begins with and its value, or a short body; empty if unknown.

    `path` has the query. Path and body are as the journal has them: without secrets, and perhaps cut off.
    """
    field, colon, _ = detail.partition(": ")
    if not colon:
        text = body.decode(errors="replace")
        return f"the body {text}" if text and len(text) <= _SHORT else ""
    value = _value_of(field, path, body)
    return f"{field} {value}" if value else ""


def _value_of(field: str, path: str, body: bytes) -> str:
    """Return the value of a field as it was sent, as JSON; empty if unknown."""
    query = parameters_of(path.partition("?")[2])
    if field in query:
        return msgspec.json.encode(query[field]).decode()
    try:
        value: Any = msgspec.json.decode(body) if body else None
        for member in re.findall(r"[\w$-]+", field) if value is not None else ():
            value = value[int(member)] if isinstance(value, list) else value[member]
    except (msgspec.MsgspecError, KeyError, IndexError, ValueError, TypeError, RecursionError):
        return ""
    return "" if value is None else msgspec.json.encode(value).decode()
