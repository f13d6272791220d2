"""The file of extensions is read again at a hangup (`kill -HUP`), and connections do not notice."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from emulator.config.extensions import Extensions, read_extensions
from emulator.errors import ConfigurationError
from emulator.server.signals import Signals

_log = logging.getLogger("emulator")
_SHORT = 32
"""Bytes that HS256 asks of a secret."""


def reread(extensions: Extensions, file: Path) -> bool:
    """Put what the file says now in force; a broken one is one line in the log, and changes nothing."""
    try:
        fresh = read_extensions(file)
    except ConfigurationError as error:
        _log.error("%s; the extensions stay as they were", error)
        return False
    extensions.replace(fresh)
    _log.info("%s: read again by process %s, registered extensions: %s", file, os.getpid(), len(fresh))
    return True


async def follow(hangups: Signals, extensions: Extensions, file: Path, *, warns: bool) -> None:
    """Read the file again at each hangup, one reading after the other, until cancelled."""
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    hangups.then(lambda: loop.call_soon_threadsafe(asked.set))
    try:
        while True:
            await asked.wait()
            asked.clear()
            # In a thread: the file may lie on a disk that is slow, and votes go on meanwhile.
            if await asyncio.to_thread(reread, extensions, file) and warns:
                warn_of_short_secrets(extensions)
    finally:
        hangups.no_more()


def warn_of_short_secrets(extensions: Extensions) -> None:
    """One line for each extension with a secret that is too short for HS256; it is taken all the same."""
    for extension in extensions.current.values():
        if any(len(secret) < _SHORT for secret in extension.secrets):
            _log.warning("%s: a secret is shorter than the %s bytes that HS256 asks for", extension.client_id, _SHORT)
