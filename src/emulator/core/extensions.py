"""The registered extensions: client ids, secrets and owners, read from the TOML file of `--extensions`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from emulator.contract.extensions_file import ExtensionsFile, InvalidExtensions, parse, read_text
from emulator.core.errors import ConfigurationError


@dataclass(frozen=True)
class Extension:
    """One registered extension. `secrets` are decoded, newest first; each of them verifies tokens."""

    client_id: str
    secrets: tuple[bytes, ...] = field(repr=False)
    owner_user_id: str | None = None
    tokens_not_before: int = 0
    """In Unix ms: links made before, and the tokens issued for them, have ended. 0 if none have."""


class Extensions:
    """The current extensions. SIGHUP replaces them, so look them up for each request."""

    def __init__(self, current: Mapping[str, Extension], *, admits_any: bool = False) -> None:
        self.current = current
        """Replaced as a whole, never mutated: a different object means that cached checks are stale."""
        self._admits_any = admits_any

    def find(self, client_id: str) -> Extension | None:
        """Return the extension registered under a client id, or `None`."""
        return self.current.get(client_id)

    def admits(self, client_id: str) -> bool:
        """Whether the service accepts a client id (ruling A1)."""
        return self._admits_any or client_id in self.current


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_extensions(path: Path, environ: Mapping[str, str] = os.environ) -> dict[str, Extension]:
    """Read the file; return extensions by client id. Raises `ConfigurationError`, one line without secrets."""
    try:
        file = parse(path, read_text(path))
        file.check_not_empty()
        return {client_id: _parse_extension(file, client_id, environ) for client_id in file.tables}
    except InvalidExtensions as error:
        raise ConfigurationError(str(error)) from None


def _parse_extension(file: ExtensionsFile, client_id: str, environ: Mapping[str, str]) -> Extension:
    table, secrets = file.tables[client_id], file.secrets(client_id, environ)
    if not all(each.value for each in secrets):
        raise file.error(("extensions", client_id, "secret_env"), "must name an environment variable that is set")
    not_before = (table.get("tokens_not_before", _EPOCH) - _EPOCH) // timedelta(milliseconds=1)
    return Extension(client_id, tuple(each.value for each in secrets), table.get("owner_user_id"), not_before)
