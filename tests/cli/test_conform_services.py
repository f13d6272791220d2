"""Every service of our own keeps all rules: both modes, each engine, with and without a namespace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.config.environment import PRODUCTION
from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Settings
from engines.redis_server import RedisServer
from support.faults import add_fault
from support.program import SECRET_BASE64
from support.service import CLIENT_ID, SECRET, live_server

pytestmark = pytest.mark.long
ONLY_ELSEWHERE = {
    "sandbox": {"only in production"},
    "production": {"only in sandbox", "needs the control API of an emulator"},
}


@pytest.fixture(scope="module", params=["memory", "file", "redis"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of empty data, on each engine."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    match request.param:
        case "memory":
            yield "sqlite://"
        case "file":
            yield f"sqlite://{folder}/data.db"
        case _:
            with RedisServer(folder) as redis:
                yield redis.url()


@pytest.mark.parametrize("environment", ["sandbox", "production"])
def test_every_engine_keeps_all_rules_in_both_modes(extcli, data: str, environment: str, tmp_path: Path):
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    settings = Settings(data=data)
    if environment == "production":
        settings = Settings(PRODUCTION, data=f"{data}.production" if ".db" in data else data, extensions=extensions)
    with live_server(settings) as live:
        options = ("--writes", "--yes", "--whole-extension", "--url", live.url, "-o", "json")
        result = extcli("conform", *options, env={"EXTCLI_SECRET": SECRET_BASE64})

    assert [] == [each for each in result.json["rules"] if each["status"] not in ("pass", "skipped")]
    assert 0 == result.exit_code
    assert ONLY_ELSEWHERE[environment] >= {each["reason"] for each in result.json["rules"] if "reason" in each}


def test_a_namespace_keeps_all_rules(extcli, live):
    with live.client(None) as client:
        client.post(f"{live.url}/_ns/blue").raise_for_status()

    result = extcli("conform", "--writes", "--url", f"{live.url}/_ns/blue", "-o", "json")

    assert [] == [each for each in result.json["rules"] if each["status"] not in ("pass", "skipped")]
    assert (0, ONLY_ELSEWHERE["sandbox"]) == (
        result.exit_code,
        {each["reason"] for each in result.json["rules"] if "reason" in each},
    )


def test_a_recording_of_one_engine_passes_on_the_others(extcli, live, data: str, tmp_path: Path):
    recording = str(tmp_path / "recording.json")
    extcli("conform", "--writes", "--record", recording)

    with live_server(Settings(data=data)) as other:
        result = extcli("conform", "--writes", "--against", recording, "--url", other.url, "-o", "json")

    assert [] == [each for each in result.json["rules"] if each.get("recorded", "same") != "same"]
    assert 0 == result.exit_code


# `extcli conform --record` and `--against`


RULES = ("--only", "W3", "--only", "voting", "--only", "T2", "--only", "X5", "--writes")


SHARED = [f"--only={each}" for each in ("authentication", "trivia", "S1", "S3", "A4", "W1", "C1")]
"""Rules that read what belongs to the whole extension, or hold in one mode only."""


@pytest.fixture
def recording(extcli, tmp_path) -> str:
    """A recording of some rules."""
    file = str(tmp_path / "recording.json")
    assert 0 == extcli("conform", *RULES, "--record", file).exit_code
    return file


def test_a_difference_from_a_recording_is_7_and_names_the_place(extcli, recording, live):
    assert {"same"} == recorded(extcli("conform", *RULES, "--against", recording, "-o", "json", exits=0))
    add_fault(live, "GET /v1/e/rank", "status", status=418, times=1)

    result = extcli("conform", "--only", "W3", "--against", recording, "-o", "json", exits=7)

    [found] = [each for each in result.json["rules"] if each["rule"] == "W3.empty-list"]
    assert "GET rank?id=<id-2>" in found["recorded"]


def recorded(result) -> set[str]:
    """Return what a run says of its rules and the recording."""
    return {each["recorded"] for each in result.json["rules"] if "recorded" in each}


def test_a_kept_rule_that_differs_from_the_recording_exits_7(extcli, recording):
    found = json.loads(Path(recording).read_text())
    found["rules"]["W3.empty-list"]["answers"][0]["answer"] = "another"
    Path(recording).write_text(json.dumps(found))

    result = extcli("conform", "--only", "W3.empty-list", "--against", recording, exits=7)

    assert "pass" == result.rows[0][0]


def test_the_sandbox_equals_a_recording_of_production_with_data(extcli, tmp_path):
    file = tmp_path / "recording.json"
    secret = {"EXTCLI_SECRET": SECRET_BASE64}
    with live_server(Settings(PRODUCTION, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as production:
        for command in (
            "store-config set extension motto=private --yes",
            "state set hidden key=private --yes",
            "trivia define theirs --name private",
            "trivia define-option theirs red --name private",
            "trivia move theirs unlocked",
            "trivia vote theirs red",
        ):
            extcli(*command.split(), "--url", production.url, env=secret, exits=0)
        extcli("conform", "--writes", "--yes", *SHARED, "--record", str(file), "--url", production.url, env=secret)

    result = extcli("conform", "--writes", *SHARED, "--against", str(file), "-o", "json", exits=0)

    assert {"same", "not recorded"} == recorded(result)
    assert "private" not in file.read_text()


def test_a_recording_is_json_without_secrets_and_random_texts(recording):
    text = Path(recording).read_text()

    assert 1 == json.loads(text)["extcli_conform"]
    assert "eyJ" not in text
    assert [] == re.findall(r"conform-[0-9a-f]+", text)
    assert {"<pin>"} == set(re.findall(r'"pin": "([^"]*)"', text))


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[]", '{"rules": {}}', '{"extcli_conform": 2, "rules": {}}'),
        *('{"extcli_conform": 1, "rules": {"W3": 5}}', '{"extcli_conform": 1, "rules": {"W3": {"answers": null}}}'),
        '{"extcli_conform": 1, "rules": {"W3": {"answers": [{}, 5]}}}',
    ],
)
def test_a_file_that_is_not_a_recording_is_refused(extcli, file, content):
    extcli("conform", "--against", file(content), exits=2)
