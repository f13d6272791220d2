"""The services of this user that run under a name: one file each, and a lock that the service holds while it runs.

The lock, not the process id in the file, says that a service runs: ids are used again, and a killed service cannot
delete its file. The files are believed because only this user can write to their folder. `stop` sends SIGTERM, which
Windows does not have: there, the service waits for a file in the same folder.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISDIR

import msgspec

from extcli import atomic_file, clock
from extcli.errors import ExpectationFailed, UsageError, shortened

NO_WINDOWS_DEVICE = r"(?!(?i:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))"
"""A pattern that refuses the names that are no files on Windows."""
NAME_PATTERN = re.compile(NO_WINDOWS_DEVICE + r"[A-Za-z0-9_-]{1,64}")
_WRITABLE_BY_OTHERS, _WRITABLE_BY_ALL, _STICKY = 0o022, 0o002, 0o1000
_CLAIM_SECONDS = 0.5
"""Reading the list of services locks a file for a moment; that must not fail a start."""


@dataclass(frozen=True, slots=True)
class NamedService:
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


Announce = Callable[[str, str, str], object]
"""Writes the URL of a service, its environment, and where its data is, once it serves."""


@contextmanager
def register_service(name: str) -> Iterator[Announce]:
    """Run the service of this process under a name. Raises `UsageError` if a running service has it."""
    if not NAME_PATTERN.fullmatch(name):
        raise UsageError(
            f"--name: {name!r} must have 1 to 64 letters, digits, '-' and '_', and not name a Windows device"
        )
    path = _create_directory() / f"{name}.json"
    service = NamedService(name, os.getpid(), clock.now())
    with ExitStack() as stack:
        with atomic_file.write_errors(path):
            is_free = stack.enter_context(atomic_file.try_lock(path, _CLAIM_SECONDS))
        if not is_free:
            taken = _read_file(path)
            holder = f"pid {taken.pid}, {taken.url or 'which is starting'}" if taken else "a service that is starting"
            raise UsageError(f"--name {name} is taken by {holder}: stop it with `extcli stop {name}`")
        stack.callback(_delete_file, path)
        if sys.platform == "win32":
            from extcli.running.windows import stop_on_request_file

            stop_on_request_file(_stop_request_file(service))
        _delete_file(path)  # of a killed service
        _write_file(path, service)

        def announce(url: str, environment: str, data: str) -> None:
            _write_file(path, replace(service, url=url, environment=environment, data=data))

        yield announce


def _write_file(path: Path, service: NamedService) -> None:
    atomic_file.replace_text(path, f"{msgspec.json.encode(service).decode()}\n")


def named_services() -> list[NamedService]:
    """Return the running services by name, and delete the files of those that have ended. Raises `UsageError`."""
    directory = runtime_directory()
    if not os.path.lexists(directory):
        return []
    _check_owner(directory)
    found = [_read_file(path) for path in sorted(directory.glob("*.json")) if not _is_stale(path)]
    return [each for each in found if each is not None]


def choose_service(services: list[NamedService], name: str | None) -> NamedService:
    """Return the service with this name, by default the only one.

    Raises `ExpectationFailed` if there is none, `UsageError` if there are several.
    """
    chosen = [each for each in services if name in (None, each.name)]
    if not chosen:
        which = "no named service runs" if name is None else f"no service {shortened(name)!r} is running"
        raise ExpectationFailed(which, fix="`extcli serve --name NAME` starts one")
    if len(chosen) > 1:
        names = ", ".join(each.name for each in chosen)
        raise UsageError(f"{len(chosen)} services are running", fix=f"name one of them: {names}")
    return chosen[0]


def is_running(service: NamedService) -> bool:
    """Return whether a registered service still runs."""
    return any((each.pid, each.started) == (service.pid, service.started) for each in named_services())


def ask_to_stop(service: NamedService) -> None:
    """Ask a service to stop; it may have just ended."""
    if sys.platform == "win32":
        _stop_request_file(service).touch()
    else:
        with suppress(ProcessLookupError):
            os.kill(service.pid, signal.SIGTERM)


def _stop_request_file(service: NamedService) -> Path:
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


def _create_directory() -> Path:
    """Create the directory. Raises `UsageError` if other users could write to it."""
    directory = runtime_directory()
    try:
        directory.mkdir(0o700, parents=True, exist_ok=True)
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
        problem = "it or its parent is a link, or another user owns it or can write to it: use chmod 700"
        raise UsageError(f"cannot trust {directory}, the folder of named services: {problem}, or set XDG_RUNTIME_DIR")


def _is_stale(path: Path) -> bool:
    """Return whether no service holds the file. If so, it is deleted."""
    with suppress(OSError), atomic_file.try_lock(path, 0) as is_stale:
        if is_stale:
            _delete_file(path)
        return is_stale
    return True


def _delete_file(path: Path) -> None:
    with suppress(OSError):  # Windows deletes no file that another process reads
        path.unlink()


def _read_file(path: Path) -> NamedService | None:
    """Return the content of a file, or `None` if it is not complete, or not the one of a service with this name."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=NamedService)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    return found if found.name == path.stem and found.pid > 1 else None
