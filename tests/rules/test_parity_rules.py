"""The rules by which production differs from the sandbox: verdicts, counts, lapsed records, and which are failures."""

from __future__ import annotations

from typing import Any

import pytest

from extcli.parity import RuleSelection


def seen(rule: str, verdict: str = "refuse", count: int = 1) -> dict[str, Any]:
    examples = [{"request_id": f"id-{number}", "endpoint": "GET /v1/e/vote"} for number in range(min(count, 2))]
    return {"rule": rule, "verdict": verdict, "count": count, "examples": examples}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("", ["stage", "caller-rate", "lifetime"]),
        ("stage", ["stage"]),
        ("stage, rate", ["stage", "caller-rate"]),
        ("unknown", ["signature"]),
        ("unknown,lifetime", ["signature", "lifetime"]),
        ("signature", []),
        ("!stage", ["caller-rate", "lifetime"]),
        ("!rate, !lifetime", ["stage"]),
        ("stage,rate,!caller-rate", ["stage"]),
        ("unknown,!stage", ["signature"]),
    ],
)
def test_a_selection_has_the_named_rules(names: str, expected: list[str]):
    document = {"rules": [seen("signature", "unknown"), seen("stage"), seen("caller-rate"), seen("lifetime", "differ")]}

    assert expected == [each["rule"] for each in RuleSelection(names).failures(document)]
