"""However `extcli exec` ends: its exit code, the service's port, and the processes that are left.

`ENDINGS=50 pytest -s tests/server/test_exec_endings.py` repeats each ending 50 times and prints a table.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.examples import spread
from support.exec_process import TIMEOUT, ExecProcess, refuses
from support.process import wait_until

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("ENDINGS", "1"))
LIMIT = 1.0
"""Seconds after the end of `exec` in which the port must refuse connections."""


@dataclass(frozen=True)
class Ending:
    """A command, what happens to `exec` while it runs, and the exit code to expect."""

    name: str
    script: str
    code: int
    act: Callable[[ExecProcess], None] = lambda run: None


def _signals(*numbers: int) -> Callable[[ExecProcess], None]:
    """Send these signals to `exec`, each after a line of the command: it answers each but the last."""

    def send(run: ExecProcess) -> None:
        for number in numbers[:-1]:
            run.process.send_signal(number)
            assert "caught" == run.line()
        run.process.send_signal(numbers[-1])

    return send


WAIT = "exec sleep 60"
"""Not a child of the shell: dash forgets a signal that comes while it starts one, until that ends."""
CAUGHT = f"""exec {sys.executable} -IS -c '
import signal
signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", flush=True)
while signal.sigwait(signals):
    print("caught", flush=True)
'"""
ENDINGS = [
    Ending("command exits 0", "exit 0", 0),
    Ending("command exits 1", "exit 1", 1),
    Ending("command exits 7", "exit 7", 7),
    Ending("command exits 0, with a child left", "sleep 600 & exit 0", 0),
    Ending("command dies of SIGSEGV", "kill -SEGV $$", 139),
    Ending("command dies of SIGKILL", "kill -KILL $$", 137),
    Ending("SIGINT", WAIT, 130, _signals(signal.SIGINT)),
    Ending("SIGINT twice, the first is caught", CAUGHT, 137, _signals(signal.SIGINT, signal.SIGINT)),
    Ending("SIGTERM", WAIT, 143, _signals(signal.SIGTERM)),
    Ending("SIGTERM, SIGHUP, the first is caught", CAUGHT, 137, _signals(signal.SIGTERM, signal.SIGHUP)),
    Ending("SIGHUP", WAIT, 129, _signals(signal.SIGHUP)),
    Ending("SIGKILL", WAIT, -9, _signals(signal.SIGKILL)),
]


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[list[tuple[str, int, float, int]]]:
    """The rows of the table: ending, exit code, seconds until the port refuses, processes left."""
    rows: list[tuple[str, int, float, int]] = []
    yield rows
    if "ENDINGS" in os.environ:
        print(f"\n{'ending':40} {'runs':>4}  {'exit code':>9}  {'refuses after':>13}  left")  # noqa: T201
        for name in dict.fromkeys(row[0] for row in rows):
            own = [row for row in rows if row[0] == name]
            codes = ",".join(map(str, sorted({row[1] for row in own})))
            slowest, left = max(row[2] for row in own), sum(row[3] for row in own)
            print(f"{name:40} {len(own):4}  {codes:>9}  {slowest:11.3f} s  {left}")  # noqa: T201


@pytest.mark.parametrize("ending", spread(ENDINGS, 3), ids=lambda each: each.name.replace(" ", "-"))
def test_every_ending_frees_the_port_and_leaves_no_process(
    ending: Ending, tmp_path: Path, table: list[tuple[str, int, float, int]]
):
    for _ in range(ROUNDS):
        run = ExecProcess(
            "--quiet", "--", "sh", "-c", f"echo $EXTCLI_URL; {ending.script}", env={"TMPDIR": str(tmp_path)}
        )
        port = urlsplit(run.line()).port or 0
        if ending.script == CAUGHT:
            assert "ready" == run.line()
        ending.act(run)
        code = run.process.wait(30)
        ended = time.monotonic()
        wait_until(lambda port=port: refuses(port))
        seconds = time.monotonic() - ended
        wait_until(lambda run=run: not run.left())
        *_, log = run.end()
        wait_until(lambda: not list(tmp_path.iterdir()))
        table.append((ending.name, code, seconds, len(run.left())))

        assert (ending.code, "") == (code, log)
        assert seconds < LIMIT


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/passwd", 126), ("/", 126)])
def test_a_command_that_cannot_run_ends_like_in_a_shell(
    command: str, code: int, tmp_path: Path, table: list[tuple[str, int, float, int]]
):
    for _ in range(ROUNDS):
        run = ExecProcess("--", command, env={"TMPDIR": str(tmp_path)})
        found, _, log = run.end()
        ended = time.monotonic()
        port = int(re.search(r" port (\d+),", log)[1])  # type: ignore[index]
        wait_until(lambda port=port: refuses(port))
        table.append((f"command {command}", found, time.monotonic() - ended, len(run.left())))

        assert (code, [], []) == (found, run.left(), list(tmp_path.iterdir()))
        assert f"extcli exec: {command}: " in log


KILLED = """
import signal
import sys
from extcli.running import supervisor
from extcli.running.failure_report import Log

supervisor.STOP_TIMEOUT = 0.0
run = supervisor.Supervisor(Log(sys.argv[1], shown=False), print)
run.start_service(lambda lifeline: signal.pause(), lambda: None)
print(run.stop_service())
"""
"""Stops a service that does not stop by itself."""


def test_a_service_that_does_not_stop_is_killed_and_reported_once(tmp_path: Path):
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=True, timeout=TIMEOUT
    )

    assert ["the service did not stop within 0 s, and is killed", "137"] == run.stdout.splitlines()
