"""Every command that a document shows works, and prints what the document shows.

The `sh` blocks of a document run in one shell, from top to bottom, as a reader would type them. The commands of a
`console` block run in the same shell on a terminal of 80 columns, and their output is compared. `$ extcli serve …` is
started and stopped. What is not run is in `NOT_RUN`, with the reason.
"""

from __future__ import annotations

import base64
import difflib
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from blocks import ROOT, Block, blocks, documents, name_of

from support.service import LiveServer

Finished = subprocess.CompletedProcess[str]

NOT_RUN = {
    "git clone ": "downloads a checkout",
    "make ": "sets up a checkout; CI runs the same targets",
    "pip ": "installs",
    "pipx ": "installs",
    "uvx ": "installs",
    "docker ": "needs Docker; make check lints the files",
    "npm ": "installs",
    "npx ": "installs",
    "extcli exec -- make ": "test_example_project.py runs it",
    "tar ": "unpacks what npm fetched",
    "python3 -m http.server": "serves pages until it is stopped; tests/browser opens them",
    "python benchmarks/": "takes minutes; CI does not measure",
    "extcli data ": "tests/cli/test_data_command.py runs each on its own files",
}
LONG = {"docs/ci.md", "docs/start.md"} | {
    f"docs/guide/{name}.md"
    for name in ("codes", "conform", "faults", "journal", "pin", "polls", "simulate", "stores", "trivia-and-purchases")
}
"""Documents whose commands take a second or more."""
SERVE = re.compile(r"(\w+=\S+ )*extcli serve\b")
DEFAULT_PLACE = "127.0.0.1:8282"
REGISTERED = '[extensions.my-extension]\nsecret_files = ["my-extension.secret"]\n'
"""The file of extensions of a document that shows none."""
VOTE = "extcli --url $BACKEND_URL vote cast --value 3"


def environment(programs: Path, **more: str) -> dict[str, str]:
    # The programs of the environment that runs the tests come first, as after `activate`.
    path = os.pathsep.join(map(str, (programs, Path(sys.executable).parent, os.environ["PATH"])))
    return {"PATH": path, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", **more}


def reason_not_to_run(command: str) -> str:
    return next((reason for prefix, reason in NOT_RUN.items() if command.startswith(prefix)), "")


def transcripts(block: Block) -> list[tuple[str, str]]:
    """The commands of a `console` block that are run and compared."""
    if block.info != "console":
        return []
    return [each for each in block.commands if not SERVE.match(each[0]) and not reason_not_to_run(each[0])]


def all_transcripts(document: Path) -> list[tuple[str, str]]:
    return [each for block in blocks(document) for each in transcripts(block)]


RUNNABLE = [each for each in documents() if any(b.info == "sh" or transcripts(b) for b in blocks(each))]
SERVES = [
    pytest.param(block, command, output, id=f"{name_of(block.document)}: {command[:50]}")
    for document in documents()
    for block in blocks(document)
    if block.info == "console"
    for command, output in block.commands
    if SERVE.match(command)
]
JOBS = [
    pytest.param(block, id=name_of(block.document))
    for document in documents()
    for block in blocks(document)
    if block.info == "yaml"
]


class Terminal:
    """A terminal of 80 columns; `screens` has what was written to it, split where a command began."""

    def __init__(self) -> None:
        self._master, self._slave = pty.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.path = os.ttyname(self._slave)
        self._written = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # Linux ends the reading of a closed terminal with an error
            while text := os.read(self._master, 1 << 16):
                self._written += text

    def close(self) -> list[str]:
        """Return what each command has left on the screen."""
        os.close(self._slave)
        self._reader.join(10)
        os.close(self._master)
        return left_on_screen(self._written.decode()).split("\x1e\n")[1:]


def left_on_screen(written: str) -> str:
    """Return the text of a terminal without what was erased from it, such as the progress of a slow command."""
    rows, row = [""], 0
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|[\r\n])", written):
        if part == "\n":
            row += 1
            rows += [""] * (row == len(rows))
        elif part == "\x1b[1A":
            row -= 1
        elif part == "\x1b[2K":
            rows[row] = ""
        elif part[:1] not in ("\x1b", "\r"):
            rows[row] += part
    return "\n".join(rows)


def script_of(document: Path, terminal: str) -> str:
    """One shell script of all commands in a document. Standard error tells which block runs."""
    parts = ["set -euo pipefail"]
    for block in blocks(document):
        if block.info == "sh":
            parts.append(f"echo '@@ {name_of(document)}:{block.line}' >&2\n{block.text}")
        for command, _ in transcripts(block):
            parts.append(f"printf '\\036\\n' >{terminal}\n{{ {command}\n}} >{terminal} 2>&1 </dev/null || true")
    return "\n".join(parts)


