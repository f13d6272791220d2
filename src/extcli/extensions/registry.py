"""Reads the extensions file as `extcli serve --extensions` does, and reports where secrets are.

The secrets themselves are checked but not returned.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from emulator.contract import user_files
from emulator.contract.limits import MIN_SECRET_BYTES
from extcli.errors import UsageError

LISTS = ("secrets", "secret_files")
SECRETS = (*LISTS, "secret_env")
"""The keys for secrets, in the order in which the service tries them."""
NOT_BEFORE = "tokens_not_before"
"""The key for the time before which all links and issued tokens have ended."""
KEYS = (*SECRETS, "owner_user_id", NOT_BEFORE)


@dataclass(frozen=True, slots=True)
class Source:
    """Where one secret of an extension comes from."""

    kind: str
    """`inline`, `file` or `env`."""
    name: str
    """The name of the file or the variable."""
    state: str
    """`ok`, `short`, or `unset`: a variable that is not set here, but may be set for the service."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One extension, with the sources of its secrets in the order in which the service tries them."""

    client_id: str
    owner: str | None
    sources: tuple[Source, ...]
    not_before: datetime | None
    """All links and tokens that the service issued before this time have ended."""


def read_text(path: Path) -> str:
    """Return the file's text. Raises `UsageError`."""
    try:
        return user_files.text(path, user_files.CONFIGURATION, pipes=True)
    except OSError as error:
        absent = isinstance(error, FileNotFoundError)
        fix = "create it with `extcli extension init --client-id ID`" if absent else ""
        raise UsageError(f"cannot read {path}: {error.strerror}", fix=fix) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not TOML: not UTF-8 text") from None


def tables_of(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """Return the table of each client id. Raises `UsageError` for unknown keys and values of the wrong type."""
    try:
        document = user_files.decoded(text)
    except ValueError as error:  # invalid TOML, or a number with more digits than Python parses
        raise UsageError(f"{path} is not TOML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply") from None
    tables = document.get("extensions", {})
    if not isinstance(tables, dict):
        raise UsageError(f"{path}: extensions must be a table")
    for client_id, table in tables.items():
        _check(f"{path}: extensions.{client_id}", table)
    return tables


def registrations(path: Path, environ: Mapping[str, str] = os.environ) -> list[Registration]:
    """Return the extensions in the order of the file. Raises `UsageError` if the service could not start with it."""
    tables = tables_of(path, read_text(path))
    if not tables:
        raise UsageError(f"{path} has no table [extensions.<client id>]")
    return [
        Registration(
            client_id,
            table.get("owner_user_id"),
            tuple(_sources(path, client_id, table, environ)),
            table.get(NOT_BEFORE),
        )
        for client_id, table in tables.items()
    ]


def text_of(instant: datetime) -> str:
    """Return a time as the file contains it: RFC 3339 in UTC, with milliseconds."""
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _check(where: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table")
    for key, value in table.items():
        if key not in KEYS:
            raise UsageError(f"{where}.{key!r} is not a known key (known: {', '.join(KEYS)})")
        if key in LISTS and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise UsageError(f"{where}.{key} must be an array of strings")
        if key == NOT_BEFORE:
            if not isinstance(value, datetime) or value.tzinfo is None:
                raise UsageError(f"{where}.{key} must be a time with an offset, such as 2026-11-22T10:00:00Z")
        elif key not in LISTS and not isinstance(value, str):
            raise UsageError(f"{where}.{key} must be a string")


def _sources(path: Path, client_id: str, table: dict[str, Any], environ: Mapping[str, str]) -> Iterator[Source]:
    where = f"{path}: extensions.{client_id}"
    if not any(table.get(key) for key in SECRETS):
        raise UsageError(
            f"{where} has no secret", fix=f"create one with `extcli extension rotate --client-id {client_id}`"
        )
    for index, text in enumerate(table.get("secrets", [])):
        yield Source("inline", "", _state(f"{where}.secrets[{index}]", text))
    for index, name in enumerate(table.get("secret_files", [])):
        key = f"{where}.secret_files[{index}]"
        yield Source("file", name, _state(key, _content(key, path.parent / name)))
    if name := table.get("secret_env"):
        text = environ.get(name, "")
        yield Source("env", name, _state(f"{where}.secret_env", text) if text else "unset")


def _content(where: str, file: Path) -> str:
    try:
        return user_files.text(file, user_files.SECRET, pipes=True)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise UsageError(f"{where}: cannot read {str(file)!r}: {why}") from None


def _state(where: str, text: str) -> str:
    try:
        secret = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise UsageError(f"{where} is not base64") from None
    if not secret:
        raise UsageError(f"{where} is empty")
    return "ok" if len(secret) >= MIN_SECRET_BYTES else "short"
