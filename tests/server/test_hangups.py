"""SIGHUP stops a service that has nothing to reload, and one whose terminal has closed (operations, Starting)."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from pathlib import Path

import pytest

from support.process import COMMAND, STOP_TIMEOUT, server_process
from support.service import SECRET
from support.terminal import Terminal


@pytest.fixture
def extensions(tmp_path: Path) -> tuple[str, str]:
    file = tmp_path / "extensions.toml"
    file.write_text(f'[extensions.my-extension]\nsecrets = ["{base64.b64encode(SECRET).decode()}"]\n')
    file.chmod(0o600)
    return "--extensions", str(file)


def test_many_hangups_and_a_sigterm_mean_one_clean_stop():
    with server_process() as served:
        assert 0 == served.stop(signal.SIGHUP, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("reads_input", [True, False])
@pytest.mark.parametrize("is_registered", [True, False])
def test_a_closed_terminal_stops_the_service(extensions, is_registered: bool, reads_input: bool):
    with Terminal("serve", "--port", "0", *(extensions if is_registered else ()), reads_input=reads_input) as terminal:
        terminal.read_until("listening on")
        terminal.hang_up()
        assert 0 == terminal.process.wait(STOP_TIMEOUT)


def test_sighup_on_an_open_terminal_reloads_the_extensions(extensions):
    with Terminal("serve", "--port", "0", *extensions) as terminal:
        terminal.read_until("listening on")
        terminal.process.send_signal(signal.SIGHUP)
        terminal.read_until("reloaded by process")
        terminal.process.send_signal(signal.SIGTERM)
        assert 0 == terminal.wait()


def test_a_service_under_nohup_stays_when_it_is_hung_up():
    command = ["nohup", *COMMAND, "--port", "0"]

    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"listening on")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGCONT)
        assert process.poll() is None
        os.kill(process.pid, 0)
        process.terminate()
        _, log = process.communicate(timeout=STOP_TIMEOUT)
        assert (0, 1) == (process.returncode, log.count(b"emulator: stopped"))
