"""Runs extcli on Windows' Python under Wine. `make test-windows` makes the environment, and names it in `WINE_FOLDER`.

Wine shows what the code does with Windows' files, locks, pipes and processes. It does not show: consoles (standard
streams are pipes), Ctrl-Break, permissions of files, other programs that hold a file, and its own differences.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.service import RunningService
from windows.environment import variables

if "WINE_FOLDER" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
TIMEOUT = 120
"""Seconds within which a command under Wine ends, on a loaded machine."""


class WindowsService(RunningService):
    """A running `extcli serve` under Wine that has printed its URL."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.process = process
        first_line = process.stdout.readline().decode()
        assert first_line, process.communicate()[1].decode(errors="replace")
        super().__init__(first_line.removeprefix("listening on ").strip())

    def interrupt(self) -> tuple[int, str]:
        """Send Ctrl-C; return the exit code and the log."""
        self.process.send_signal(signal.SIGINT)
        _, log = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, log.decode()


class Windows:
    """Windows' Python with extcli. Programs begin in `folder`, and their paths may be relative to it."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self._environment = environment
        self.folder = folder

    @property
    def program(self) -> str:
        """The path of Python, as Windows names it."""
        return "Z:" + str(self._environment / "python" / "python.exe").replace("/", "\\")

    def path(self, name: str) -> str:
        """Return the path of a file in `folder`, as Windows names it."""
        return "Z:" + str(self.folder / name).replace("/", "\\")

    def start(self, *args: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start Python with these arguments. All standard streams are pipes."""
        pipe = subprocess.PIPE
        command = ["wine", str(self._environment / "python" / "python.exe"), *args]
        environment = {**variables(self._environment), "LOCALAPPDATA": self.path("appdata"), **settings}
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.folder, env=environment)

    def python(self, *args: str, given: bytes = b"", **settings: str) -> subprocess.CompletedProcess[str]:
        """Run Python to its end."""
        with self.start(*args, **settings) as process:
            try:
                printed, log = process.communicate(given, timeout=TIMEOUT)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(args, process.returncode, printed.decode(), log.decode())

    def extcli(self, *args: str, given: bytes = b"", fails: int = 0, **settings: str) -> str:
        """Run a command that ends with this exit code, and return what it printed, with line ends as on Linux."""
        done = self.python("-m", "extcli", *args, given=given, **settings)
        assert fails == done.returncode, done.stdout + done.stderr
        return (done.stdout + (done.stderr if fails else "")).replace("\r\n", "\n")

    def terminate(self, pid: int) -> None:
        """End a process at once, by its id on Windows. A SIGKILL from Linux may end Wine's server too."""
        self.python("-c", f"import os, signal; os.kill({pid}, signal.SIGTERM)")

    @contextmanager
    def service(self, *args: str) -> Iterator[WindowsService]:
        """Run `extcli serve` on a free port."""
        with self.start("-m", "extcli", "serve", "--port", "0", *args) as process:
            try:
                yield WindowsService(process)
            finally:
                process.kill()

    def running(self) -> Sequence[str]:
        """Return the command lines of the Windows processes of this environment that have not ended."""
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has just ended
                line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(self._environment / "python") in line.replace("\\", "/"):
                    found.append(line)
        return found


@pytest.fixture(scope="session")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The environment, with a program that runs all the time.

    Wine's server ends with the last program, and a program that starts in that moment fails.
    """
    environment = Path(os.environ["WINE_FOLDER"])
    with Windows(environment, tmp_path_factory.mktemp("wine")).start("-c", "import sys; sys.stdin.read()") as idle:
        yield environment
        assert idle.stdin is not None
        idle.stdin.close()
        idle.wait(TIMEOUT)  # not until its output ends, which a process of Wine may hold open


@pytest.fixture
def windows(wine: Path, tmp_path: Path) -> Windows:
    return Windows(wine, tmp_path)
