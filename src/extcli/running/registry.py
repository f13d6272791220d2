"""The services of this user that run under a name: one file each, which the service keeps locked while it runs.

The lock, not the process id in the file, says that a service runs: ids are used again, and a killed service cannot
delete its file. The files are believed because only this user can write to their folder. `stop` sends SIGTERM, which
Windows does not have: there, the service waits for a file in the same folder.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from stat import S_ISDIR

import msgspec

from extcli import clock
from extcli.errors import ExpectationFailed, UsageError, shortened

NO_DEVICE = r"(?!(?i:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))"
"""A pattern that refuses the names that are no files on Windows."""
NAME = re.compile(NO_DEVICE + r"[A-Za-z0-9_-]{1,64}")
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600
_WRITABLE_BY_OTHERS, _WRITABLE_BY_ALL, _STICKY = 0o022, 0o002, 0o1000
_READ_AND_WRITE = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
_CLAIM_SECONDS, _INTERVAL = 0.5, 0.02
"""Reading the list of services locks a file for a moment; that must not fail a start."""
_CONTENT_AT = 1 if os.name == "nt" else 0
"""Where the content of a file begins. On Windows no other process can read the first byte of a locked file."""


@dataclass(frozen=True, slots=True)
class Running:
    """A running service."""

    name: str
    pid: int
    started: int
    """When it started, in Unix ms."""
    url: str = ""
    """Empty until it serves."""
    environment: str = ""
    data: str = ""
    """Where its data is, without credentials: `memory`, a path, `Redis at host:6379/0`."""


class Entry:
    """The file of a service that is about to run in this process."""

    def __init__(self, descriptor: int, running: Running) -> None:
        self._descriptor = descriptor
        self._running = running
        self._write()

    def announce(self, url: str, environment: str, data: str) -> None:
        """Write the service's address to its file, once it serves."""
        self._running = replace(self._running, url=url, environment=environment, data=data)
        self._write()

    def _write(self) -> None:
        content = json.dumps(asdict(self._running)).encode() + b"\n"
        os.lseek(self._descriptor, _CONTENT_AT, os.SEEK_SET)
        os.write(self._descriptor, content)
        os.ftruncate(self._descriptor, _CONTENT_AT + len(content))


@contextmanager
def registered(name: str) -> Iterator[Entry]:
    """Run the service of this process under a name. Raises `UsageError` if a running service has it."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"--name: {name!r} must have 1 to 64 letters, digits, '-' and '_', and be no device of Windows"
        )
    path = _directory() / f"{name}.json"
    descriptor = _claim_file(path)
    try:
        service = Running(name, os.getpid(), clock.now())
        if sys.platform == "win32":
            from extcli.running.windows import stop_when_asked

            stop_when_asked(_request(service))
        yield Entry(descriptor, service)
    finally:
        _release(descriptor, path, deletes=True)


def running() -> list[Running]:
    """Return the running services by name, and delete the files of those that have ended. Raises `UsageError`."""
    directory = runtime_directory()
    if not os.path.lexists(directory):
        return []
    _check_owner(directory)
    found = [_read(path) for path in sorted(directory.glob("*.json")) if not _is_stale(path)]
    return [each for each in found if each is not None]


def the_one(services: list[Running], name: str | None) -> Running:
    """Return the service with this name, by default the only one.

    Raises `ExpectationFailed` if there is none, `UsageError` if there are several.
    """
    chosen = [each for each in services if name in (None, each.name)]
    if not chosen:
        which = "no service runs under a name" if name is None else f"no service {shortened(name)!r} is running"
        raise ExpectationFailed(which, fix="`extcli serve --name NAME` starts one")
    if len(chosen) > 1:
        names = ", ".join(each.name for each in chosen)
        raise UsageError(f"{len(chosen)} services are running", fix=f"name one of them: {names}")
    return chosen[0]


def is_running(service: Running) -> bool:
    """Return whether a registered service still runs."""
    path = runtime_directory() / f"{service.name}.json"
    current = None if _is_stale(path) else _read(path)
    return current is not None and (current.pid, current.started) == (service.pid, service.started)


def ask_to_stop(service: Running) -> None:
    """Ask a service to stop; it may have just ended."""
    if sys.platform == "win32":
        _request(service).touch()
    else:
        with suppress(ProcessLookupError):
            os.kill(service.pid, signal.SIGTERM)


def _request(service: Running) -> Path:
    """Return the file that asks a service on Windows to stop."""
    return runtime_directory() / f"{service.name}-{service.pid}.stop"


def runtime_directory() -> Path:
    """Return the folder of the files: in `XDG_RUNTIME_DIR`, in `/run/user/UID`, or in the user's folder for state."""
    if directory := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(directory) / "extcli"
    if sys.platform != "win32" and os.access(session := f"/run/user/{os.getuid()}", os.W_OK):
        return Path(session) / "extcli"
    import platformdirs  # whose own folder would be among the temporary files, where any user can create it

    return platformdirs.user_state_path("extcli", appauthor=False) / "run"


