"""Runs command lines of one version, each in a process that is forked from one that has imported the program."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from twin.environment import Missing, Version
from twin.host import LAUNCHER, Clock

SECONDS = 120.0
"""Seconds within which a command line must end."""
_PROGRAM = """#!{python} -IS
import json, os, socket, sys
wire = socket.socket(socket.AF_UNIX)
wire.connect({address!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), os.environ.get("TWIN_NUMBER", "")]).encode()
socket.send_fds(wire, [len(call).to_bytes(4, "big")], [0, 1, 2])
wire.sendall(call)
sys.exit(int.from_bytes(wire.recv(1), "big"))
"""
"""An `extcli` for shells. It hands its streams to the forking process, and ends as the fork does."""


@dataclass(frozen=True)
class Outcome:
    """What a command line did."""

    code: int
    output: bytes
    errors: bytes


class Program:
    """`extcli` of one version, for shells: put `folder` in front of `PATH`."""

    def __init__(self, version: Version, clock: Clock, folder: Path) -> None:
        self.version, self.folder = version, folder
        folder.mkdir(parents=True)
        address = folder / "socket"
        program = folder / "extcli"
        program.write_text(_PROGRAM.format(python=version.python, address=str(address)))
        program.chmod(0o755)
        self._process = subprocess.Popen(
            [version.python, "-P", LAUNCHER, clock.path, "commands", "fork", address],
            env=version.variables() | {"HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait(self) -> None:
        """Wait until commands can run."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        if self._process.stdout.readline() != b"ready\n":
            raise Missing(f"extcli of the {self.version.name} cannot run:\n{self._process.stderr.read().decode()}")

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def start(self, script: str, folder: Path, number: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a line of a shell in a folder. `number` seeds what is random in it."""
        variables = self.version.variables()
        variables |= {"PATH": f"{self.folder}{os.pathsep}{variables['PATH']}", "TWIN_NUMBER": number}
        variables |= {"HOME": str(folder / "home"), "EXTCLI_CONFIG": str(folder / "config.toml")}
        variables |= {"EXTCLI_STATE_DIR": str(folder / "state")}
        variables.pop("PYTHONPATH", None)
        return subprocess.Popen(
            ["bash", "-uo", "pipefail", "-c", script],
            cwd=folder,
            env=variables | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def outcome(process: subprocess.Popen[bytes]) -> Outcome:
    """Wait for a line to end, and return what it did."""
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        errors += b"(did not end in time)"
    return Outcome(process.returncode, output, errors)
