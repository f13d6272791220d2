"""`extcli serve --seed`: the service is ready when the data of the seed are in."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest

from extcli.main import main
from support.exec_process import run_exec
from support.preloaded import put_program
from support.process import server_process
from support.service import live_server

SEED = """
extcli = 1
[[polls]]
id = "lunch"
votes = { U1 = 2, U2 = 2 }
"""


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    path = tmp_path / "seed.toml"
    path.write_text(SEED)
    return path


def count(served: object, poll: str = "lunch") -> int:
    viewer = served.client("viewer", user="U1", channel="1001")  # type: ignore[attr-defined]
    return int(viewer.get("vote", params={"id": poll}).json()["count"])


def failed(*args: str) -> tuple[int, str, list[str]]:
    """Start a service that must fail; return its exit code, its output and its log."""
    with server_process(*args) as served:
        assert served.process.stderr is not None
        return served.process.wait(20), served.first_line, served.process.stderr.read().splitlines()


def test_a_service_starts_with_the_data_and_the_refresh_token_of_a_seed(seed: Path):
    seed.write_text(f"{SEED}[[links]]\nrefresh_token_file = 'game.token'")
    with server_process("--seed", str(seed)) as served:
        assert 2 == count(served)
        token = seed.with_name("game.token")
        assert (0o600, 3) == (token.stat().st_mode & 0o777, len(token.read_text().split(".")))
        assert 0 == served.stop(signal.SIGTERM)


def test_the_service_is_not_ready_before_the_data_are_in():
    answers = []

    async def prepare(url: str) -> None:
        async with httpx.AsyncClient(base_url=url) as client:
            for path in ("live", "ready"):
                answers.append(await client.get(f"/_emulator/{path}"))

    with live_server(prepare=prepare) as live, httpx.Client(base_url=live.url) as client:
        answers.append(client.get("/_emulator/ready"))

    assert [200, 503, 200] == [each.status_code for each in answers]


@pytest.mark.slow
def test_a_seed_that_the_service_refuses_ends_the_start(seed: Path, tmp_path: Path):
    seed.write_text(SEED + "starts_at = 2999-01-01T00:00:00Z")

    code, output, log = failed("--seed", str(seed), "--data", f"sqlite://{tmp_path}/x.db")

    assert (2, "") == (code, output)
    assert f"  {seed}:5:11: polls[0].votes.U1: " in log[-1]


@pytest.mark.slow
def test_a_command_of_exec_begins_with_the_data_of_a_seed(seed: Path, tmp_path: Path):
    program = put_program(tmp_path)
    code, printed, _ = run_exec("--seed", str(seed), "--", str(program), "vote", "get", "lunch")

    assert (0, "2\t2\n") == (code, printed)


@pytest.mark.parametrize(
    ("more", "field"), [([], "missing.toml"), (["--production", "--extensions", "{extensions}"], "--production")]
)
def test_a_seed_that_cannot_be_used_is_a_usage_error(capsys, tmp_path: Path, more: list[str], field: str):
    extensions = tmp_path / "extensions.toml"
    extensions.write_text(f'[extensions.my-ext]\nsecrets = ["{"QUJD" * 12}"]')

    more = [arg.format(extensions=extensions) for arg in more]
    code, error = main(["serve", "--port", "0", "--seed", "missing.toml", *more]), capsys.readouterr().err

    assert (2, True, True) == (code, error.startswith("extcli serve: --seed: "), field in error)
