"""`extcli conform --record` and `--against`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.faults import add_fault
from support.program import SECRET_BASE64
from support.service import CLIENT_ID, SECRET, live_server

pytestmark = pytest.mark.long

RULES = ("--only", "W3", "--only", "voting", "--only", "T2", "--only", "X5", "--writes")


SHARED = [f"--only={each}" for each in ("authentication", "trivia", "S1", "S3", "A4", "W1", "C1")]
"""Rules that read what belongs to the whole extension, or hold in one mode only."""


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


def test_a_rule_that_is_kept_but_differs_from_the_recording_is_7(extcli, recording):
    found = json.loads(Path(recording).read_text())
    found["rules"]["W3.empty-list"]["answers"][0]["answer"] = "another"
    Path(recording).write_text(json.dumps(found))

    result = extcli("conform", "--only", "W3.empty-list", "--against", recording)

    assert (7, "pass") == (result.exit_code, result.rows[0][0])
    assert "extcli: 1 rule is kept with other answers than in the recording: W3.empty-list" in result.stderr


def test_the_sandbox_equals_a_recording_of_production_with_data(extcli, tmp_path):
    file = tmp_path / "recording.json"
    secret = {"EXTCLI_SECRET": SECRET_BASE64}
    with live_server(Settings(PRODUCTION, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as production:
        for command in (
            ("store-config", "set", "extension", "motto=private"),
            ("state", "set", "hidden", "key=private"),
            ("trivia", "define", "theirs", "--name", "private"),
            ("trivia", "define-option", "theirs", "red", "--name", "private"),
            ("trivia", "move", "theirs", "unlocked"),
            ("trivia", "vote", "theirs", "red"),
        ):
            more = ("--yes",) if command[1] == "set" else ()
            assert 0 == extcli(*command, *more, "--url", production.url, env=secret).exit_code
        extcli("conform", "--writes", "--yes", *SHARED, "--record", str(file), "--url", production.url, env=secret)

    result = extcli("conform", "--writes", *SHARED, "--against", str(file), "-o", "json")

    assert {"same", "not recorded"} == {each["recorded"] for each in result.json["rules"] if "recorded" in each}
    assert (0, False) == (result.exit_code, "private" in file.read_text())


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
