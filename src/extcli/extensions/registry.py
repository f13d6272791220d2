"""Reads the extensions file as `extcli serve --extensions` does, and reports where secrets are.

The secrets themselves are checked but not returned.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from emulator.contract import extensions_file
from emulator.contract.extensions_file import NOT_BEFORE, ExtensionsFile, InvalidExtensions, Secret
from emulator.contract.limits import MIN_SECRET_BYTES
from extcli.errors import UsageError


def read_text(path: Path) -> str:
    """Return the file's text. Raises `UsageError`."""
    try:
        return extensions_file.read_text(path)
    except InvalidExtensions as error:
        is_absent = isinstance(error.__cause__, FileNotFoundError)
        fix = "create it with `extcli extension init --client-id ID`" if is_absent else ""
        raise UsageError(str(error), fix=fix) from None


def parsed(path: Path, text: str) -> ExtensionsFile:
    """Return the file with this text. Raises `UsageError` for unknown keys and values of the wrong type."""
    try:
        return extensions_file.parsed(path, text)
    except InvalidExtensions as error:
        raise UsageError(str(error)) from None


def registrations(path: Path, environ: Mapping[str, str] = os.environ) -> list[dict[str, Any]]:
    """Return a record of each extension in the order of the file, without its secrets.

    Raises `UsageError` if the service could not start with the file.
    """
    file = parsed(path, read_text(path))
    try:
        file.check_not_empty()
        return [_record(client_id, table, file.secrets(client_id, environ)) for client_id, table in file.tables.items()]
    except InvalidExtensions as error:
        raise UsageError(str(error), fix="`extcli extension rotate` makes a new secret") from None


def _record(client_id: str, table: Mapping[str, Any], found: Iterable[Secret]) -> dict[str, Any]:
    """Return an extension with the sources of its secrets, in the order in which the service tries them."""
    sources = [
        {"from": _KINDS[each.key], **({"name": each.name} if each.name else {}), "state": _state(each)}
        for each in found
    ]
    ended = {NOT_BEFORE: text_of(table[NOT_BEFORE])} if NOT_BEFORE in table else {}
    owner = table.get("owner_user_id")
    return {"client_id": client_id, "owner_user_id": owner, "secrets": len(sources), "sources": sources, **ended}


def text_of(instant: datetime) -> str:
    """Return a time as the file contains it: RFC 3339 in UTC, with milliseconds."""
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _state(secret: Secret) -> str:
    """Return `ok`, `short`, or `unset`: a variable that is not set here, but may be set for the service."""
    return "unset" if not secret.value else "ok" if len(secret.value) >= MIN_SECRET_BYTES else "short"


_KINDS = {"secrets": "inline", "secret_files": "file", "secret_env": "env"}
