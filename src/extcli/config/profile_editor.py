"""Edits the profiles file. Everything that an edit does not concern stays as written, comments and errors included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tomlkit

from extcli import atomic_file, toml_edit
from extcli.config.profiles import check_key, check_keys, check_name, document_of, in_home, not_found, text_of
from extcli.config.secret_lookup import check_file, permission_warning
from extcli.config.settings import FILE_KEYS, PRODUCTION, SETTINGS, URL
from extcli.errors import UsageError

_DIRECTORY_MODE = 0o700
_HEADING = "# Deployments for `extcli -p NAME`. `extcli profile` and `extcli config` edit this file.\n"


def add(file: Path, name: str, values: Mapping[str, str]) -> None:
    """Append a profile with these values. Raises `UsageError` if the name is taken or a value is invalid."""
    check_name("", name)
    with atomic_file.write_errors(file):
        file.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    _append(file, name, values)


@toml_edit.in_turn
def _append(file: Path, name: str, values: Mapping[str, str]) -> None:
    before = text_of(file)
    intended = document_of(file, before or "")
    tables = intended.get("profiles", {})
    if not isinstance(tables, dict):
        raise UsageError(f"{file}: profiles must be a table", fix="write one table [profiles.NAME] per profile")
    if name in tables:
        raise UsageError(
            f"{file}: profiles.{name} exists already", fix=f"change it with `extcli config set KEY VALUE -p {name}`"
        )
    table = {key: _checked_value(file, name, key, text) for key, text in values.items()}
    addition = tomlkit.document()
    addition["profiles"] = tomlkit.table(is_super_table=True).append(name, table)
    text = toml_edit.append(_HEADING if before is None else before, addition)
    _save(file, text, intended | {"profiles": tables | {name: table}})


@toml_edit.in_turn
def set_value(file: Path, name: str, key: str, text: str) -> None:
    """Change a setting of a profile. Raises `UsageError` if there is no such profile: the name may be a typo."""
    _profile_in(file, document_of(file, text_of(file) or ""), name)
    value = _checked_value(file, name, key, text)

    def put(document: Any) -> None:
        document["profiles"][name][key] = value
        if key in FILE_KEYS:
            check_keys(f"{file}: profiles.{name}", document["profiles"][name])

    _edit(file, put)


@toml_edit.in_turn
def unset_value(file: Path, name: str, key: str) -> None:
    """Remove a key from a profile, even an invalid key."""

    def take_out(document: Any) -> None:
        table = _profile_in(file, document, name)
        if key not in table:
            why = f"it has {', '.join(table)}" if table else "the profile is empty"
            raise UsageError(f"{file}: profiles.{name}.{key} is not set", why=why)
        del table[key]
        if key == URL.key:
            check_keys(f"{file}: profiles.{name}", table)

    _edit(file, take_out)


@toml_edit.in_turn
def use(file: Path, name: str) -> None:
    """Make a profile the default."""

    def put(document: Any) -> None:
        _profile_in(file, document, name)
        document["profile"] = name

    _edit(file, put)


@toml_edit.in_turn
def remove(file: Path, name: str) -> bool:
    """Remove a profile, and return whether it was the default. If so, no default remains."""
    was_default = default_in(file) == name

    def take_out(document: Any) -> None:
        _profile_in(file, document, name)
        del document["profiles"][name]
        if was_default:
            del document["profile"]

    _edit(file, take_out)
    return was_default


def default_in(file: Path) -> str | None:
    """Return the name of the default profile, even if the rest of the file is invalid."""
    name = document_of(file, text_of(file) or "").get("profile")
    return name if isinstance(name, str) else None


def permission_warnings(file: Path, values: Mapping[str, str]) -> list[str]:
    """Return a warning for each file of a secret or token in these values that other users may read."""
    named = [_resolved(file, text) for key, text in values.items() if key in FILE_KEYS]
    return [warning for each in named if (warning := permission_warning(each))]


def _resolved(file: Path, text: str) -> Path:
    """Resolve a typed path: relative to the working directory or, if no file is there, to the profiles file."""
    here, there = in_home(text).absolute(), file.parent / text
    return there if there.exists() and not here.exists() else here


def _checked_value(file: Path, name: str, key: str, text: str) -> str | bool:
    """Return the value to write. Raises `UsageError` for a value that would be invalid in the file."""
    where = f"{file}: profiles.{name}.{key}"
    check_key(where, key)
    if not text:
        raise UsageError(f"{where} must not be empty", fix=f"leave it out, or remove it: `extcli config unset {key}`")
    if key == PRODUCTION:
        if text not in ("true", "false"):
            raise UsageError(f"{where} must be true or false", fix=f"`extcli config set {key} true`")
        return text == "true"
    if key in FILE_KEYS:
        path = _resolved(file, text)
        check_file(key, path, where)
        return text if path == file.parent / text else str(path)
    SETTINGS[key].read(text, where)
    return text


def _profile_in(file: Path, document: Any, name: str) -> Any:
    tables = document.get("profiles", {})
    if not isinstance(tables, Mapping) or name not in tables:
        raise not_found(file, repr(name), name, tables if isinstance(tables, Mapping) else ())
    if not isinstance(tables[name], Mapping):
        raise UsageError(
            f"{file}: profiles.{name} must be a table", fix=f"write [profiles.{name}] and the keys below it"
        )
    return tables[name]


def _edit(file: Path, change: Callable[[Any], None]) -> None:
    """Apply a change to the parsed file and to its text, and save the text if both results agree."""
    before = text_of(file) or ""
    intended = document_of(file, before)
    change(intended)
    edited = toml_edit.parse(file, before)
    change(edited)
    _save(file, tomlkit.dumps(edited), intended)


def _save(file: Path, text: str, intended: dict[str, Any]) -> None:
    try:
        as_intended = {"profiles": {}} | document_of(file, text) == {"profiles": {}} | intended
    except UsageError:
        as_intended = False
    toml_edit.save(file, text, table="profiles", as_intended=as_intended)
