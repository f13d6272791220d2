"""The rules by which production differs from the sandbox: verdicts, counts, lapsed records, and which are failures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from emulator.config.environment import PRODUCTION, SANDBOX
from emulator.contract.parity import outcome_of, rule_of
from emulator.engines.shapes import NEVER, Expired, Key
from emulator.observability.request_context import RequestContext, bound_to
from emulator.parity import service as rules
from emulator.parity.lapses import Lapses
from emulator.parity.service import ANSWERS, Example, Tally, final_verdict, is_final, is_reached, note
from extcli.errors import UsageError
from extcli.parity import RULES, Selection, lines_of

VERDICTS = [text for name, text in vars(rules).items() if name.isupper() and isinstance(text, str) and ";" in text]


def test_every_verdict_is_of_the_closed_list():
    assert set(ANSWERS) == {rule_of(verdict) for verdict in VERDICTS}
    assert {"refuse", "unknown", "differ"} == {outcome_of(verdict) for verdict in VERDICTS}


def test_the_command_line_knows_the_same_rules_in_the_same_order():
    assert list(ANSWERS) == list(RULES)


NOT_COMPARED = "limits of connections, and names"
DIFFERENCES = {
    "name": NOT_COMPARED,
    "verifies_tokens": "registration signature secret exp claims role receipt pin-channel",
    "issues_sandbox_tokens": "endpoint",
    "stage": "stage",
    "refused_stage": "stage",
    "caller_rate": "caller-rate client-rate",
    "has_control": "endpoint",
    "state_lifetime": "lifetime",
    "config_lifetime": "lifetime",
    "address_pins": "pin-guesses",
    "address_pin_attempts": "pin-guesses",
    "client_pin_attempts": "pin-guesses",
    "address_sockets": NOT_COMPARED,
    "max_unauthenticated": NOT_COMPARED,
    "login_timeout": NOT_COMPARED,
    "address_pages": NOT_COMPARED,
    "address_kib": NOT_COMPARED,
}
"""Each setting in which the environments differ, and the rules that say so."""


def test_every_difference_between_the_environments_has_a_rule():
    here, there = ({**asdict(each), **asdict(each.anonymous)} for each in (SANDBOX, PRODUCTION))
    different = {name for name in here if here[name] != there[name]} - {"anonymous"}

    assert set(DIFFERENCES) == different
    assert set(ANSWERS) == {rule for text in DIFFERENCES.values() if text != NOT_COMPARED for rule in text.split()}


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


def test_an_unknown_verdict_gives_way_to_a_known_one():
    assert not is_final("")
    assert not is_final(rules.UNVERIFIED)
    assert is_final(rules.LIFETIME)
    assert is_final(rules.UNJUDGED)


def test_a_tally_keeps_the_first_and_the_latest_example_of_each_verdict():
    tally = Tally()
    for number in range(4):
        tally.count(rules.STAGE, Example(str(number), "GET /v1/e/vote", number))
    tally.count(rules.ENDPOINT, Example("x", "POST /v1/e/authtoken", 9))

    assert [("endpoint", 1, ["x"]), ("stage", 4, ["0", "3"])] == [
        (seen.rule, seen.count, [each.request_id for each in seen.examples]) for seen in tally.seen
    ]


STATE, CONFIG = Key("channel_state", "", "", "777"), Key("channel_config", "", "", "777")


@pytest.fixture
def lapses() -> Lapses:
    """Both expire after 10 ms here; in production state after 30 ms, config never."""
    found = Lapses({"channel_state": (10, 30), "channel_config": (10, NEVER)})
    found.expired([Expired(STATE, 110), Expired(CONFIG, 110), Expired(Key("poll", "", "p"), 110)])
    return found


def is_noted(lapses: Lapses, key: Key, now: int) -> bool:
    context = RequestContext("")
    with bound_to(context):
        lapses.read([key], now)
    return context.production == rules.LIFETIME


@pytest.mark.parametrize(("key", "now", "expected"), [(STATE, 129, True), (STATE, 130, False), (CONFIG, 10**15, True)])
def test_a_lapsed_record_counts_until_it_expires_in_production(lapses: Lapses, key: Key, now: int, expected: bool):
    assert expected == is_noted(lapses, key, now)


def test_a_record_of_another_kind_does_not_lapse(lapses: Lapses):
    assert not is_noted(lapses, Key("poll", "", "p"), 111)


def test_a_change_in_part_lengthens_the_life_in_production(lapses: Lapses):
    lapses.changed([STATE], 120)

    assert [True, False] == [is_noted(lapses, STATE, now) for now in (149, 150)]


def test_a_replaced_record_is_no_longer_lapsed(lapses: Lapses):
    lapses.replaced([STATE])

    assert not is_noted(lapses, STATE, 111)


def test_all_records_of_an_owner_are_found_by_their_kind():
    lapses = Lapses({"trivia_voter": (10, 30)})
    lapses.expired([Expired(Key("trivia_voter", "my-extension", "", "", "U5"), 110)])

    noted = []
    for owner in ("my-extension", "other-extension"):
        context = RequestContext("")
        with bound_to(context):
            lapses.read_all("trivia_voter", owner, 111)
        noted.append(context.production)

    assert [rules.LIFETIME, ""] == noted


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


def test_an_unknown_rule_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="no rule 'stages'") as refused:
        Selection("stages")

    assert "endpoint, registration, signature" in refused.value.fix


def test_rules_that_are_all_left_out_are_refused():
    with pytest.raises(UsageError, match="'stage,!stage' excludes every rule"):
        Selection("stage,!stage")
    with pytest.raises(UsageError, match="no rule '!stages'"):
        Selection("!stages")


def test_a_failure_is_shown_with_its_meaning_and_its_requests():
    assert [
        "  stage: would refuse 3 requests",
        "    the token is for the sandbox: sign it with the extension's secret",
        "    first id-0 GET /v1/e/vote",
        "    latest id-1 GET /v1/e/vote",
        "  signature: may refuse 1 request",
        "    the service knows no secret: start it with --extensions",
        "    request id-0 GET /v1/e/vote",
    ] == lines_of([seen("stage", count=3), seen("signature", "unknown")])
