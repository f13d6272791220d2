"""Edits of the file of profiles. What they do not concern stays as it was written, comments and mistakes included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from extcli import atomic_file
from extcli.config.profiles import check_key, check_keys, check_name, document_of, not_found, text_of
from extcli.config.secret_lookup import check_file, remark_on
from extcli.config.settings import PRODUCTION, SECRET_FILE, SETTINGS, TOKEN_FILE, URL
from extcli.errors import UsageError

_DIRECTORY_MODE = 0o700
_HEADING = "# Deployments that `extcli -p NAME` chooses from. `extcli profile` and `extcli config` edit it.\n"


def add(file: Path, name: str, values: Mapping[str, str]) -> None:
    """A new profile, at the end, of texts by key. Raises `UsageError` if one of that name is there."""
    check_name("", name)
    before = text_of(file)
    meant = _document(file, before)
    tables = _tables(file, meant)
    if name in tables:
        fix = f"`extcli config set KEY VALUE -p {name}` changes it"
        raise UsageError(f"{file}: profiles.{name}: is there already", fix=fix)
    table = {key: _checked(file, name, key, text) for key, text in values.items()}
    addition = tomlkit.document()
    addition["profiles"] = tomlkit.table(is_super_table=True).append(name, table)
    above = _HEADING if before is None else before
    gap = "" if not above else "\n" if above.endswith("\n") else "\n\n"
    _save(file, before, f"{above}{gap}{tomlkit.dumps(addition)}", meant | {"profiles": tables | {name: table}})


def set_value(file: Path, name: str, key: str, text: str) -> None:
    """Give a setting of a profile another value. A profile that is not there is not made: its name may be a typo."""
    _named(file, _document(file, text_of(file)), name)
    value = _checked(file, name, key, text)

    def put(document: Any) -> None:
        document["profiles"][name][key] = value
        if key in (SECRET_FILE.key, TOKEN_FILE.key):
            check_keys(f"{file}: profiles.{name}", document["profiles"][name])

    _edit(file, put)


def unset_value(file: Path, name: str, key: str) -> None:
    """Take a key out of a profile, one that should not be there too."""

    def take_out(document: Any) -> None:
        table = _named(file, document, name)
        if key not in table:
            said = f"it has {', '.join(table)}" if table else "it says nothing"
            raise UsageError(f"{file}: profiles.{name}.{key}: is not set", why=said)
        del table[key]
        if key == URL.key:
            check_keys(f"{file}: profiles.{name}", table)

    _edit(file, take_out)


def use(file: Path, name: str) -> None:
    """Make a profile the one that is used when none is chosen."""

    def put(document: Any) -> None:
        _named(file, document, name)
        document["profile"] = name

    _edit(file, put)


def remove(file: Path, name: str) -> bool:
    """Take out a profile; returns whether it was the one that is used when none is chosen: then none is now."""
    was_default = _document(file, text_of(file)).get("profile") == name

    def take_out(document: Any) -> None:
        _named(file, document, name)
        del document["profiles"][name]
        if was_default:
            del document["profile"]

    _edit(file, take_out)
    return was_default


def file_meant(file: Path, text: str) -> Path:
    """The file that a path names: at a prompt it is seen from the working directory, else from the file of profiles."""
    here, there = Path(text).expanduser().absolute(), file.parent / text
    return there if there.exists() and not here.exists() else here


def remarks_on(file: Path, values: Mapping[str, str]) -> list[str]:
    """What to say of these values of a profile: that others may read its secret."""
    named = [file_meant(file, text) for key, text in values.items() if key in (SECRET_FILE.key, TOKEN_FILE.key)]
    return [remark for each in named if (remark := remark_on(each))]


def chosen_in(file: Path) -> str | None:
    """The name of the profile that is used when none is chosen, whatever else the file says."""
    name = _document(file, text_of(file)).get("profile")
    return name if isinstance(name, str) else None


def _checked(file: Path, name: str, key: str, text: str) -> str | bool:
    """The value to be written. Raises `UsageError` for what would be refused when it is read."""
    where = f"{file}: profiles.{name}.{key}"
    check_key(where, key)
    if not text:
        raise UsageError(f"{where}: must not be empty", fix=f"leave it out; `extcli config unset {key}` takes it out")
    if key == PRODUCTION:
        if text not in ("true", "false"):
            raise UsageError(f"{where}: must be true or false", fix=f"`extcli config set {key} true`")
        return text == "true"
    if key in (SECRET_FILE.key, TOKEN_FILE.key):
        return _found_file(file, key, text, where)
    SETTINGS[key].read(text, where)
    return text


def _found_file(file: Path, key: str, text: str, where: str) -> str:
    """The path as the file has to say it."""
    path = file_meant(file, text)
    check_file(key, path, where)
    return text if path == file.parent / text else str(path)


def _document(file: Path, text: str | None) -> dict[str, Any]:
    return document_of(file, text or "")


def _tables(file: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    tables = document.get("profiles", {})
    if not isinstance(tables, dict):
        raise UsageError(f"{file}: profiles: must be a table", fix="write a table [profiles.NAME] for each")
    return tables


def _named(file: Path, document: Any, name: str) -> Any:
    tables = document.get("profiles", {})
    if not isinstance(tables, Mapping) or name not in tables:
        raise not_found(file, repr(name), name, tables if isinstance(tables, Mapping) else ())
    if not isinstance(tables[name], Mapping):
        raise UsageError(
            f"{file}: profiles.{name}: must be a table", fix=f"write [profiles.{name}], and its keys below"
        )
    return tables[name]


def _edit(file: Path, change: Callable[[Any], None]) -> None:
    """Make a change to what the file says, and the same to how it is written."""
    before = text_of(file)
    meant = deepcopy(_document(file, before))
    change(meant)
    try:
        written = tomlkit.parse(before or "")
        change(written)
    except TOMLKitError as error:
        raise UsageError(f"{file}: is not TOML: {str(error).splitlines()[0]}") from None
    _save(file, before, tomlkit.dumps(written), meant)


def _save(file: Path, before: str | None, text: str, meant: dict[str, Any]) -> None:
    """Write the edited file, unless it does not say what was meant, or somebody else was faster."""
    if not _says(file, text, meant):
        fix = "write a table [profiles.NAME] for each"
        raise UsageError(f"{file}: profiles: is laid out in a way that cannot be edited here", fix=fix)
    if text_of(file) != before:
        raise UsageError(f"{file}: was changed by somebody else meanwhile", fix="run the command again")
    try:
        file.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        atomic_file.replace(file, text)
    except OSError as error:
        raise atomic_file.cannot_be_written(file, error) from None


def _says(file: Path, text: str, meant: dict[str, Any]) -> bool:
    try:
        said = document_of(file, text)
    except UsageError:
        return False
    return {"profiles": {}} | said == {"profiles": {}} | meant
