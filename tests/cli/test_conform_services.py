"""Every service of our own keeps all rules: both modes, each engine, with and without a namespace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.environment import PRODUCTION
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
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


# `extcli conform --record` and `--against`


def test_a_recording_has_no_secret_or_random_text_and_a_difference_from_it_is_7(extcli, live, tmp_path):
    rules = ("--only", "W3", "--only", "voting", "--only", "T2", "--only", "X5", "--writes")
    recording = str(tmp_path / "recording.json")
    extcli("conform", *rules, "--record", recording, exits=0)

    def compared(*chosen: str, exits: int) -> dict[str, str]:
        result = extcli("conform", *chosen, "--against", recording, "-o", "json", exits=exits)
        return {each["rule"]: each["recorded"] for each in result.json["rules"] if "recorded" in each}

    assert {"same"} == set(compared(*rules, exits=0).values())
    add_fault(live, "GET /v1/e/rank", "status", status=418, times=1)
    assert "GET rank?id=<id-2>" in compared("--only", "W3", exits=7)["W3.empty-list"]
    text = Path(recording).read_text()
    assert 1 == json.loads(text)["extcli_conform"]
    assert [] == re.findall(r"eyJ|conform-[0-9a-f]+", text)
    assert {"<pin>"} == set(re.findall(r'"pin": "([^"]*)"', text))


def test_a_file_that_is_not_a_recording_is_refused(extcli, file):
    broken = '{"extcli_conform": 1, "rules": {"W3": {"answers": [{}, 5]}}}'
    for content in ("{", "[]", '{"extcli_conform": 2, "rules": {}}', broken):
        extcli("conform", "--against", file(content), exits=2)
