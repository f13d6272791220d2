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
from support.process import STOP_TIMEOUT
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


def test_the_service_stops_cleanly_when_its_lifeline_ends(tmp_path: Path):
    with on_a_lifeline("--data", f"sqlite:///{tmp_path}/data.db") as (process, port, writer):
        os.close(writer)
        code = process.wait(STOP_TIMEOUT)
        log = process.stderr.read() if process.stderr else ""

    assert (0, True) == (code, refuses(port))
    assert ["serving", "stopped"] == [line.split(" emulator: ")[1].partition(":")[0] for line in log.splitlines()]


def test_a_lifeline_that_is_not_open_is_refused():
    refused = subprocess.run(
        [PROGRAM, "serve", "--lifeline", "99"], capture_output=True, text=True, timeout=STOP_TIMEOUT * 4, check=False
    )

    assert (2, True) == (refused.returncode, refused.stderr.startswith("extcli serve: --lifeline 99: "))
