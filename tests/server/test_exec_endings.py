"""However `extcli exec` ends: its exit code, the service's port, and the processes that are left."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.examples import spread
from support.exec_process import ExecProcess, refuses
from support.process import wait_until

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("ending", spread(ENDINGS, 3), ids=lambda each: each.name.replace(" ", "-"))
def test_every_ending_frees_the_port_and_leaves_no_process(ending: Ending, tmp_path: Path):
    run = ExecProcess("--quiet", "--", "sh", "-c", f"echo $EXTCLI_URL; {ending.script}", env={"TMPDIR": str(tmp_path)})
    port = urlsplit(run.line()).port or 0
    if ending.script == CAUGHT:
        assert "ready" == run.line()
    ending.act(run)
    code = run.process.wait(30)
    wait_until(lambda: refuses(port))
    wait_until(lambda: not run.left())
    *_, log = run.end()
    wait_until(lambda: not list(tmp_path.iterdir()))

    assert (ending.code, "") == (code, log)


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/passwd", 126), ("/", 126)])
def test_a_command_that_cannot_run_ends_like_in_a_shell(command: str, code: int, tmp_path: Path):
    run = ExecProcess("--", command, env={"TMPDIR": str(tmp_path)})
    found, _, log = run.end()
    port = int(re.search(r" port (\d+),", log)[1])  # type: ignore[index]
    wait_until(lambda: refuses(port))

    assert (code, [], []) == (found, run.left(), list(tmp_path.iterdir()))
    assert f"extcli exec: {command}: " in log
