"""The file of registered extensions: its fields, and the source of each secret.

Errors are one line with file, line, column and field. None quotes a text of the file, which may be a secret.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from emulator.contract import positions, user_files
from emulator.contract.kinds import Field, ListOf, Simple, Table, Text
from emulator.contract.names import CLIENT_ID_RULE, is_client_id
from emulator.contract.positions import field_positions, nearest_position, path_text

SECRET_LISTS = ("secrets", "secret_files")
SECRET_FIELDS = (*SECRET_LISTS, "secret_env")
"""The keys for secrets, in the order in which the service tries them."""
NOT_BEFORE = "tokens_not_before"
"""The key for the time before which all links and issued tokens have ended."""


class InvalidExtensions(Exception):
    """Raised for an extensions file with which the service cannot start."""


class Secret(NamedTuple):
    """One secret of an extension."""

    key: str
    """One of `SECRET_FIELDS`."""
    name: str
    """The name of the file or the variable; empty for an inline secret."""
    value: bytes
    """Empty if the variable is not set."""


def _has_offset(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


_TIME = Simple("a time with an offset, such as 2026-11-22T10:00:00Z", _has_offset)
_SECRETS = ListOf(Text(), "strings", 1_000)
EXTENSION_TABLE = Table(
    {
        "secrets": Field(_SECRETS, "secrets in base64, newest first"),
        "secret_files": Field(_SECRETS, "paths, relative to this file, of files with one secret in base64 each"),
        "secret_env": Field(Text(), "the name of the environment variable with a secret in base64"),
        "owner_user_id": Field(Text(), "the user who owns the extension"),
        NOT_BEFORE: Field(_TIME, "links and tokens that the service issued before this time are invalid"),
    }
)
"""The table of one client id."""


@dataclass(frozen=True)
class ExtensionsFile:
    """A file whose tables are valid. Its secrets are read on demand."""

    path: Path
    text: str = field(repr=False)
    tables: dict[str, dict[str, Any]] = field(repr=False)
    """The table of each client id."""

    def secrets(self, client_id: str, environ: Mapping[str, str]) -> list[Secret]:
        """Return the secrets in the order in which the service tries them. Raises `InvalidExtensions`."""
        table, found = self.tables[client_id], []
        place = ("extensions", client_id)
        for key in SECRET_LISTS:
            is_file = key == "secret_files"
            for at, text in enumerate(table.get(key, ())):
                here = (*place, key, at)
                value = self._decode_secret(here, self._secret_text(here, text) if is_file else text)
                found.append(Secret(key, text if is_file else "", value))
        if (name := table.get("secret_env")) is not None:
            text = environ.get(name, "")
            value = self._decode_secret((*place, "secret_env"), text) if text else b""
            found.append(Secret("secret_env", name, value))
        if not found:
            raise self.error(place, f"has no secret; add one of {', '.join(SECRET_FIELDS)}")
        return found

    def check_not_empty(self) -> None:
        """Raise `InvalidExtensions` if the file has no extension."""
        if not self.tables:
            raise self.error(("extensions",), "has no table [extensions.<client id>]")

    def error(self, place: positions.Path, problem: str) -> InvalidExtensions:
        """Return the error about a field."""
        at = nearest_position(field_positions(self.text), place)
        return InvalidExtensions(f"{self.path}:{at.line}:{at.column}: {path_text(place)}: {problem}")

    def _secret_text(self, place: positions.Path, name: str) -> str:
        file = self.path.parent / name
        try:
            return user_files.text(file, user_files.SECRET, pipes=True)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not text"
            raise self.error(place, f"{str(file)!r} cannot be read: {reason}") from None

    def _decode_secret(self, place: positions.Path, text: str) -> bytes:
        try:
            secret = base64.b64decode(text.strip(), validate=True)
        except (binascii.Error, ValueError):
            raise self.error(place, "is not base64") from None
        if not secret:
            raise self.error(place, "is empty")
        return secret


def read_text(path: Path) -> str:
    """Return the file's text. Raises `InvalidExtensions`."""
    try:
        return user_files.text(path, user_files.MAX_CONFIGURATION_BYTES, pipes=True)
    except OSError as error:
        raise InvalidExtensions(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InvalidExtensions(f"{path}: is not TOML: not UTF-8 text") from None


def parse(path: Path, text: str) -> ExtensionsFile:
    """Return the file with this text, perhaps without extensions. Raises `InvalidExtensions` for its first error."""
    try:
        document = user_files.parse_toml(text)
    except ValueError as error:  # invalid TOML, or a number with more digits than Python parses
        raise InvalidExtensions(f"{path}: is not TOML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise InvalidExtensions(f"{path}: is nested too deeply") from None
    tables = document.get("extensions", {})
    file = ExtensionsFile(path, text, tables)
    if not isinstance(tables, dict):
        raise file.error(("extensions",), "must be a table")

    def refuse(place: positions.Path, problem: str) -> None:
        raise file.error(place, problem)

    for client_id, table in tables.items():
        if not is_client_id(client_id):
            refuse(("extensions", client_id), f"a client id must be {CLIENT_ID_RULE}")
        EXTENSION_TABLE.check(table, ("extensions", client_id), refuse)
    return file
