"""`extcli policies`: the rulings, and what a service was seen to do."""

from __future__ import annotations

from support.faults import add_fault


def test_every_ruling_is_listed_with_its_result(extcli):
    rows = {row[0]: row for row in extcli("policies").rows}

    assert ["W1", "pass"] == rows["W1"][:2]
    assert rows["P5"][1] == ""  # only time shows it
    assert "Why" not in rows["C1"]


def test_a_ruling_that_is_not_kept_is_shown_as_fail(extcli, live):
    add_fault(live, "GET /v1/e/rank", "status", status=418)

    result = extcli("policies", "W3", "-o", "json")

    (ruling,) = result.json["rulings"]
    found = {each["rule"]: each["status"] for each in ruling["rules"]}
    assert (0, {"W3.empty-list": "fail", "W3.empty-answer": "skipped"}) == (result.exit_code, found)
    assert ["W3", "fail"] == extcli("policies", "w3").rows[0][:2]


def test_one_ruling_is_shown_with_its_whole_text_and_its_rules(extcli):
    text = extcli("policies", "W3", "-o", "table").stdout

    assert "docs/gaps.md, ruling W3" in text
    assert "Why: The SDK rejects an empty body" in text
    assert "W3.empty-list" in text
    assert "\\n" not in text


def test_without_a_service_the_rulings_are_listed_alone(extcli):
    result = extcli("policies", "--url", "http://127.0.0.1:9")

    assert (0, {""}) == (result.exit_code, {row[1] for row in result.rows})


def test_the_list_has_the_first_sentence_of_each_ruling(extcli):
    text = extcli("policies", "--url", "http://127.0.0.1:9", "-o", "table").stdout

    assert "expired (decision 0004) " in text
    assert "`authtoken` returns" not in text
    assert "\\n" not in text