def settled(text: str) -> str:
    """Output without what differs from run to run: PINs, request ids, days, times."""
    text = re.sub(r"\b[0-9a-f]{8}-\d+\b", "9f2ab04c-5", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d\b", "2026-11-22", text)
    text = re.sub(r"\bextcli/\d+\.\S+", "extcli/0.1.0", text)
    text = re.sub(r"\b\d\d:\d\d:\d\d(\.\d+)?Z", "00:00:00Z", text)
    text = re.sub(r"(│ +)[2-9A-Z]{6}( +│)", r"\1PIN\2", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def run_to_its_end(
    command: list[str], *, cwd: Path, env: Mapping[str, str], timeout: int
) -> subprocess.CompletedProcess[str]:
    """Run a command. If it takes longer than `timeout` seconds, kill it with all that it started."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Finished(command, process.returncode, stdout, stderr)


@pytest.mark.parametrize(
    "document",
    [pytest.param(each, marks=[pytest.mark.long] * (name_of(each) in LONG)) for each in RUNNABLE],
    ids=name_of,
)
def test_the_commands_of_a_document_work_from_top_to_bottom(
    live: LiveServer, tmp_path: Path, programs: Path, document: Path
) -> None:
    place = live.url.removeprefix("http://")
    terminal = Terminal()
    kept = {"EXTCLI_STATE_DIR": str(tmp_path / "state"), "EXTCLI_CONFIG": str(tmp_path / "config.toml")}
    kept["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    (tmp_path / "work").mkdir()
    try:
        result = run_to_its_end(
            ["bash", "-c", script_of(document, terminal.path).replace(DEFAULT_PLACE, place)],
            cwd=tmp_path / "work",
            env=environment(programs, EXTCLI_URL=live.url, **kept),
            timeout=100,
        )
    finally:
        screens = terminal.close()

    assert (0, "") == (result.returncode, "\n".join(re.findall("^extcli: .*", result.stderr, re.M))), result.stderr
    shown = "".join(f"$ {command}\n{settled(output)}\n" for command, output in all_transcripts(document))
    commands = [command for command, _ in all_transcripts(document)]
    seen = "".join(
        f"$ {command}\n{settled(screen.replace(place, DEFAULT_PLACE))}\n"
        for command, screen in zip(commands, screens, strict=True)
    )
    if shown != seen:
        difference = difflib.unified_diff(shown.splitlines(), seen.splitlines(), "document", "terminal", lineterm="")
        pytest.fail("\n".join(difference), pytrace=False)


@pytest.mark.parametrize(("block", "command", "output"), SERVES)
def test_a_service_of_a_document_starts_and_stops(
    tmp_path: Path, programs: Path, block: Block, command: str, output: str
) -> None:
    registered = [each.text for each in blocks(block.document) if each.info == "toml" and "[extensions." in each.text]
    (tmp_path / "extensions.toml").write_text("".join(registered) or REGISTERED)
    (tmp_path / "seed.toml").write_text((ROOT / "src" / "extcli" / "example_seed.toml").read_text())
    (tmp_path / "my-extension.secret").write_text(base64.b64encode(os.urandom(32)).decode())

    service = subprocess.Popen(
        ["bash", "-c", re.sub(r"(?=extcli serve)", "exec ", command, count=1).replace("/srv/", f"{tmp_path}/")],
        cwd=tmp_path,
        env=environment(programs, EXTCLI_SERVE_PORT="0"),
        stdout=subprocess.PIPE,
        text=True,
    )
    with service:
        assert service.stdout is not None
        first_line = service.stdout.readline()
        service.send_signal(signal.SIGTERM)

    assert re.fullmatch(r"listening on http://127\.0\.0\.1:\d+(/muxy)?\n", first_line)
    assert output.startswith(("listening on http://127.0.0.1:", "2026-")) or not output.strip()
    assert 0 == service.returncode


@pytest.mark.parametrize("block", JOBS)
def test_the_steps_of_a_ci_job_run(tmp_path: Path, programs: Path, block: Block) -> None:
    if not shutil.which("npm"):
        pytest.skip("needs npm")
    [job] = yaml.safe_load(block.text)["jobs"].values()
    steps = [step["run"] for step in job["steps"] if "run" in step]
    script = "\n".join(step for step in steps if not reason_not_to_run(step))
    # The extension's tests cast a vote, and find the service by the variable of the job.
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {"test": VOTE}}))

    result = run_to_its_end(
        ["bash", "-c", f"set -euo pipefail\n{script}"],
        cwd=tmp_path,
        env=environment(programs),
        timeout=60,
    )

    assert (0, True) == (result.returncode, "3\t1\n" in result.stdout), result.stderr


def test_toml_blocks_are_toml() -> None:
    texts = [block.text for document in documents() for block in blocks(document) if block.info == "toml"]

    assert texts
    assert all(tomllib.loads(text) for text in texts)
