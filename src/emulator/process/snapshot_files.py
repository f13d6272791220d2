"""Loads a snapshot when the service starts, and saves one when it stops. Imported only with these options."""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from emulator.app import Service
from emulator.core.config.settings import Settings
from emulator.core.errors import BadRequest, ConfigurationError, EngineError, ExportFailed

_PIECE = 256 * 1024
_log = logging.getLogger("emulator")

Open = Callable[[Path], AbstractContextManager[BinaryIO]]


@dataclass(frozen=True)
class SnapshotFiles:
    """The files of `--import` and `--export-on-exit`."""

    source: Path | None
    target: Path | None
    opened: Open
    """Opens a file to read; raises `OSError`."""
    written: Open
    """Opens a file that replaces the one at its path at the end of the block; raises `OSError`."""

    def check(self, settings: Settings) -> None:
        """Raise `ConfigurationError` if these options cannot work, before anything starts."""
        if not settings.environment.has_control:
            option = "--export-on-exit" if self.source is None else "--import"
            raise ConfigurationError(f"{option}: --production takes no snapshots")
        if self.source is not None and not self._starts_empty and not self.source.is_file():
            raise ConfigurationError(f"--import {self.source}: there is no such file")
        if self.target is not None:
            folder = self.target.resolve().parent
            is_writable = folder.is_dir() and os.access(folder, os.W_OK)
            if self.target.is_dir() or not is_writable:
                raise ConfigurationError(f"--export-on-exit {self.target}: cannot write a file there")

    async def load(self, service: Service) -> None:
        """Load the file into the service. Raises `ConfigurationError` with the line of the first mistake."""
        if self.source is None:
            return
        if self._starts_empty:
            _log.info("%s does not exist yet; starting without it", self.source)
            return
        try:
            loaded = await service.snapshots.load(self._chunks(self.source))
        except BadRequest as error:
            raise ConfigurationError(f"--import {self.source}: {'; '.join(error.details)}") from None
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or "the compressed file is damaged or incomplete"
            raise ConfigurationError(f"--import {self.source}: {reason}") from None
        _log.info("imported %s records from %s", f"{sum(loaded.counts.values()):,}", self.source)

    async def save(self, service: Service) -> None:
        """Save the service's data to the file. If saving fails, the file is unchanged. Raises `ExportFailed`."""
        if self.target is None:
            return
        try:
            with self.written(self.target) as file:
                async for chunk in service.snapshots.save(keys=False):
                    file.write(chunk)
        except (OSError, EngineError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ExportFailed(f"--export-on-exit {self.target}: {reason}; the file was not changed") from None
        _log.info("exported all data to %s", self.target)

    @property
    def _starts_empty(self) -> bool:
        """Whether the file to import does not exist yet because the first run will export it."""
        if self.source is None or self.target is None or self.source.exists():
            return False
        return self.source.resolve() == self.target.resolve()

    async def _chunks(self, path: Path) -> AsyncIterator[bytes]:
        with self.opened(path) as file:
            while piece := file.read(_PIECE):
                yield piece
