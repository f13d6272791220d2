"""Reloads the extensions file on SIGHUP, without interrupting connections."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from emulator.config.extensions import Extensions, read_extensions
from emulator.errors import ConfigurationError
from emulator.server.signals import SignalHandler

_log = logging.getLogger("emulator")
_MIN_SECRET = 32
"""Bytes that HS256 requires of a secret."""


def reload_extensions(extensions: Extensions, file: Path) -> bool:
    """Replace the extensions by those in the file. An invalid file is logged and ignored; returns False then."""
    try:
        current = read_extensions(file)
    except ConfigurationError as error:
        _log.error("%s; the extensions stay as they were", error)
        return False
    extensions.replace(current)
    _log.info("%s: reloaded by process %s, registered extensions: %s", file, os.getpid(), len(current))
    return True


async def reload_on_hangup(
    hangups: SignalHandler, extensions: Extensions, file: Path | None, *, warns_of_short_secrets: bool
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
            # In a thread, as the disk may be slow.
            if await asyncio.to_thread(reload_extensions, extensions, file) and warns_of_short_secrets:
                warn_of_short_secrets(extensions)
    finally:
        hangups.remove_callback()


def warn_of_short_secrets(extensions: Extensions) -> None:
    """Log a warning per extension with a secret that is too short for HS256. Such secrets still work."""
    for extension in extensions.current.values():
        if any(len(secret) < _MIN_SECRET for secret in extension.secrets):
            _log.warning("%s: a secret is shorter than the %s bytes HS256 requires", extension.client_id, _MIN_SECRET)