def _directory() -> Path:
    """Create the directory. Raises `UsageError` if other users could write to it."""
    directory = runtime_directory()
    try:
        directory.mkdir(_DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--name: cannot create {directory}: {error.strerror}; set XDG_RUNTIME_DIR") from None
    _check_owner(directory)
    return directory


def _check_owner(directory: Path) -> None:
    """Raise `UsageError` if another user may have put files there, or could replace the directory."""
    if sys.platform == "win32":
        return  # it is in the user's profile
    own, above = directory.lstat(), directory.parent.lstat()
    is_own = own.st_uid == os.getuid() and above.st_uid in (0, os.getuid())
    is_shared = own.st_mode & _WRITABLE_BY_OTHERS or above.st_mode & (_WRITABLE_BY_ALL | _STICKY) == _WRITABLE_BY_ALL
    if not is_own or is_shared or not (S_ISDIR(own.st_mode) and S_ISDIR(above.st_mode)):
        problem = "it or its folder is a link, or belongs to another user, or others can write to it: chmod 700"
        raise UsageError(f"services with names: cannot trust {directory}: {problem}, or set XDG_RUNTIME_DIR")


def _claim_file(path: Path) -> int:
    """Create and lock the file; return its descriptor. Raises `UsageError`."""
    deadline = clock.elapsed() + _CLAIM_SECONDS
    while clock.elapsed() < deadline:
        try:
            descriptor = os.open(path, _READ_AND_WRITE | os.O_CREAT, _FILE_MODE)
        except OSError as error:
            raise UsageError(f"--name: cannot write {path}: {error.strerror}") from None
        if _lock(descriptor) and _is_at(descriptor, path):
            if sys.platform != "win32":
                os.fchmod(descriptor, _FILE_MODE)
            return descriptor
        os.close(descriptor)
        clock.sleep(_INTERVAL)
    taken = _read(path)
    holder = f"pid {taken.pid}, {taken.url or 'which is starting'}" if taken else "a service that is starting"
    raise UsageError(f"--name {path.stem} is taken by {holder}: stop it with `extcli stop {path.stem}`")


def _is_stale(path: Path) -> bool:
    """Return whether no service holds the file. If so, it is deleted."""
    try:
        descriptor = os.open(path, _READ_AND_WRITE)
    except OSError:
        return True
    is_stale = False
    try:
        is_stale = _lock(descriptor)
        return is_stale
    finally:
        _release(descriptor, path, deletes=is_stale and _is_at(descriptor, path))


def _lock(descriptor: int) -> bool:
    """Lock the file, unless it is locked. The lock lasts until the descriptor is closed or the process ends."""
    import filelock

    return filelock.lock_descriptor(descriptor, blocking=False)


def _release(descriptor: int, path: Path, *, deletes: bool) -> None:
    """Close a file, which also unlocks it.

    It is deleted before that, so that no service can claim it in between. Windows deletes no open file: there it is
    deleted afterwards, which fails if a service has claimed it in between.
    """
    if deletes and sys.platform != "win32":
        with suppress(OSError):
            path.unlink()
    os.close(descriptor)
    if deletes and sys.platform == "win32":
        with suppress(OSError):
            path.unlink()


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether the open file is still the one at this path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _read(path: Path) -> Running | None:
    """Return the content of a file, or `None` if it is not complete, or not the one of a service with this name."""
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(_CONTENT_AT)
            found = msgspec.json.decode(file.read(), type=Running)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    return found if found.name == path.stem and found.pid > 1 else None
