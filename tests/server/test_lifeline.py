"""`serve --lifeline FD`: the service stops when the program at the other end of the pipe is gone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.exec_process import refuses
from support.process import STOP_TIMEOUT, wait_until
from support.program import PROGRAM

pytestmark = pytest.mark.slow


@contextmanager
def on_a_lifeline(*args: str) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Run `extcli serve`; return the process, its port and the write end of its lifeline."""
    reader, writer = os.pipe()
    pipe = subprocess.PIPE
    command = [PROGRAM, "serve", "--port", "0", "--lifeline", str(reader), *args]
    with subprocess.Popen(command, pass_fds=[reader], stdout=pipe, stderr=pipe, text=True) as process:
        os.close(reader)
        assert process.stdout is not None
        try:
            yield process, urlsplit(process.stdout.readline().removeprefix("listening on ").strip()).port or 0, writer
        finally:
            process.kill()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_service_stops_cleanly_when_its_lifeline_ends(tmp_path: Path, workers: str):
    with on_a_lifeline("--workers", workers, "--data", f"sqlite:///{tmp_path}/data.db") as (process, port, writer):
        os.close(writer)
        code = process.wait(STOP_TIMEOUT)
        log = process.stderr.read() if process.stderr else ""

    assert (0, True) == (code, refuses(port))
    assert ["serving", "stopped"] == [line.split(" emulator: ")[1].partition(":")[0] for line in log.splitlines()]


def test_the_group_on_the_lifeline_is_killed_with_the_service():
    with (
        on_a_lifeline() as (process, _, writer),
        subprocess.Popen(["sh", "-c", "sleep 600 & wait"], process_group=0) as command,
    ):
        os.write(writer, b"0\n%d\n" % command.pid)
        os.close(writer)

        assert -9 == command.wait(STOP_TIMEOUT)
        assert 0 == process.wait(STOP_TIMEOUT)
        wait_until(lambda: not members(command.pid))


def test_a_group_that_was_taken_back_is_left_alone():
    with (
        on_a_lifeline() as (process, _, writer),
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, process_group=0) as command,
    ):
        os.write(writer, b"%d\n0\n" % command.pid)
        os.close(writer)

        assert 0 == process.wait(STOP_TIMEOUT)
        assert command.poll() is None
        command.communicate(timeout=STOP_TIMEOUT)


def members(group: int) -> list[int]:
    """Return the processes of a group that have not ended."""
    shown = subprocess.run(["ps", "-eo", "pgid=,pid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in shown.splitlines()]
    return [int(pid) for pgid, pid, state in rows if int(pgid) == group and not state.startswith("Z")]


def test_a_lifeline_that_is_not_open_is_refused():
    refused = subprocess.run(
        [PROGRAM, "serve", "--lifeline", "99"], capture_output=True, text=True, timeout=STOP_TIMEOUT * 4, check=False
    )

    assert (2, "extcli serve: --lifeline 99: Bad file descriptor\n") == (refused.returncode, refused.stderr)
