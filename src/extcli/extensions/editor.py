"""Edits the extensions file. Everything that an edit does not concern stays, comments included."""

from __future__ import annotations

import base64
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import tomlkit

from emulator.contract import user_files
from emulator.contract.extensions_file import LISTS, NOT_BEFORE, SECRETS
from emulator.contract.limits import MIN_SECRET_BYTES
from extcli import atomic_file, toml_edit
from extcli.errors import UsageError
from extcli.extensions.registry import parsed, read_text, text_of

_HEADING = "# The extensions that `extcli serve --extensions` registers. `extcli extension` edits this file.\n"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A source of a secret that is no longer used."""

    key: str
    name: str
    """The name of the variable, or of the file, which is not deleted; empty for an inline secret."""

    def __str__(self) -> str:
        return self.name or f"one of {self.key}"


@dataclass(frozen=True, slots=True)
class Written:
    """The result of an edit."""

    secret: str
    file: Path | None
    """The file of the secret; `None` if the secret is inline."""
    dropped: list[Dropped]


@toml_edit.in_turn
def register(path: Path, client_id: str, *, owner: str | None, inline: bool) -> Written:
    """Append an extension with a new secret. Creates the file if necessary. Raises `UsageError`."""
    before = read_text(path) if path.exists() else None
    tables = parsed(path, before or "").tables
    if client_id in tables:
        raise UsageError(
            f"{path}: extensions.{client_id} is registered already",
            fix=f"give it a new secret with `extcli extension rotate --client-id {client_id}`",
        )
    addition, extensions, table = tomlkit.document(), tomlkit.table(is_super_table=True), tomlkit.table()
    written = _add_secret(path, client_id, table, inline=inline)
    if owner is not None:
        table["owner_user_id"] = owner
    addition["extensions"] = extensions.append(client_id, table)
    text = toml_edit.append(before or _HEADING, addition)
    _save(path, text, tables | {client_id: table.unwrap()}, new_file=written.file)
    return written


@toml_edit.in_turn
def rotate(path: Path, client_id: str, *, keep: int) -> Written:
    """Put a new secret before the others, and keep only the `keep` newest of them. Raises `UsageError`."""
    before = read_text(path)
    document, table = _registered(path, before, client_id)
    dropped = _drop(table, keep)
    written = _add_secret(path, client_id, table, inline="secrets" in table, dropped=dropped)
    _save(path, tomlkit.dumps(document), _tables(document), new_file=written.file)
    return written


@toml_edit.in_turn
def retire(path: Path, client_id: str) -> list[Dropped]:
    """Drop all secrets but the newest, and return them. Raises `UsageError`."""
    before = read_text(path)
    document, table = _registered(path, before, client_id)
    dropped = _drop(table, keep=1)
    if dropped:
        _save(path, tomlkit.dumps(document), _tables(document))
    return dropped


@toml_edit.in_turn
def revoke_all(path: Path, client_id: str, *, now: int) -> str:
    """End all links and issued tokens made until `now`, in Unix ms; return the time written. Raises `UsageError`."""
    before = read_text(path)
    document, table = _registered(path, before, client_id)
    instant = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=now + 1)
    text = text_of(max(instant, table.get(NOT_BEFORE, instant)))
    table[NOT_BEFORE] = tomlkit.value(text)
    _save(path, tomlkit.dumps(document), _tables(document))
    return text


def _registered(path: Path, text: str, client_id: str) -> tuple[tomlkit.TOMLDocument, Any]:
    """Return the file, parsed for editing, and the table of the extension."""
    tables = parsed(path, text).tables
    if client_id not in tables:
        known = f"registered: {', '.join(tables)}" if tables else "the file has no extensions"
        raise UsageError(f"{path}: extensions.{client_id} is not registered", why=known)
    document = toml_edit.parse(path, text)
    extensions: Any = document["extensions"]
    return document, extensions[client_id]


def _tables(document: tomlkit.TOMLDocument) -> dict[str, Any]:
    extensions: Any = document["extensions"]
    tables: dict[str, Any] = extensions.unwrap()
    return tables


def _drop(table: Any, keep: int) -> list[Dropped]:
    dropped = []
    for key in SECRETS:
        values = list(table.get(key, [])) if key in LISTS else [table[key]] if key in table else []
        kept, gone = values[:keep], values[keep:]
        keep -= len(kept)
        dropped += [Dropped(key, "" if key == "secrets" else str(value)) for value in gone]
        if key in LISTS:
            for index in range(len(values) - 1, len(kept) - 1, -1):
                del table[key][index]
        elif gone:
            del table[key]
    return dropped


def _add_secret(
    path: Path, client_id: str, table: Any, *, inline: bool, dropped: list[Dropped] | None = None
) -> Written:
    """Put a new secret first in its list, so that the service tries it first."""
    secret = base64.b64encode(secrets.token_bytes(MIN_SECRET_BYTES)).decode()
    file = None if inline else _write_secret(path, client_id, secret)
    key, value = ("secret_files", file.name) if file else ("secrets", secret)
    if key in table and "\n" in table[key].as_string():
        table[key].insert(0, value)  # one entry per line, which may have comments
    else:
        table[key] = [value, *table.get(key, [])]
    return Written(secret, file, dropped or [])


def _write_secret(path: Path, client_id: str, secret: str) -> Path:
    """Write the secret to a new file next to the file of extensions. Never overwrites a file."""
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", client_id)[:100].lstrip(".") or "extension"
    for number in count(1):
        file = path.with_name(f"{stem}.secret" if number == 1 else f"{stem}.{number}.secret")
        try:
            atomic_file.write_new(file, f"{secret}\n", owned_like=path)
        except FileExistsError:
            continue
        except OSError as error:
            raise atomic_file.cannot_be_written(file, error) from None
        return file
    raise AssertionError("count() is infinite")


def _save(path: Path, text: str, intended: dict[str, Any], *, new_file: Path | None = None) -> None:
    """Save the edited file. If that fails, delete the new file of the secret."""
    try:
        as_intended = user_files.decoded(text).get("extensions") == intended
    except ValueError:
        as_intended = False
    try:
        toml_edit.save(path, text, table="extensions", as_intended=as_intended)
    except BaseException:
        if new_file:
            new_file.unlink(missing_ok=True)
        raise
