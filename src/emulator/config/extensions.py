"""The registered extensions: client ids, secrets and owners, read from the TOML file of `--extensions`."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from emulator.contract import user_files
from emulator.errors import ConfigurationError


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
        """Replaced, never mutated: a different object means that cached checks are stale."""
        self._admits_any = admits_any

    def replace(self, current: Mapping[str, Extension]) -> None:
        """Replace all extensions at once."""
        self.current = current

    def find(self, client_id: str) -> Extension | None:
        """Return the extension registered under a client id, or `None`."""
        return self.current.get(client_id)

    def admits(self, client_id: str) -> bool:
        """Whether the service accepts a client id (ruling A1)."""
        return self._admits_any or client_id in self.current


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECRET_KEYS = ("secrets", "secret_files", "secret_env")
_KEYS = (*_SECRET_KEYS, "owner_user_id", "tokens_not_before")


def read_extensions(path: Path, environ: Mapping[str, str] = os.environ) -> dict[str, Extension]:
    """Read the file; return extensions by client id. Raises `ConfigurationError`, one line without secrets."""
    try:
        document = user_files.decoded(_text(path, user_files.CONFIGURATION))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # invalid TOML or UTF-8, or an integer too long for Python
        raise ConfigurationError(f"{path}: is not TOML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: is nested too deeply") from None
    tables = document.get("extensions")
    if not isinstance(tables, dict) or not tables:
        raise ConfigurationError(f"{path}: extensions: has no table [extensions.<client id>]")
    return {client_id: _extension(path, client_id, table, environ) for client_id, table in tables.items()}


def _extension(path: Path, client_id: str, table: Any, environ: Mapping[str, str]) -> Extension:
    if not client_id.isprintable() or not client_id or " " in client_id:
        raise ConfigurationError(f"{path}: extensions.{client_id!r}: a client id must be printable, without spaces")
    where = f"{path}: extensions.{client_id}"
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where}: must be a table")
    for key in table:
        if key not in _KEYS:
            raise ConfigurationError(f"{where}.{key!r}: is not a known key (known: {', '.join(_KEYS)})")
    owner = table.get("owner_user_id")
    if owner is not None and not isinstance(owner, str):
        raise ConfigurationError(f"{where}.owner_user_id: must be a string")
    secrets = tuple(_secrets(path, where, table, environ))
    if not secrets:
        raise ConfigurationError(f"{where}: has no secret; add one of {', '.join(_SECRET_KEYS)}")
    return Extension(client_id, secrets, owner, _instant(f"{where}.tokens_not_before", table.get("tokens_not_before")))


def _instant(where: str, value: Any) -> int:
    """Convert a TOML time to Unix ms, rounded down; 0 if there is none."""
    if value is None:
        return 0
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ConfigurationError(f"{where}: must be a time with an offset, such as 2026-11-22T10:00:00Z")
    return (value - _EPOCH) // timedelta(milliseconds=1)


def _secrets(path: Path, where: str, table: dict[str, Any], environ: Mapping[str, str]) -> Iterator[bytes]:
    for index, text in enumerate(_strings(where, table, "secrets")):
        yield _decode(f"{where}.secrets[{index}]", text)
    for index, name in enumerate(_strings(where, table, "secret_files")):
        key = f"{where}.secret_files[{index}]"
        yield _decode(key, _read(key, path.parent / name))
    variable = table.get("secret_env")
    if variable is not None:
        if not isinstance(variable, str) or not environ.get(variable):
            raise ConfigurationError(f"{where}.secret_env: must name an environment variable that is set")
        yield _decode(f"{where}.secret_env", environ[variable].strip())


def _strings(where: str, table: dict[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigurationError(f"{where}.{key}: must be an array of strings")
    return value


def _read(where: str, file: Path) -> str:
    try:
        return _text(file, user_files.SECRET).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigurationError(f"{where}: {str(file)!r} cannot be read: {reason}") from None


def _text(path: Path, largest: int) -> str:
    return user_files.text(path, largest, pipes=True)


def _decode(where: str, text: str) -> bytes:
    try:
        secret = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ConfigurationError(f"{where}: is not base64") from None
    if not secret:
        raise ConfigurationError(f"{where}: is empty")
    return secret
