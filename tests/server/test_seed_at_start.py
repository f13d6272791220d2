"""`extcli serve --seed`: the service is ready when the data of the seed are in."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest

from extcli.main import main
from support.exec_process import run_exec
from support.process import server_process
from support.program import PROGRAM
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


def test_a_service_starts_with_the_data_of_a_seed(seed: Path):
    with server_process("--seed", str(seed)) as served:
        assert 2 == count(served)
        assert 0 == served.stop(signal.SIGTERM)


def test_a_service_starts_with_the_faults_of_a_seed(tmp_path: Path):
    path = tmp_path / "seed.toml"
    path.write_text(SEED + '[[faults]]\nmatch = "GET /v1/e/vote"\nstatus = 503\ntimes = 1\n')

    with server_process("--seed", str(path)) as served:
        viewer = served.client("viewer", user="U1", channel="1001")
        assert [503, 200] == [viewer.get("vote", params={"id": "lunch"}).status_code for _ in range(2)]


def test_a_seed_can_be_named_by_its_variable(seed: Path):
    with server_process(EXTCLI_SERVE_SEED=str(seed)) as served:
        assert 2 == count(served)


@pytest.mark.slow
def test_workers_start_with_the_data_of_a_seed(seed: Path, tmp_path: Path):
    data = f"sqlite://{tmp_path}/emulator.db"

    with server_process("--seed", str(seed), "--data", data, "--workers", "2") as served:
        assert 2 == count(served)


@pytest.mark.slow
def test_a_start_replaces_the_records_of_the_seed_and_keeps_the_rest(seed: Path, tmp_path: Path):
    data = f"sqlite://{tmp_path}/emulator.db"
    with server_process("--seed", str(seed), "--data", data) as served:
        viewer = served.client("viewer", user="U9", channel="1001")
        for poll in ("lunch", "dinner"):
            viewer.post("vote", params={"id": poll}, json={"value": 0})
        served.stop(signal.SIGTERM)

    with server_process("--seed", str(seed), "--data", data) as served:
        assert [2, 1] == [count(served, poll) for poll in ("lunch", "dinner")]


def test_the_service_is_not_ready_before_the_data_are_in():
    answers = []

    async def prepare(url: str) -> None:
        async with httpx.AsyncClient(base_url=url) as client:
            for path in ("live", "ready"):
                answers.append(await client.get(f"/_emulator/{path}"))

    with live_server(prepare=prepare) as live, httpx.Client(base_url=live.url) as client:
        answers.append(client.get("/_emulator/ready"))

    assert [200, 503, 200] == [each.status_code for each in answers]
    assert "the service is starting; try again" == answers[1].json()["info"]


def test_a_faulty_seed_ends_the_start_with_its_errors(seed: Path):
    seed.write_text(SEED + "ends_at = 5\nprompts = ''\n")

    code, output, log = failed("--seed", str(seed))

    assert (2, "") == (code, output)
    assert [
        f"extcli serve: --seed: {seed} has 2 errors; nothing was changed",
        f'  {seed}:6:1: polls[0].ends_at: must be a time with a zone in RFC 3339, such as "2026-12-24T18:00:00Z"',
        f"  {seed}:7:1: polls[0].prompts: unknown field; did you mean prompt?",
    ] == log


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_seed_that_the_service_refuses_ends_the_start(seed: Path, tmp_path: Path, workers: str):
    seed.write_text(SEED + "starts_at = 2999-01-01T00:00:00Z")

    code, output, log = failed("--seed", str(seed), "--workers", workers, "--data", f"sqlite://{tmp_path}/x.db")

    assert (2, "") == (code, output)
    assert f"  {seed}:5:11: polls[0].votes.U1: the poll has not started, has ended or is disabled" in log[-1]


@pytest.mark.slow
def test_workers_cannot_start_with_a_clock(seed: Path, tmp_path: Path):
    seed.write_text(SEED + "[clock]\nfrozen = true")

    code, _, log = failed("--seed", str(seed), "--workers", "2", "--data", f"sqlite://{tmp_path}/x.db")

    assert (2, "the clock cannot be moved with --workers over 1" in log[-1]) == (code, True)


@pytest.mark.slow
def test_a_command_of_exec_begins_with_the_data_of_a_seed(seed: Path):
    code, printed, _ = run_exec("--seed", str(seed), "--", PROGRAM, "vote", "get", "lunch")

    assert (0, "2\t2\n") == (code, printed)


@pytest.mark.slow
def test_a_command_of_exec_does_not_begin_with_a_faulty_seed(seed: Path):
    seed.write_text(SEED + "prompts = ''")

    code, printed, log = run_exec("--seed", str(seed), "--", "echo", "begun")

    assert (2, "") == (code, printed)
    assert f"  {seed}:6:1: polls[0].prompts: unknown field; did you mean prompt?" in log.splitlines()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--seed", "missing.toml"], "--seed: cannot read missing.toml: No such file or directory"),
        (["--seed", "x", "--production", "--extensions", "{extensions}"], "--seed: --production takes no seed"),
    ],
)
def test_a_seed_that_cannot_be_used_is_a_usage_error(capsys, tmp_path: Path, args: list[str], message: str):
    extensions = tmp_path / "extensions.toml"
    extensions.write_text(f'[extensions.my-ext]\nsecrets = ["{"QUJD" * 12}"]')

    code = main(["serve", "--port", "0", *(arg.format(extensions=extensions) for arg in args)])

    assert (2, f"extcli serve: {message}\n") == (code, capsys.readouterr().err)


def test_the_refresh_token_of_a_link_is_written_before_the_service_is_ready(seed: Path):
    seed.write_text(f"{SEED}[[links]]\nrefresh_token_file = 'game.token'")

    with server_process("--seed", str(seed)):
        token = seed.with_name("game.token")
        assert (0o600, 3) == (token.stat().st_mode & 0o777, len(token.read_text().split(".")))
