"""`extcli conform --record` and `--against`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.faults import add_fault

RULES = ("--only", "W3", "--only", "voting", "--only", "T2", "--only", "X5", "--writes")


@pytest.fixture
def recording(extcli, tmp_path) -> str:
    """A recording of some rules."""
    file = str(tmp_path / "recording.json")
    assert 0 == extcli("conform", *RULES, "--record", file).exit_code
    return file


def test_a_service_equals_its_own_recording(extcli, recording):
    result = extcli("conform", *RULES, "--against", recording, "-o", "json")

    assert (0, {"same"}) == (result.exit_code, {each["recorded"] for each in result.json["rules"]})


def test_a_difference_from_a_recording_is_7_and_names_the_place(extcli, recording, live):
    add_fault(live, "GET /v1/e/rank", "status", status=418, times=1)

    result = extcli("conform", "--only", "W3", "--against", recording, "-o", "json")

    found = next(each for each in result.json["rules"] if each["rule"] == "W3.empty-list")
    assert (7, True) == (result.exit_code, found["recorded"].endswith("status was 200, is 418"))
    assert found["recorded"].startswith("GET rank?id=<id-2> as admin: ")


def test_a_rule_that_is_not_in_the_recording_is_no_failure(extcli, recording):
    result = extcli("conform", "--only", "W7.*", "--writes", "--against", recording, "-o", "json")

    assert (0, {"not recorded"}) == (result.exit_code, {each["recorded"] for each in result.json["rules"]})


def test_a_recording_is_json_without_secrets_and_random_texts(recording):
    text = Path(recording).read_text()

    assert 1 == json.loads(text)["extcli_conform"]
    assert "eyJ" not in text
    assert [] == re.findall(r"conform-[0-9a-f]+", text)
    assert {"<pin>"} == set(re.findall(r'"pin": "([^"]*)"', text))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is not a recording"),
        ("[]", "is not a recording"),
        ('{"rules": {}}', "is not a recording"),
        ('{"extcli_conform": 2, "rules": {}}', "has version 2 of the format; this extcli reads version 1"),
        ('{"extcli_conform": 1, "rules": {"W3": 5}}', "rule W3: `answers` is not a list of objects"),
        ('{"extcli_conform": 1, "rules": {"W3": {"answers": null}}}', "`answers` is not a list of objects"),
        ('{"extcli_conform": 1, "rules": {"W3": {"answers": [{}, 5]}}}', "`answers` is not a list of objects"),
    ],
)
def test_another_file_is_no_recording(extcli, file, content, reason):
    result = extcli("conform", "--against", file(content))

    assert (2, True) == (result.exit_code, reason in result.stderr)
