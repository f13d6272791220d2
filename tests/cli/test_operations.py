"""Every operation of the service has a command that reaches it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from emulator.feature_list import FEATURES
from emulator.http.endpoint import UNDOCUMENTED
from extcli.errors import ExitCode
from support.operations import FILES, ROWS

UNDECLARED = {"socket unsubscribe state"}
"""Operations that belong to no feature."""
EXIT_CODES = {"POST /v1/e/unauthed/validate_pin": ExitCode.REFUSED}
"""The exit codes of commands that reach their operation and still fail: the token is of no validated PIN."""


def endpoints() -> set[str]:
    """The declared endpoints. Aliases are not declared, and pages are not for programs."""
    declared = [endpoint for feature in FEATURES for endpoint in feature.endpoints]
    programs = [each for each in declared if each.audience not in UNDOCUMENTED]
    return {f"{each.method} {each.path.replace('{name}', 'NAME')}" for each in programs}


def actions() -> list[list[str]]:
    """The names of each declared WebSocket action and feed, its own first."""
    own = [[f"socket {' '.join(name)}".strip() for name in each.names] for one in FEATURES for each in one.actions]
    feeds = [[f"socket subscribe {name}" for name in each.names] for one in FEATURES for each in one.feeds]
    return own + feeds


def reached(stderr: str) -> set[str]:
    """The operations in a trace of `--verbose`."""
    calls = re.findall(r"^> ([A-Z]+) https?://[^/\s]+(/[^?\s]*)", stderr, re.MULTILINE)
    frames = re.findall(r'^> \{"action": ?"(\w+)"(.*)', stderr, re.MULTILINE)
    targets = [(action, re.search(r'"target": ?"(\w+)"', rest)) for action, rest in frames]
    return {f"{method} {re.sub('^/_ns/.+', '/_ns/NAME', path)}" for method, path in calls} | {
        f"socket {action} {target[1] if target else ''}".strip() for action, target in targets
    }


def test_every_operation_is_in_the_table():
    listed = {row.operation for row in ROWS}

    assert len(listed) == len(ROWS)
    assert set() == {*endpoints(), *UNDECLARED, *(names[0] for names in actions())} - listed
    assert set() == listed - {*endpoints(), *UNDECLARED, *(name for names in actions() for name in names)}


def test_the_commands_reach_their_operations(extcli, folder: Path):
    for name, content in FILES.items():
        (folder / name).write_text(content)
    extcli("bits", "purchase", "hat", "--id", "t2")
    failed = {}

    for operation, pipe in ROWS:
        piped, trace = "", ""
        for stage in pipe.removeprefix("extcli ").split(" | "):
            words = shlex.split(stage.removeprefix("extcli "))
            if words[0] == "cut":
                piped = piped.split("\t")[int(words[1].removeprefix("-f")) - 1]
                continue
            result = extcli(*words, "-v", input=piped)
            piped, trace = result.stdout, trace + result.stderr
            if result.exit_code not in (ExitCode.DONE, EXIT_CODES.get(operation)):
                failed[operation] = f"{stage}: {result.stderr}"
        if operation not in reached(trace):
            failed.setdefault(operation, f"{pipe} reaches {reached(trace)}")

    assert {} == failed
