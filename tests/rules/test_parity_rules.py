"""The rules by which production differs from the sandbox: verdicts, counts, lapsed records, and which are failures."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.core import parity as rules
from emulator.core.observability.request_context import RequestContext, bound_to
from emulator.core.parity import final_verdict, is_reached, note
from extcli.parity import Selection


@pytest.mark.parametrize(
    ("verdict", "status", "expected"),
    [
        ("refuse; rule=stage", 200, "refuse; rule=stage"),
        ("refuse; rule=stage", 401, "refuse; rule=stage"),
        ("refuse; rule=stage", 403, ""),
        ("unknown; rule=signature", 200, "unknown; rule=signature"),
        ("unknown; rule=signature", 401, ""),
        ("differ; rule=lifetime", 200, "differ; rule=lifetime"),
        (rules.UNJUDGED, 200, ""),
    ],
)
def test_the_same_status_in_both_is_not_a_difference(verdict: str, status: int, expected: str):
    assert expected == final_verdict(verdict, status)


def test_the_first_check_that_decides_gives_the_verdict():
    context = RequestContext("")
    with bound_to(context):
        assert is_reached()
        for verdict in (rules.UNREGISTERED, rules.UNVERIFIED, rules.ROLE, rules.LIFETIME):
            note(verdict)
        assert not is_reached()

    assert rules.ROLE == context.production


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

    assert expected == [each["rule"] for each in Selection(names).failures(document)]
