"""The part that runs command lines: every help, every example in one, mistakes, seeds, snapshots, bulk files."""

from __future__ import annotations

import itertools
import random
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from support.help_examples import BEFORE, COMPRESSED, ENDLESS, FILES, FILLED_BY
from twin.comparing import Comparison
from twin.environment import Missing, Version
from twin.forking import Outcome, Program, outcome
from twin.host import START, Clock, Pair, Setup, running
from twin.lines import LINES, MORE_FILES
from twin.report import Report
from twin.wire import Wire

NOT_RUN = (
    "extcli serve", "extcli exec", "extcli listen", "extcli socket repl", "extcli logs -f", "extcli open",
    "extcli stop", "extcli status", 'eval "$(extcli status', "extcli extension init /etc/", "extcli completion",
    "extcli simulate", "extcli conform", "extcli doctor",
)  # fmt: skip
"""Command lines that start services, never end, write outside their folder, or measure real time."""
_HAS_COMMANDS = re.compile(r"^(Commands|The emulator):", re.MULTILINE)
_COMMAND = re.compile(r"^  ([a-z][a-z-]*)  +\S")
QUICK_SHARE = 0.12
_SQLITE = b"SQLite format 3\0"


class Choice(NamedTuple):
    """Which lines are compared: those that contain the text, or a random share of them; and which part of these."""

    seed: int
    share: float
    text: str
    part: int
    parts: int


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
        outcomes = self._run(f"set -e\n{FILLED_BY}", self._templates)
        for each in outcomes:
            if each.code:
                raise Missing(f"the data of the examples could not be written: {each.errors.decode()}")
        self._data = [self._call(host.port, b"GET", b"/_emulator/snapshot?keys=true") for host in self.pair]

    def _call(self, port: int, method: bytes, path: bytes, body: bytes = b"") -> bytes:
        wire = Wire(port)
        length = b"Content-Length: %d\r\n" % len(body) if body else b""
        wire.send(b"%b %b HTTP/1.1\r\nHost: localhost\r\n%b\r\n%b" % (method, path, length, body))
        response = wire.receive()
        wire.close()
        return response.body

    def _run(self, script: str, folders: list[Path], **variables: str) -> list[Outcome]:
        self._seed += 1
        processes = [
            program.start(script, folder, str(self._seed), EXTCLI_URL=f"http://127.0.0.1:{host.port}", **variables)
            for program, host, folder in zip(self.programs, self.pair, folders, strict=True)
        ]
        return [outcome(process) for process in processes]

    def compare(self, line: str, place: str) -> list[Outcome]:
        """Run a line from the same beginning with both, and compare everything it did."""
        self.clock.set(START)
        for folder, template in zip(self.folders, self._templates, strict=True):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(template, folder, symlinks=True)
        for host, data in zip(self.pair, self._data, strict=True):
            self._call(host.port, b"PUT", b"/_emulator/snapshot", data)
        first = next((script for text, script in BEFORE.items() if text in line), "")
        line = line.replace("http://127.0.0.1:8282", "$EXTCLI_URL")
        old, new = outcomes = self._run(f"{first} >/dev/null\n{line}" if first else line, self.folders)
        places = [
            ((str(folder), "<folder>"), (str(program.folder), "<bin>"))
            for folder, program in zip(self.folders, self.programs, strict=True)
        ]
        comparison = Comparison(*self.pair, *places)
        found = [f"exit code: {old.code} -> {new.code}"] if old.code != new.code else []
        found += comparison.bodies(old.output, new.output, "stdout")
        found += comparison.bodies(old.errors, new.errors, "stderr")
        found += self._files(comparison)
        snapshots = [self._call(host.port, b"GET", b"/_emulator/snapshot") for host in self.pair]
        found += comparison.bodies(*snapshots, "snapshot")
        self.report.counts["command lines"] += 1
        self.report.step(f"{old.code} {line}\n{old.output.decode()}{old.errors.decode()}")
        if found:
            again = f"make twin ARGS='--only commands --match \"{line[:60]}\"'"
            self.report.found("commands", place, found, [line], again)
        return outcomes

    def _files(self, comparison: Comparison) -> Iterator[str]:
        olds, news = (dict(_listed(folder)) for folder in self.folders)
        for name in sorted(olds.keys() | news.keys()):
            if name not in news:
                yield f"file {name}: written -> absent"
                continue
            if name not in olds:
                yield f"file {name}: absent -> written"
                continue
            (old_mode, old), (new_mode, new) = olds[name], news[name]
            if old_mode != new_mode:
                yield f"file {name}: mode {old_mode} -> {new_mode}"
            if old != new and not old.startswith(_SQLITE):  # the commands show what is in these
                yield from comparison.bodies(old, new, f"file {name}")

    def helps(self, command: str, chosen: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """Compare the help of a command and those below it, of `extcli` the chosen ones; yields each with its help."""
        old, new = self._run(f"{command} --help", self._templates)
        found = Comparison().bodies(old.output + old.errors, new.output + new.errors, "stdout")
        if found:
            line = f"{command} --help"
            again = f"make twin ARGS='--only commands --match \"{line}\"'"
            self.report.found("commands", line, found, [line], again)
        self.report.counts["pages of help"] += 1
        text = old.output.decode()
        yield command, text
        if _HAS_COMMANDS.search(text):
            for line in text.partition("\nOptions")[0].splitlines():
                if (name := _COMMAND.match(line)) and (command != "extcli" or chosen(name[1])):
                    yield from self.helps(f"{command} {name[1]}", chosen)

    def all(self, choice: Choice) -> None:
        """Compare the chosen lines."""
        chosen = random.Random(f"{choice.seed} {choice.part}")
        turns = itertools.count()

        def is_chosen(command: str) -> bool:
            if choice.text:
                return command in choice.text.split()
            return next(turns) % choice.parts == choice.part and chosen.random() < 2 * choice.share

        helps = dict(self.helps("extcli", is_chosen))
        examples = dict.fromkeys(line for text in helps.values() for line in _examples(text))
        lines = [
            each
            for each in (*examples, *LINES[choice.part :: choice.parts])
            if not each.startswith(NOT_RUN) and not any(e in each for e in ENDLESS)
        ]
        for command in helps:
            if " " in command and not command.startswith(NOT_RUN):
                lines += [
                    f"{command} --nonsense",
                    f"{command} -o json x y z </dev/null",
                    f"{command} -o jsonl --url http://127.0.0.1:9",
                ]
        for line in lines:
            if choice.text in line and (choice.share >= 1 or chosen.random() < choice.share):
                self.compare(line, _place(line))


def _examples(text: str) -> Iterator[str]:
    """Yield the examples in a help, one command line each."""
    _, _, below = text.partition("\n  Example")
    for line in re.sub(r"^s?:", "", below).splitlines():
        if not line.strip() and below:
            if line is not below.splitlines()[0]:
                return
            continue
        yield line.strip()


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
    setup = Setup("memory", False)
    programs = [
        Program(version, clock, folder / side / "bin") for version, side in zip(versions, ("old", "new"), strict=True)
    ]
    try:
        with running(versions, setup, clock, folder) as pair:
            for program in programs:
                program.wait()
            commands = Commands((programs[0], programs[1]), pair, clock, folder, report)
            commands.fill()
            commands.all(choice)
    finally:
        for program in programs:
            program.close()
