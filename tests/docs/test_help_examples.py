"""Every example in the help of a command works: a shell runs it, with the files and data that the examples assume."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from extcli.app import with_dry_run_value
from support.help_examples import BEFORE, COMPRESSED, ENDLESS, FILES, FILLED_BY, NOT_RUN
from support.program import PROGRAM
from support.service import LiveServer
from tools.cli_reference import commands, examples

pytestmark = pytest.mark.slow

KNOWN = dict(commands())
EXAMPLES = list(dict.fromkeys(line for command in KNOWN.values() for line in examples(command)))


def environment(folder: Path, live: LiveServer) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "bin"), str(PROGRAM.parent), os.environ["PATH"]])
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    places = {"EXTCLI_CONFIG": str(folder / "config.toml"), "EXTCLI_STATE_DIR": str(folder / "state")}
    return {**kept, **places, "PATH": path, "HOME": str(folder / "home"), "LC_ALL": "C.UTF-8", "EXTCLI_URL": live.url}


def run(script: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-uo", "pipefail", "-c", script], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@dataclass
class Filled:
    """What the examples assume: the data of the service, and files."""

    snapshot: bytes
    files: dict[str, bytes]

    def put(self, folder: Path, live: LiveServer, programs: Path) -> dict[str, str]:
        """Put all of it into a folder and a service, and return the environment of an example."""
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        (folder / "bin").symlink_to(programs)
        if self.snapshot:
            httpx.put(f"{live.url}/_emulator/snapshot", content=self.snapshot, timeout=60).raise_for_status()
        return environment(folder, live)


@pytest.fixture(scope="module")
def filled(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Filled:
    """What `FILLED_BY` leaves."""
    folder = tmp_path_factory.mktemp("filled")
    running_live.empty()
    given = {name: content.encode() for name, content in FILES.items()} | {"hats.txt.gz": COMPRESSED}
    result = run(f"set -e\n{FILLED_BY}", folder, Filled(b"", given).put(folder, running_live, programs))
    assert 0 == result.returncode, result.stderr
    left = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return Filled(httpx.get(f"{running_live.url}/_emulator/snapshot?keys=true").content, given | left)


def reason_not_to_run(line: str) -> str:
    return next((reason for start, reason in NOT_RUN.items() if line.startswith(start)), "")


def _marked(lines: list[str]) -> Iterator[Any]:
    """Yield the examples that can run. `make test` runs the first one of each noun that ends."""
    nouns: set[str] = set()
    for line in lines:
        if not reason_not_to_run(line):
            noun = next(iter(re.findall(r"extcli (\w[\w-]*)", line)), "")
            yield pytest.param(line, marks=[pytest.mark.long] if noun in nouns or endless(line) else [], id=line[:60])
            nouns.add(noun)


def endless(line: str) -> bool:
    return any(text in line for text in ENDLESS)


@pytest.mark.parametrize("line", list(_marked(EXAMPLES)))
def test_an_example_of_the_help_works(
    live: LiveServer, tmp_path: Path, programs: Path, filled: Filled, line: str
) -> None:
    variables = filled.put(tmp_path, live, programs)
    first = next((script for text, script in BEFORE.items() if text in line), "")
    place = line.replace("http://127.0.0.1:8282", live.url).replace("curl -H", "curl -sSf -H")
    script = f"timeout --signal=INT 1 bash -c {shlex.quote(place)}" if endless(line) else place

    result = run(f"{first} >/dev/null\n{script}" if first else script, tmp_path, variables)

    assert result.returncode in ((0, 7, 124, 130) if endless(line) else (0,)), result.stderr


@pytest.mark.parametrize("line", [each for each in EXAMPLES if reason_not_to_run(each)])
def test_an_example_that_is_not_run_parses(line: str) -> None:
    plain = re.sub(r'(?:\b[A-Z_]+=)?"?[$<]\((.*?)\)"?', r"; \1 ;", line)
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    calls: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(";|&<>"):
            calls.append([])
        else:
            calls[-1].append(word)

    found = [call[1:] for call in calls if call[:1] == ["extcli"]]
    assert found
    for args in found:
        name, command = args[0], KNOWN[args.pop(0)]
        if hasattr(command, "commands") and not (command.invoke_without_command and "".join(args[:1])[:1] == "-"):
            name = args.pop(0)
            command = command.commands[name]
        command.make_context(name, with_dry_run_value(args)).close()
