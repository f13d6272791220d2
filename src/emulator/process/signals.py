"""Handles the signals that stop and reload the service, and stops it when the program that started it is gone."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from emulator.contract.limits import MIN_SECRET_BYTES
from emulator.core.errors import ConfigurationError
from emulator.core.extensions import Extension, read_extensions

STOP_SIGNALS: tuple[signal.Signals, ...] = (signal.SIGTERM, signal.SIGINT)
HANGUP_SIGNALS: tuple[signal.Signals, ...] = ()
"""Signals that reload the extensions, or stop the service (`HangupHandler`). Windows has none."""
if sys.platform == "win32":
    STOP_SIGNALS += (signal.SIGBREAK,)  # Ctrl-Break, and a console that closes
else:
    HANGUP_SIGNALS += (signal.SIGHUP,)
_log = logging.getLogger("emulator")
_CHECK_INTERVAL = 1.0


class SignalHandler:
    """Catches signals from construction to the end of the process, so that they never kill it.

    A signal calls the registered callback, or is remembered until one is registered.
    """

    def __init__(self, *numbers: signal.Signals) -> None:
        self._pending = False
        self._callback: Callable[[], object] | None = None
        for number in numbers:
            signal.signal(number, self._handle)
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)

    @contextmanager
    def use_callback(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call `callback` in place of the registered one during the block; at once if a signal is pending.

        If none was registered, signals after the block are remembered.
        """
        before, self._callback = self._callback, callback
        if self._pending:
            self._pending = False
            callback()
        try:
            yield
        finally:
            self._callback = before

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._callback is None:
            self._pending = True
        else:
            self._callback()


class HangupHandler(SignalHandler):
    """Catches SIGHUP. It means SIGTERM if there is nothing to reload or the terminal has closed, but not in `nohup`."""

    def __init__(self, *, reloads: bool) -> None:
        is_ignored = any(signal.getsignal(each) is signal.SIG_IGN for each in HANGUP_SIGNALS)
        self._stops = not reloads and not is_ignored
        self._had_terminal = not is_ignored and _has_terminal()
        super().__init__(*HANGUP_SIGNALS)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._stops or (self._had_terminal and not _has_terminal()):
            stop_this_process()
        else:
            super()._handle(number, frame)


def _has_terminal() -> bool:
    """Whether this process has an open terminal, wherever its input and output go."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY))
    except OSError:
        return False
    return True


def ignore_signals() -> None:
    """Ignore all signals from now on. Python would restore the defaults at exit, and a late signal would kill it."""
    if sys.platform != "win32":
        # Python reports a signal that comes before it is ignored, but whose handler would run after that.
        signal.pthread_sigmask(signal.SIG_BLOCK, (*STOP_SIGNALS, *HANGUP_SIGNALS))
    for number in (*STOP_SIGNALS, *HANGUP_SIGNALS):
        signal.signal(number, signal.SIG_IGN)


def stop_this_process() -> None:
    """Stop this process as SIGTERM from outside does. Call it in any thread."""
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGTERM)  # `os.kill` would end the process at once
    else:
        os.kill(os.getpid(), signal.SIGTERM)


async def reload_on_hangup(
    hangups: SignalHandler, replace: Callable[[Mapping[str, Extension]], None], file: Path | None
) -> None:
    """Reload the file after each SIGHUP, until cancelled; on Windows, after each change of the file.

    `replace` replaces all extensions at once.
    """
    if file is None:
        return
    requested, loop = asyncio.Event(), asyncio.get_running_loop()
    version = _file_version(file)
    with hangups.use_callback(lambda: loop.call_soon_threadsafe(requested.set)):
        while True:
            if HANGUP_SIGNALS:
                await requested.wait()
                requested.clear()
            else:
                while (changed := _file_version(file)) == version:  # noqa: ASYNC110  (no event tells of it)
                    await asyncio.sleep(_CHECK_INTERVAL)
                version = changed
            try:
                current = await asyncio.to_thread(read_extensions, file)  # in a thread, as the disk may be slow
            except ConfigurationError as error:
                _log.error("%s; the extensions stay as they were", error)
                continue
            replace(current)
            _log.info("%s: reloaded by process %s, registered extensions: %s", file, os.getpid(), len(current))
            warn_of_short_secrets(current)


def _file_version(file: Path) -> tuple[int, int] | None:
    """Return a file's modification time in ns and its size; `None` if it does not exist."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def warn_of_short_secrets(current: Mapping[str, Extension]) -> None:
    """Log a warning per extension with a secret that is too short for HS256. Such secrets still work."""
    for extension in current.values():
        if any(len(secret) < MIN_SECRET_BYTES for secret in extension.secrets):
            _log.warning(
                "%s: a secret is shorter than the %s bytes that HS256 requires", extension.client_id, MIN_SECRET_BYTES
            )


def stop_when_closed(descriptor: int) -> None:
    """Stop this process, as SIGTERM does, once the last writer of this pipe has closed it.

    A writer may send the id of a process group on a line: then the group is also killed; 0 means none. So a
    program that is killed itself leaves no children behind. Raises `ConfigurationError` if no file is open there.
    """
    try:
        os.fstat(descriptor)
    except OSError as error:
        raise ConfigurationError(f"--lifeline {descriptor}: {error.strerror}") from None
    os.set_inheritable(descriptor, False)
    threading.Thread(target=_stop_at_end_of_pipe, args=(descriptor,), name="lifeline", daemon=True).start()


def _stop_at_end_of_pipe(descriptor: int) -> None:
    received = b""
    with suppress(OSError):
        while data := os.read(descriptor, 4096):
            received = (received + data)[-4096:]
    groups = [int(line) for line in received.split() if line.isdigit()]
    group = groups[-1] if groups else 0
    if group > 1 and sys.platform != "win32":
        with suppress(OSError):  # it has ended
            os.killpg(group, signal.SIGKILL)
    stop_this_process()
