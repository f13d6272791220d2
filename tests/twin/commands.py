"""The part that runs command lines: every documented example, mistakes, seeds, snapshots, bulk files.

It compares exit codes, output as JSON, files, requests and the data that a line leaves; no help, tables or wording.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support.help_examples import BEFORE, COMPRESSED, ENDLESS, FILES, FILLED_BY
from twin.comparing import Comparison
from twin.environment import Missing, Version, documented_commands
from twin.forking import Outcome, Program, outcome
from twin.host import START, Clock, Host, Pair, Setup, running
from twin.lines import LINES, MISTAKES, MORE_FILES
from twin.report import Report
from twin.wire import Wire

NOT_RUN = (
    "extcli serve", "extcli exec", "extcli listen", "extcli socket repl", "extcli logs -f", "extcli open",
    "extcli stop", "extcli status", 'eval "$(extcli status', "extcli extension init /etc/", "extcli completion",
    "extcli simulate", "extcli conform", "extcli doctor", "extcli demo",
)  # fmt: skip
"""Command lines that start services, never end, write outside their folder, or measure real time."""
QUICK_SHARE = 0.12
_SQLITE = b"SQLite format 3\0"
_ASKED = ("kind", "endpoint", "path", "caller", "request", "status")
"""What is compared of a request in the journal."""


class Choice(NamedTuple):
    """Which lines are compared: those that contain the text, or a random share of them; and which part of these."""

    seed: int
    share: float
    text: str
    part: int
    parts: int

    def lines(self) -> Iterator[str]:
        """Yield the chosen lines."""
        page = documented_commands()
        examples = "".join(re.findall(r"^```shell\n(.*?)^```", page, re.MULTILINE | re.DOTALL)).splitlines()
        commands = re.findall(r"^#+ (extcli .+)$", page, re.MULTILINE)
        examples += [f"{command} {mistake}" for command in commands for mistake in MISTAKES]
        lines = [*LINES, *(line for line in dict.fromkeys(examples) if not any(each in line for each in ENDLESS))]
        chosen = random.Random(f"{self.seed} {self.part}")
        for line in lines[self.part :: self.parts]:
            is_run = self.text in line and not line.startswith(NOT_RUN)
            if is_run and (self.share >= 1 or chosen.random() < self.share):
                yield line


class Commands:
    """Runs lines with both versions, each in a folder with the same files and with a service of its own version."""

    def __init__(
        self, programs: tuple[Program, Program], pair: Pair, clock: Clock, folder: Path, report: Report
    ) -> None:
        self.programs, self.pair, self.clock, self.report = programs, pair, clock, report
        self.folders = [folder / side / "work" for side in ("old", "new")]
        self._templates = [folder / side / "template" for side in ("old", "new")]
        self._data: list[bytes] = []
        self._seed = 0

    def fill(self) -> None:
        """Write the files and the data that the lines begin with."""
        for template in self._templates:
            for name, content in (FILES | MORE_FILES).items():
                (template / name).parent.mkdir(parents=True, exist_ok=True)
                (template / name).write_text(content)
            (template / "hats.txt.gz").write_bytes(COMPRESSED)
        for each in self._run(f"set -e\n{FILLED_BY}", self._templates):
            if each.code:
                raise Missing(f"the data of the examples could not be written: {each.errors.decode()}")
        self._data = [_call(host, "GET", "/_emulator/snapshot?keys=true") for host in self.pair]

    def _run(self, script: str, folders: list[Path], **variables: str) -> list[Outcome]:
        self._seed += 1
        processes = [
            program.start(script, folder, str(self._seed), EXTCLI_URL=f"http://127.0.0.1:{host.port}", **variables)
            for program, host, folder in zip(self.programs, self.pair, folders, strict=True)
        ]
        return [outcome(process) for process in processes]

    def compare(self, line: str) -> None:
        """Run a line from the same beginning with both, and compare what it did."""
        self.clock.set(START)
        for folder, template in zip(self.folders, self._templates, strict=True):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(template, folder, symlinks=True)
        for host, data in zip(self.pair, self._data, strict=True):
            _call(host, "PUT", "/_emulator/snapshot", data)
        marks = [_journal(host, "limit=1")["mark"] for host in self.pair]
        # A line that hands text to another program has the format that this one reads.
        variables = {} if any(each in line for each in ("|", "$(", ">")) else {"EXTCLI_OUTPUT": "json"}
        first = next((script for text, script in BEFORE.items() if text in line), "")
        shown = line.replace("http://127.0.0.1:8282", "$EXTCLI_URL")
        script = f"{first} >/dev/null\n{shown}" if first else shown
        old, new = self._run(script, self.folders, **variables)
        requests = [_requests(host, mark) for host, mark in zip(self.pair, marks, strict=True)]
        places = [
            ((str(folder), "<folder>"), (str(program.folder), "<bin>"))
            for folder, program in zip(self.folders, self.programs, strict=True)
        ]
        comparison = Comparison(*self.pair, *places)
        found = [f"exit code: {old.code} -> {new.code}"] if old.code != new.code else []
        if _is_json(old.output):
            found += comparison.bodies(old.output, new.output, "stdout")
        found += self._files(comparison)
        found += comparison.bodies(*requests, "requests", is_sorted=False)
        found += comparison.bodies(*(_call(host, "GET", "/_emulator/snapshot") for host in self.pair), "snapshot")
        self.report.counts["command lines"] += 1
        if found:
            again = f"make twin ARGS='--only commands --match \"{line[:60]}\"'"
            self.report.found("commands", _place(line), found, [line], again)

    def _files(self, comparison: Comparison) -> Iterator[str]:
        olds, news = (dict(_listed(folder)) for folder in self.folders)
        for name in sorted(olds.keys() ^ news.keys()):
            yield f"file {name}: {'written -> absent' if name in olds else 'absent -> written'}"
        for name in sorted(olds.keys() & news.keys()):
            (old_mode, old), (new_mode, new) = olds[name], news[name]
            if old_mode != new_mode:
                yield f"file {name}: mode {old_mode} -> {new_mode}"
            if old != new and not old.startswith(_SQLITE):  # the commands show what is in these
                yield from comparison.bodies(old, new, f"file {name}")


def _call(host: Host, method: str, path: str, body: bytes = b"") -> bytes:
    wire = Wire(host.port)
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    wire.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n".encode() + body)
    response = wire.receive()
    wire.close()
    return response.body


def _journal(host: Host, query: str) -> Any:
    return json.loads(_call(host, "GET", f"/_emulator/journal?{query}"))


def _requests(host: Host, since: int) -> bytes:
    """Return what a line has asked the service, one request on each line: several at once come in any order."""
    entries = _journal(host, f"order=oldest&limit=1000&since={since}")["entries"]
    asked = [{name: each.get(name) for name in _ASKED} for each in entries if each["kind"] in ("request", "frame")]
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in asked).encode("utf-8", "backslashreplace")


def _is_json(output: bytes) -> bool:
    """Return whether each line is JSON, and there is one."""
    try:
        return bool([json.loads(line) for line in output.splitlines()])
    except ValueError:
        return False


def _place(line: str) -> str:
    """Return the command of a line, as the report and the list of changes name it."""
    found = re.search(r"extcli( [a-z-]+){1,2}", line)
    return found[0] if found else line


def _listed(folder: Path) -> Iterator[tuple[str, tuple[str, bytes]]]:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or path.is_socket():
            continue
        mode = f"{stat.S_IMODE(path.stat().st_mode):04o}"
        yield str(path.relative_to(folder)), (mode, path.read_bytes() if path.is_file() else b"")


def run(versions: tuple[Version, Version], folder: Path, choice: Choice, report: Report) -> None:
    """Compare command lines with a sandbox in memory."""
    clock = Clock(folder)
    old, new = (
        Program(version, clock, folder / side / "bin") for version, side in zip(versions, ("old", "new"), strict=True)
    )
    try:
        with running(versions, Setup("memory", False), clock, folder) as pair:
            for program in (old, new):
                program.wait()
            commands = Commands((old, new), pair, clock, folder, report)
            commands.fill()
            for line in choice.lines():
                commands.compare(line)
    finally:
        for program in (old, new):
            program.close()
