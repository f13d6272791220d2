"""`extcli(…)` runs the program in this process against a live service; `shell(…)` runs it as a separate process."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

import extcli.app as root
from emulator.core.environment import PRODUCTION
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from extcli.main import main
from support import preloaded
from support.extension_files import LAID_OUT
from support.listen_process import Process, read_until
from support.process import server_process
from support.profile_files import write_profiles
from support.program import PROGRAM, SECRET_BASE64
from support.service import CLIENT_ID, SECRET, Client, LiveServer, live_server


@dataclass
class Result:
    """The outcome of a run."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def jsonl(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.stdout.splitlines()]


Run = Callable[..., Result]


class Tty(io.TextIOWrapper):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="session", autouse=True)
def parsers_built_once() -> Iterator[None]:
    """Keep each noun's parser: Typer builds it again for every run, which takes longer than most commands."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(typer.main, "get_command", cache(typer.main.get_command))
        patched.setattr(root, "load_noun", cache(root.load_noun))
        yield


@pytest.fixture
def environment(live: LiveServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Set the variables of the program: only the address of the live service and places in a temporary directory."""
    for name in [name for name in os.environ if name.startswith("EXTCLI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EXTCLI_URL", live.url)
    monkeypatch.setenv("EXTCLI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("EXTCLI_CONFIG", str(tmp_path / "config.toml"))
    return {"EXTCLI_URL": live.url}


@pytest.fixture
def production_profile(environment: dict[str, str], live: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the live service the production of a profile, and set a secret, as it then issues no tokens."""
    monkeypatch.setenv("EXTCLI_SECRET", SECRET_BASE64)
    write_profiles(live={"url": live.url, "production": True})


@pytest.fixture
def guarded() -> Iterator[dict[str, str]]:
    """The variables of a service whose control API needs a token, because its address is not a name of loopback."""
    token = "control-token-of-the-tests"
    with live_server(Settings(control_token=token)) as live:
        yield {"EXTCLI_URL": live.url.replace("127.0.0.1", "0.0.0.0"), "EXTCLI_CONTROL_TOKEN": token}


@pytest.fixture
def extcli(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in this process.

    The command must exit with `exits`, or with `fails` and without output, if given. With `tty`, standard input and
    standard error claim to be a terminal; with `screen`, standard output does, too.
    """

    def run(
        *args: str,
        input: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        tty: bool = False,
        screen: bool = False,
        exits: int | None = None,
        fails: int | None = None,
    ) -> Result:
        typed = tmp_path / "typed"
        typed.write_bytes(input.encode() if isinstance(input, str) else input or b"")
        kind = Tty if tty or screen else io.TextIOWrapper
        stdout = (Tty if screen else io.TextIOWrapper)(io.BytesIO(), "utf-8", write_through=True)
        stderr = kind(io.BytesIO(), "utf-8", write_through=True)
        with monkeypatch.context() as patched, typed.open("rb") as file, kind(file) as stdin:
            patched.setattr(sys, "stdin", stdin)
            patched.setattr(sys, "stdout", stdout)
            patched.setattr(sys, "stderr", stderr)
            for name, value in (env or {}).items():
                patched.setenv(name, value)
            exit_code = main(args)
            _wait_for_readers()
        printed, said = (stream.buffer.getvalue().decode(errors="replace") for stream in (stdout, stderr))
        assert exits is None or exits == exit_code, said
        assert fails is None or (fails, "") == (exit_code, printed), said
        return Result(exit_code, printed, said)

    return run


def _wait_for_readers() -> None:
    """Wait for threads that still read the input: the next command may get a file with the same descriptor."""
    for thread in threading.enumerate():
        if thread.name == "input":
            thread.join(5)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """Write a file and return its path."""

    def write(content: str | bytes, name: str = "file.txt") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


@pytest.fixture
def repl(extcli: Run) -> Run:
    """Run `extcli socket repl` with these lines as its input."""
    return lambda *lines, **settings: extcli("socket", "repl", input="".join(f"{line}\n" for line in lines), **settings)


@pytest.fixture
def lines(file: Callable[..., str]) -> Callable[..., str]:
    """Write a file of these lines and return its path."""
    return lambda *texts, name="lines.txt": file("".join(f"{text}\n" for text in texts), name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, where the commands find `extensions.toml`."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def laid_out(folder: Path) -> Path:
    """A file of two extensions with comments."""
    (folder / "kept.secret").write_text("ZmlsZQ==")
    (folder / "extensions.toml").write_text(LAID_OUT)
    return folder / "extensions.toml"


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipe from which the address that the browser opened can be read."""
    pipe, browser = tmp_path / "opened", tmp_path / "browser"
    os.mkfifo(pipe)
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen({str(pipe)!r}, 'w').write(sys.argv[1])\n")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s &")
    monkeypatch.setattr("webbrowser._tryorder", None)  # the browsers that it found before, in this process
    return pipe


@pytest.fixture
def shell(environment: dict[str, str]) -> Callable[..., Process]:
    """Start a command as a process; the caller waits for it to end."""
    return lambda *args, **variables: preloaded.start(args, os.environ | variables, has_input=True)


@pytest.fixture
def in_a_shell(environment: dict[str, str]) -> Callable[[str], str]:
    """Run a script with the installed program in its path, and return its output."""
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"env": {**os.environ, "PATH": path}, "capture_output": True, "text": True, "timeout": 60}
    return lambda script: str(subprocess.run(["sh", "-eu", "-c", script], check=True, **settings).stdout)


@pytest.fixture
def listening(shell: Callable[..., Process]) -> Iterator[Callable[..., Process]]:
    """Start `extcli listen`; returns when it is ready."""
    processes: list[Process] = []

    def start(*args: str, **variables: str) -> Process:
        processes.append(shell("listen", *args, **variables))
        assert read_until(processes[-1], "ready: ")
        return processes[-1]

    yield start
    for process in processes:
        with process:
            process.kill()


@pytest.fixture(scope="session")
def production() -> Iterator[LiveServer]:
    """A production service with one registered extension."""
    extension = Extension(CLIENT_ID, (SECRET,))
    with live_server(Settings(environment=PRODUCTION, extensions={CLIENT_ID: extension})) as live:
        yield live


@pytest.fixture(scope="session")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file `data.db` of a service that has stopped: it has a vote and a store."""
    folder = tmp_path_factory.mktemp("stopped")
    with server_process("--data", f"sqlite://{folder}/data.db") as served:
        viewer = served.client("viewer", user="5551", channel="1001")
        viewer.post("vote?id=lunch", json={"value": 3}).raise_for_status()
        viewer.post("viewer_state", json={"level": 4}).raise_for_status()
        assert 0 == served.stop(signal.SIGTERM)
    return folder


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    """Start a fake server: `answering(b"…", …)` answers each request with the next bytes, then hangs up.

    With `hold` it then keeps connections open in silence. It stands for proxies, other programs and dying services.
    """
    listeners: list[socket.socket] = []

    def serve(*answers: bytes, hold: bool = False) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        held: list[socket.socket] = []
        remaining = list(answers)

        def work() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(ConnectionError):
                    while remaining and _read_request(connection):
                        connection.sendall(remaining.pop(0))
                    if hold:
                        held.append(connection.dup())

        threading.Thread(target=work, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield serve
    for listener in listeners:
        listener.close()


def _read_request(connection: socket.socket) -> bool:
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(65536)
        if not received:
            return False
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0]) - len(body) if lengths else 0
    while missing > 0:
        missing -= len(connection.recv(65536))
    return True


@pytest.fixture
def filled(viewer, admin: Client) -> None:
    """Fill the journal: make a vote, a refused read and a read."""
    viewer("5551").post("vote?id=rps", json={"value": 2})
    viewer("5551").get("vote_logs")
    admin.get("polls")


@pytest.fixture
def one_of_each(extcli) -> None:
    """One thing of each kind, with texts that CSV must quote, and characters that a terminal would obey."""
    for line in (
        ("vote", "define", "lunch", "--option", 'Soup, "\x1b[31mhot"', "--option", "\u202eSalad"),
        ("vote", "cast", "lunch", "--value", "0"),
        ("rank", "submit", "colour", "--key", 'blue, "\x1b[2Jdark" [red]:smile:[/red]'),
        ("accumulate", "add", "ratings", '{"stars": 5, "text": "a\\nb\\u001b[2J"}'),
        ("state", "set", "channel", '{"\\u001b[2J": "\\u009b"}'),
        ("trivia", "define", "q1", "--name", "Which\x1b[2J team, then?"),
        ("trivia", "define-option", "q1", "red", "--name", "\u202eRed"),
        ("fault", "add", "--match", "POST /v1/e/rank", "--status", "503"),
        ("ns", "new", "blue"),
    ):
        extcli(*line, exits=0)
