"""Audit lines in the log of `extcli serve`, as text and as JSON."""

from __future__ import annotations

import json
import re
import signal
import subprocess

import pytest

from support.process import COMMAND, ServerProcess, server_process
from support.service import Client


def audit_lines(*args: str) -> list[str]:
    """Return the audit lines of a service that replaced codes in a namespace, and was reset."""
    with server_process(*args) as served:
        replace_codes(served)
        assert 0 == served.stop(signal.SIGTERM)
        assert served.process.stderr is not None
        return [line for line in served.process.stderr if "emulator.audit" in line]


def replace_codes(served: ServerProcess) -> None:
    headers = {"Authorization": served.client("backend").headers["Authorization"], "X-Request-Id": "mine"}
    with Client(base_url=served.url, headers=headers) as client:
        codes = {"codes": [["A1", "A2"], ["B1"]], "names": ["Hat", "Cap"]}
        client.put("/_ns/blue/v1/e/codes", json=codes).raise_for_status()
        client.post("/_emulator/reset").raise_for_status()


def test_a_line_names_the_namespace_and_the_request():
    replaced, reset = audit_lines()

    who = "client my-extension, backend, user A-backend"
    assert re.fullmatch(
        rf"[\d-]{{10}} [\d:,]{{12}} INFO emulator\.audit \[blue mine\]: codes replaced: 2 sets, 3 codes; {who}\n",
        replaced,
    )
    assert reset.endswith(" INFO emulator.audit [mine]: data reset; operator\n")


def test_json_has_the_facts_as_members():
    replaced, reset = (json.loads(line) for line in audit_lines("--log-format", "json"))

    facts = {"namespace": "blue", "request_id": "mine", "what": "codes replaced", "sets": 2, "codes": 3}
    caller = {"client_id": "my-extension", "role": "backend", "user": "A-backend"}
    assert (facts | caller).items() <= replaced.items()
    assert ("data reset", "operator") == (reset["what"], reset["by"])


@pytest.mark.parametrize("level", ["debug", "error"])
def test_audit_lines_do_not_depend_on_the_log_level(level: str):
    assert 2 == len(audit_lines("--log-level", level))


def test_an_option_leaves_audit_lines_out():
    assert [] == audit_lines("--no-log-audit")


@pytest.mark.parametrize(("option", "expected"), [((), 0), (("--log-audit",), 1)])
def test_exec_logs_audit_lines_only_on_request(option: tuple[str, ...], expected: int):
    command = [*COMMAND[:-1], "exec", *option, "--", *COMMAND[:-1], "reset", "--yes"]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=20)

    assert (0, expected) == (ended.returncode, ended.stderr.count("data reset; operator"))
