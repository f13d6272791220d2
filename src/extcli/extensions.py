"""The extensions file: reading it as `extcli serve --extensions` does, and editing it.

What an edit does not concern stays, comments included. Secrets are checked, but only a new one is returned.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.contract import extensions_file
from emulator.contract.extensions_file import NOT_BEFORE, SECRET_LISTS, ExtensionsFile, InvalidExtensions, Secret
from emulator.contract.limits import MIN_SECRET_BYTES
from extcli.config import settings
from extcli.errors import UsageError

if TYPE_CHECKING:
    from extcli.toml_file import TomlEdit

_HEADING = "# The extensions that `extcli serve --extensions` registers. `extcli extension` edits this file.\n"
_DROPPED_TEXTS = {"secrets": "an inline secret", "secret_files": "{}; its file was not deleted", "secret_env": "{}"}
_SOURCE_NAMES = {"secrets": "inline", "secret_files": "file", "secret_env": "env"}


def read_file(path: Path) -> ExtensionsFile:
    """Return the file. Raises `UsageError`, also for unknown keys and values of the wrong type."""
    with _usage_errors():
        return extensions_file.parse(path, extensions_file.read_text(path))


def list_extensions(path: Path) -> list[dict[str, Any]]:
    """Return a record of each extension in the order of the file, without its secrets.

    Raises `UsageError` if the service could not start with the file.
    """
    file = read_file(path)
    with _usage_errors("`extcli extension rotate` makes a new secret"):
        file.check_not_empty()
        tables = file.tables.items()
        return [_record(client_id, table, file.secrets(client_id, os.environ)) for client_id, table in tables]


@contextmanager
def _usage_errors(fix: str = "") -> Iterator[None]:
    """Turn `InvalidExtensions` into `UsageError`."""
    try:
        yield
    except InvalidExtensions as error:
        is_absent = isinstance(error.__cause__, FileNotFoundError)
        fix = "create it with `extcli extension init --client-id ID`" if is_absent else fix
        raise UsageError(str(error), fix=fix) from None


def _record(client_id: str, table: Mapping[str, Any], found: Iterable[Secret]) -> dict[str, Any]:
    """Return an extension with the sources of its secrets, in the order in which the service tries them."""
    sources: list[dict[str, str]] = []
    for each in found:
        name = {"name": each.name} if each.name else {}
        sources.append({"from": _SOURCE_NAMES[each.key], **name, "state": _secret_state(each)})
    ended = {NOT_BEFORE: _instant_text(table[NOT_BEFORE])} if NOT_BEFORE in table else {}
    owner = table.get("owner_user_id")
    return {"client_id": client_id, "owner_user_id": owner, "secrets": len(sources), "sources": sources, **ended}


def _instant_text(instant: datetime) -> str:
    """Return a time as the file contains it: RFC 3339 in UTC, with milliseconds."""
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _secret_state(secret: Secret) -> str:
    """Return `ok`, `short`, or `unset`: a variable that is not set here, but may be set for the service."""
    return "unset" if not secret.value else "ok" if len(secret.value) >= MIN_SECRET_BYTES else "short"


# Edits


@dataclass(frozen=True, slots=True)
class NewSecret:
    """The result of an edit."""

    secret: str
    file: Path | None
    """The file of the secret; `None` if the secret is inline."""
    dropped: Sequence[str] = ()
    """The sources of secrets that are no longer used."""


def register(path: Path, client_id: str, *, owner: str | None, inline: bool) -> NewSecret:
    """Append an extension with a new secret. Creates the file if necessary. Raises `UsageError`."""
    with _edit_file(path, client_id, is_new=True) as edit:
        table: dict[str, Any] = {}
        written = _add_secret(edit, path, client_id, table, inline=inline)
        edit.append(client_id, table | ({} if owner is None else {"owner_user_id": owner}))
    return written


def rotate(path: Path, client_id: str, *, keep: int) -> NewSecret:
    """Put a new secret before the others, and keep only the `keep` newest of them. Raises `UsageError`."""
    with _edit_file(path, client_id) as edit:
        table = edit.document["extensions"][client_id]
        dropped = _drop_old_secrets(table, keep)
        return _add_secret(edit, path, client_id, table, inline="secrets" in table, dropped=dropped)


def retire(path: Path, client_id: str) -> list[str]:
    """Drop all secrets but the newest, and return them. Raises `UsageError`."""
    with _edit_file(path, client_id) as edit:
        return _drop_old_secrets(edit.document["extensions"][client_id], keep=1)


def revoke_all(path: Path, client_id: str, *, now: int) -> str:
    """End all links and issued tokens made until `now`, in Unix ms; return the time written. Raises `UsageError`."""
    import tomlkit

    with _edit_file(path, client_id) as edit:
        table = edit.document["extensions"][client_id]
        instant = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=now + 1)
        text = _instant_text(max(instant, table.get(NOT_BEFORE, instant)))
        table[NOT_BEFORE] = tomlkit.value(text)
    return text


def _edit_file(path: Path, client_id: str, *, is_new: bool = False) -> AbstractContextManager[TomlEdit]:
    """Return an edit of a file, which must have this extension; or, if it `is_new`, must not."""
    from extcli import toml_file

    def read() -> str:
        if is_new and not path.exists():
            return ""
        file = read_file(path)
        tables = file.tables
        if is_new and client_id in tables:
            fix = f"give it a new secret with `extcli extension rotate --client-id {client_id}`"
            raise UsageError(f"{path}: extensions.{client_id} is already registered", fix=fix)
        if not is_new and client_id not in tables:
            known = f"registered: {', '.join(tables)}" if tables else "the file has no extensions"
            raise UsageError(f"{path}: extensions.{client_id} is not registered", why=known)
        return file.text

    return toml_file.edit_table(path, "extensions", read, _HEADING)


def _drop_old_secrets(table: Any, keep: int) -> list[str]:
    """Remove all secrets but the `keep` newest, and return them in words."""
    dropped: list[str] = []
    for key in extensions_file.SECRET_FIELDS:
        found = list(table.get(key, ())) if key in SECRET_LISTS else [table[key]] if key in table else []
        gone = found[keep:]
        if gone and key in SECRET_LISTS:
            del table[key][keep:]
        elif gone:
            del table[key]
        keep -= len(found) - len(gone)
        dropped += [_DROPPED_TEXTS[key].format(each) for each in gone]
    return dropped


def _add_secret(
    edit: TomlEdit, path: Path, client_id: str, table: Any, *, inline: bool, dropped: Sequence[str] = ()
) -> NewSecret:
    """Put a new secret first in its list, so that the service tries it first."""
    secret = settings.random_secret()
    file = None if inline else _write_secret(path, client_id, secret)
    edit.created += [file] if file else []
    key, value = ("secret_files", file.name) if file else ("secrets", secret)
    if key in table and "\n" in table[key].as_string():
        table[key].insert(0, value)  # one entry per line, which may have comments
    else:
        table[key] = [value, *table.get(key, [])]
    return NewSecret(secret, file, dropped)


def _write_secret(path: Path, client_id: str, secret: str) -> Path:
    """Write the secret to a new file next to the file of extensions. Never overwrites a file."""
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", client_id)[:100].lstrip(".") or "extension"
    names = (f"{stem}.secret" if number == 1 else f"{stem}.{number}.secret" for number in count(1))
    file = next(each for each in map(path.with_name, names) if not each.exists())
    settings.write_secret(file, secret, owned_like=path)
    return file
