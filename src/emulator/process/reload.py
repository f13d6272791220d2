"""Reloads the extensions file on SIGHUP, without interrupting connections."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from emulator.config.extensions import Extension, read_extensions
from emulator.errors import ConfigurationError
from emulator.process.signals import SignalHandler

_log = logging.getLogger("emulator")
_MIN_SECRET = 32
"""Bytes that HS256 requires of a secret."""

Replace = Callable[[Mapping[str, Extension]], None]
"""Replaces all extensions at once."""


def reload_extensions(replace: Replace, file: Path) -> bool:
    """Replace the extensions with those in the file. An invalid file is logged and ignored; returns False then."""
    current = _read(file)
    if current is not None:
        _replace(replace, current, file)
    return current is not None


def _read(file: Path) -> Mapping[str, Extension] | None:
    try:
        return read_extensions(file)
    except ConfigurationError as error:
        _log.error("%s; the extensions stay as they were", error)
        return None


def _replace(replace: Replace, current: Mapping[str, Extension], file: Path) -> None:
    replace(current)
    _log.info("%s: reloaded by process %s, registered extensions: %s", file, os.getpid(), len(current))


async def reload_on_hangup(
    hangups: SignalHandler, replace: Replace, file: Path | None, *, warns_of_short_secrets: bool
) -> None:
    """Reload the file after each hangup, until cancelled."""
    if file is None:
        return
    requested, loop = asyncio.Event(), asyncio.get_running_loop()
    hangups.set_callback(lambda: loop.call_soon_threadsafe(requested.set))
    try:
        while True:
            await requested.wait()
            requested.clear()
            current = await asyncio.to_thread(_read, file)  # in a thread, as the disk may be slow
            if current is None:
                continue
            _replace(replace, current, file)
            if warns_of_short_secrets:
                warn_of_short_secrets(current)
    finally:
        hangups.remove_callback()


def warn_of_short_secrets(current: Mapping[str, Extension]) -> None:
    """Log a warning per extension with a secret that is too short for HS256. Such secrets still work."""
    for extension in current.values():
        if any(len(secret) < _MIN_SECRET for secret in extension.secrets):
            _log.warning("%s: a secret is shorter than the %s bytes HS256 requires", extension.client_id, _MIN_SECRET)
