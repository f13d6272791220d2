"""Every service of our own keeps all rules: both modes, each engine, with and without a namespace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from engines.redis_server import RedisServer
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
