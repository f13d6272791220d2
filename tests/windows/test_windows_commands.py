"""Commands on Windows: text of every encoding, files, Ctrl-C, and the pytest plugin."""

from __future__ import annotations

import json
import re
from signal import SIGINT

import pytest

from support.process import wait_until
from windows.conftest import TIMEOUT, Windows, WindowsService

BOM = b"\xef\xbb\xbf"
PLUGIN_TEST = """
def test_a_vote_counts(extcli):
    assert 1 == extcli.viewer().vote("lunch", 3)["stats"]["count"]
"""
KILLED_TEST = """
import sys
def test_waits(extcli):
    print("on", file=sys.__stdout__, flush=True)
    sys.__stdin__.read()
"""


def services(windows: Windows) -> list[str]:
    """Return the services that pytest has started."""
    return [each for each in windows.running() if "extcli serve" in each and "--lifeline 0" in each]


def is_in_use(service: WindowsService) -> bool:
    """Return whether a WebSocket is open, or a request waits."""
    with service.client(None) as client:
        text = client.get(f"{service.url}/_emulator/metrics").text
    return re.search(r"(?m)^emulator_(sockets|held_requests) [1-9]", text) is not None


def interrupted(windows: Windows, service: WindowsService, *args: str) -> int:
    """Start a command, send Ctrl-C when it waits for the service, and return the exit code."""
    with windows.start("-m", "extcli", *args, "--url", service.url) as process:
        wait_until(lambda: is_in_use(service))
        process.send_signal(SIGINT)
        process.communicate(timeout=TIMEOUT)
    return process.returncode


def test_output_in_a_pipe_is_utf_8(windows: Windows):
    with windows.service() as service:
        at = ("--url", service.url)
        windows.extcli("vote", "define", "lunch", "--prompt", "Café?", "--options", "Crêpe,Œuf", *at)
        table = windows.extcli("vote", "get", "lunch", "-o", "table", *at)
        seed = windows.extcli("seed", "example")

    assert "Café?" in table
    assert "Crêpe" in table
    assert "…" in seed


def test_a_seed_with_a_byte_order_mark_and_crlf_is_applied(windows: Windows):
    seed = windows.extcli("seed", "example").replace("\n", "\r\n").encode()
    (windows.folder / "seed.toml").write_bytes(BOM + seed)
    with windows.service() as service:
        windows.extcli("seed", "check", "seed.toml")
        windows.extcli("seed", "apply", "seed.toml", "--url", service.url)
        polls = json.loads(windows.extcli("vote", "list", "-o", "json", "--url", service.url))

    assert polls["polls"]


def test_lines_of_a_file_are_read_to_its_end(windows: Windows):
    """Windows' C library ends a text file at 0x1A."""
    (windows.folder / "votes.csv").write_bytes(BOM + b"user,value,note\r\nU1,1,\x1a\r\nU3,3,\r\n")
    with windows.service() as service:
        windows.extcli("vote", "cast", "lunch", "--from", "votes.csv", "--url", service.url)
        poll = json.loads(windows.extcli("vote", "get", "lunch", "-o", "json", "--url", service.url))

    assert 4 == poll["stats"]["sum"]


def test_codes_are_uploaded_and_drawn(windows: Windows):
    (windows.folder / "codes with spaces.txt").write_bytes(BOM + b"AAAA\r\nBBBB\r\n")
    with windows.service() as service:
        at = ("--url", service.url)
        windows.extcli("codes", "upload", "--set", "gold=" + windows.path("codes with spaces.txt"), *at)
        listed = windows.extcli("codes", "list", "-o", "json", *at)

    assert "gold" in listed


@pytest.mark.parametrize("command", ["listen party", "wait poll lunch --count 9 --timeout 60s"])
def test_ctrl_c_ends_a_command_that_waits(windows: Windows, command: str):
    with windows.service() as service:
        assert 130 == interrupted(windows, service, *command.split())


def test_a_game_is_linked_by_pin(windows: Windows):
    with windows.service() as service:
        at = ("--url", service.url)
        pin = windows.extcli("pin", "request", "-o", "plain", *at)
        windows.extcli("pin", "login", *at, given=pin.encode())
        windows.extcli(
            "socket", "send", "set", "state", "--data", '{"state_id": "channel", "state": {"round": 1}}', *at
        )
        state = windows.extcli("state", "get", "channel", "-o", "json", *at)

    assert {"round": 1} == json.loads(state)


def test_printed_variables_are_for_powershell(windows: Windows):
    printed = windows.extcli("connect", "powershell", "--channel", "it's", "--url", "http://127.0.0.1:9")

    assert "$env:EXTCLI_URL = 'http://127.0.0.1:9'\n" in printed
    assert "$env:EXTCLI_CHANNEL = 'it''s'\n" in printed


def test_a_changed_extensions_file_is_reloaded(windows: Windows):
    windows.extcli("extension", "init", "--client-id", "mine")
    with windows.service("--production", "--extensions", "extensions.toml", "--data", "sqlite:///./data.db") as service:
        printed = windows.extcli("extension", "init", "--client-id", "other")
        assert service.process.stderr is not None
        assert any(b"reloaded by process" in line for line in service.process.stderr)

    assert "kill" not in printed


def test_the_pytest_plugin_runs_a_service(windows: Windows):
    (windows.folder / "test_votes.py").write_text(PLUGIN_TEST)

    done = windows.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_votes.py")

    assert "1 passed" in done.stdout
    assert 0 == done.returncode
    wait_until(lambda: not services(windows), lambda: services(windows))


def test_the_plugins_service_ends_with_a_killed_pytest(windows: Windows):
    (windows.folder / "test_waits.py").write_text(KILLED_TEST)
    with windows.start("-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_waits.py") as process:
        assert process.stdout is not None
        assert any(b"on" == line.strip() for line in process.stdout)
        process.kill()
        process.wait(TIMEOUT)

    wait_until(lambda: not services(windows), lambda: services(windows))
