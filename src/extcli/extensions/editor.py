"""Edits of the file of registered extensions. What they do not concern stays as it was written, comments included."""

from __future__ import annotations

import base64
import re
import secrets
import tomllib
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from extcli import atomic_file
from extcli.errors import UsageError
from extcli.extensions.registry import ENOUGH, LISTS, read_text, tables_of

_HEADING = "The extensions that `extcli serve --extensions` registers. `extcli extension` edits it."
_TRIED = (*LISTS, "secret_env")
"""The keys that bring secrets, in the order in which the service tries them."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What brings no secret any more, as a person would look for it."""

    key: str
    name: str
    """Of the file, which is left where it is, or of the variable."""

    def __str__(self) -> str:
        return self.name or f"one of {self.key}"


@dataclass(frozen=True, slots=True)
class Written:
    """What an edit has made."""

    secret: str
    file: Path | None
    """Where the secret is; `None` if it stands among the registrations."""
    dropped: list[Dropped]


def register(path: Path, client_id: str, *, owner: str | None, inline: bool) -> Written:
    """Add an extension with a fresh secret, at the end; makes the file if there is none."""
    before = read_text(path) if path.exists() else None
    tables = tables_of(path, before or "")
    if client_id in tables:
        fix = f"`extcli extension rotate --client-id {client_id}` gives it a fresh secret"
        raise UsageError(f"{path}: extensions.{client_id}: is registered already", fix=fix)
    addition, extensions, table = tomlkit.document(), tomlkit.table(is_super_table=True), tomlkit.table()
    written = _with_secret(path, client_id, table, inline=inline)
    if owner is not None:
        table["owner_user_id"] = owner
    addition["extensions"] = extensions.append(client_id, table)
    above = before or f"# {_HEADING}\n"
    gap = "\n" if above.endswith("\n") else "\n\n"
    text = f"{above}{gap}{tomlkit.dumps(addition)}"
    _save(path, before, text, tables | {client_id: table.unwrap()}, made=written.file)
    return written


def rotate(path: Path, client_id: str, *, keep: int) -> Written:
    """Put a fresh secret before the others, of which as many are kept, the newest, as told."""
    before = read_text(path)
    document, table = _registered(path, before, client_id)
    dropped = _drop(table, keep)
    written = _with_secret(path, client_id, table, inline="secrets" in table, dropped=dropped)
    _save(path, before, tomlkit.dumps(document), _tables(document), made=written.file)
    return written


def retire(path: Path, client_id: str) -> list[Dropped]:
    """Keep the newest secret alone; returns the others, none if it was alone already."""
    before = read_text(path)
    document, table = _registered(path, before, client_id)
    dropped = _drop(table, keep=1)
    if dropped:
        _save(path, before, tomlkit.dumps(document), _tables(document))
    return dropped


def _registered(path: Path, text: str, client_id: str) -> tuple[tomlkit.TOMLDocument, Any]:
    """The file for editing, and the extension's table in it."""
    tables = tables_of(path, text)
    if client_id not in tables:
        known = f"registered are {', '.join(tables)}" if tables else "nothing is registered"
        raise UsageError(f"{path}: extensions.{client_id}: is not registered", why=known)
    document = _editable(path, text)
    extensions: Any = document["extensions"]
    return document, extensions[client_id]


def _tables(document: tomlkit.TOMLDocument) -> dict[str, Any]:
    extensions: Any = document["extensions"]
    tables: dict[str, Any] = extensions.unwrap()
    return tables


def _drop(table: Any, keep: int) -> list[Dropped]:
    dropped = []
    for key in _TRIED:
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


def _with_secret(
    path: Path, client_id: str, table: Any, *, inline: bool, dropped: list[Dropped] | None = None
) -> Written:
    """Put a fresh secret in front, where the service tries it first."""
    secret = base64.b64encode(secrets.token_bytes(ENOUGH)).decode()
    file = None if inline else _written(path, client_id, secret)
    key, value = ("secret_files", file.name) if file else ("secrets", secret)
    if key in table and "\n" in table[key].as_string():
        table[key].insert(0, value)  # each on a line of its own, maybe with a comment
    else:
        table[key] = [value, *table.get(key, [])]
    return Written(secret, file, dropped or [])


def _written(path: Path, client_id: str, secret: str) -> Path:
    """A new file beside the registrations; one that is there is somebody's."""
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
    raise AssertionError("numbers do not end")


def _editable(path: Path, text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise UsageError(f"{path}: is not TOML: {str(error).splitlines()[0]}") from None


def _save(path: Path, before: str | None, text: str, meant: dict[str, Any], *, made: Path | None = None) -> None:
    """Write the edited file, unless it does not say what was meant, or somebody else was faster; `made` goes then."""
    try:
        if not _says(text, meant):
            raise UsageError(
                f"{path}: extensions: is laid out in a way that cannot be edited here",
                fix="write a table [extensions.<client id>] for each",
            )
        if (read_text(path) if path.exists() else None) != before:
            raise UsageError(f"{path}: was changed by somebody else meanwhile", fix="run the command again")
        atomic_file.replace(path, text)
    except BaseException as error:
        if made:
            made.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise atomic_file.cannot_be_written(path, error) from None
        raise


def _says(text: str, tables: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text).get("extensions") == tables
    except ValueError:
        return False
