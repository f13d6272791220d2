"""Every service of our own keeps all rules: both modes, each engine, with and without a namespace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from engines.redis_server import RedisServer
from extcli.conform import run
from extcli.conform.run import all_rules
from support import planted_data, planted_votes, planted_wire  # noqa: F401 - they fill the list
from support.examples import spread
from support.executed_code import Executed, Recorder
from support.faults import add_fault
from support.planted_faults import FAULTS, Patch, PlantedFault
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_recording_of_one_engine_passes_on_the_others(extcli, live, data: str, tmp_path: Path):
    recording = str(tmp_path / "recording.json")
    extcli("conform", "--writes", "--record", recording)

    with live_server(Settings(data=data)) as other:
        result = extcli("conform", "--writes", "--against", recording, "--url", other.url, "-o", "json")

    assert [] == [each for each in result.json["rules"] if each.get("recorded", "same") != "same"]
    assert 0 == result.exit_code


# `extcli conform` finds faults planted in the service, and names the rules that they break


CONFORM = ("conform", "--writes", "--yes", "--whole-extension", "-o", "json")
SERVICE = Settings(PRODUCTION, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})
EXECUTED: dict[str, Executed] = {}
"""What the service executes for each rule, and under an empty name at its start. Recorded once per test process."""


@pytest.fixture
def executed(extcli) -> dict[str, Executed]:
    if not EXECUTED:
        recorder = Recorder()
        with pytest.MonkeyPatch.context() as patch, recorder.active():
            EXECUTED[""] = recorder.current
            probe = run.probe

            def recorded(rule, target):
                EXECUTED[rule.name] = recorder.begin()
                return probe(rule, target)

            patch.setattr(run, "probe", recorded)
            with live_server() as live:
                assert 0 == extcli(*CONFORM, env={"EXTCLI_URL": live.url}).exit_code
    return EXECUTED


def concerned(patch: Patch, fault: PlantedFault, executed: dict[str, Executed]) -> Sequence[str]:
    """Return the options that select the rules that a fault may break: for the other rules, none of its code runs."""
    if fault.production or patch.concerns(executed[""]):
        return ()
    return [f"--only={name}" for name, code in executed.items() if patch.concerns(code)]


@pytest.mark.parametrize("fault", spread(FAULTS, 12), ids=lambda fault: fault.name)
def test_a_planted_fault_fails_exactly_its_rules(extcli, executed: dict[str, Executed], fault: PlantedFault):
    with pytest.MonkeyPatch.context() as original:
        patch = Patch(original)
        fault.plant(patch)
        with live_server(SERVICE if fault.production else None) as live:
            env = {"EXTCLI_URL": live.url, **({"EXTCLI_SECRET": SECRET_BASE64} if fault.production else {})}
            result = extcli(*CONFORM, *concerned(patch, fault, executed), env=env)

    found = {rule["rule"]: rule for rule in result.json["rules"] if rule["status"] not in ("pass", "skipped")}
    assert fault.finds == set(found), found
    assert ({"fail"}, 7) == ({rule["status"] for rule in found.values()}, result.exit_code)


def test_there_are_25_planted_faults_and_their_rules_exist():
    names = {rule.name for rule in all_rules()}

    assert 25 <= len(FAULTS) == len({fault.name for fault in FAULTS})
    assert {} == {fault.name: fault.finds - names for fault in FAULTS if not fault.finds or fault.finds - names}


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


def test_a_service_equals_its_own_recording(extcli, recording):
    result = extcli("conform", *RULES, "--against", recording, "-o", "json")

    assert (0, {"same"}) == (result.exit_code, {each["recorded"] for each in result.json["rules"]})


def test_a_difference_from_a_recording_is_7_and_names_the_place(extcli, recording, live):
    add_fault(live, "GET /v1/e/rank", "status", status=418, times=1)

    result = extcli("conform", "--only", "W3", "--against", recording, "-o", "json")

    found = next(each for each in result.json["rules"] if each["rule"] == "W3.empty-list")
    assert (7, True) == (result.exit_code, found["recorded"].endswith("status was 200, is 418"))
    assert found["recorded"].startswith("GET rank?id=<id-2> as admin: ")


def test_a_kept_rule_that_differs_from_the_recording_exits_7(extcli, recording):
    found = json.loads(Path(recording).read_text())
    found["rules"]["W3.empty-list"]["answers"][0]["answer"] = "another"
    Path(recording).write_text(json.dumps(found))

    result = extcli("conform", "--only", "W3.empty-list", "--against", recording)

    assert (7, "pass") == (result.exit_code, result.rows[0][0])
    assert "extcli: 1 rule is kept, but the responses differ from the recording: W3.empty-list" in result.stderr


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


def test_a_rule_that_is_missing_in_the_recording_does_not_fail(extcli, recording):
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
def test_a_file_that_is_not_a_recording_is_refused(extcli, file, content, reason):
    result = extcli("conform", "--against", file(content))

    assert (2, True) == (result.exit_code, reason in result.stderr)
