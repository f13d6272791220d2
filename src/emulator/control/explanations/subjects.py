"""Which rulings apply to an endpoint or action, by its name. No I/O."""

from __future__ import annotations

import re
from typing import Final

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
