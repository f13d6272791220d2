"""SIGTERM ends a command as Ctrl-C does: it says how far it came, and exits 130."""

from __future__ import annotations

import signal

import pytest

from support.listen_process import read_until

WAITING = {
    "vote cast --from - -v": "> ",
    "rank submit --from - -v": "> ",
    "accumulate add --from - -v": "> ",
    "accumulate add --from - --user-field user -v": "> ",
    "listen": "ready: ",
    "logs --follow -v": "> ",
    "wait poll lunch --count 1 --timeout 60s -v": "> ",
    "vote get lunch --watch -v": "> ",
    "simulate crowd --viewers 500 --mix 0:1 --rate 2 -v": "> ",
    "simulate socket --connections 2 --broadcasts 1000 --rate 20 -v": "> ",
}
"""Commands that last, with what they print to standard error when they have begun."""
LINE = b'{"user": "U1", "n": 1}\n'


@pytest.mark.parametrize("line", WAITING)
def test_sigterm_interrupts_a_command_that_lasts(shell, line: str):
    """A script's background command ignores SIGINT."""
    process = shell(*line.split(), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    process.stdin.write(b"U1,1\n" if "user-field" not in line and "accumulate" not in line else LINE)
    process.stdin.flush()
    assert read_until(process, WAITING[line])

    process.terminate()
    _, stderr = process.communicate(timeout=60)

    assert 130 == process.returncode, stderr
    assert b"Traceback" not in stderr


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["vote cast", "rank submit", "accumulate add"])
def test_an_ended_bulk_run_says_where_to_resume(shell, command: str, sent: signal.Signals):
    process = shell(*command.split(), "--from", "-", "-o", "jsonl")
    process.stdin.write(b"1\nnonsense\n" if "add" in command else b"U1,3\nU1\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b'{"line":2')

    process.send_signal(sent)
    _, stderr = process.communicate(timeout=60)

    assert 130 == process.returncode
    assert b"interrupted; all lines up to " in stderr
    assert b"Traceback" not in stderr
