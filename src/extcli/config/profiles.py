"""The profiles file: reading it, and editing it. Each profile holds the settings of one deployment.

What an edit does not concern stays as written, comments included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os.path import exists, expanduser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.contract import user_files
from extcli.config import settings
from extcli.config.settings import FILE_KEYS, KEYS, PRODUCTION, SETTINGS, URL
from extcli.config.urls import may_be_one_service, same_address, socket_of
from extcli.errors import UsageError

if TYPE_CHECKING:
    from extcli.toml_file import TomlEdit

_HEADING = "# Deployments for `extcli -p NAME`. `extcli profile` and `extcli config` edit this file.\n"
_EXAMPLE = 'write it like [profiles.dev] and, below, url = "http://127.0.0.1:8282"'


@dataclass(frozen=True, slots=True)
class Profile:
    """The settings of one deployment."""

    name: str
    file: Path
    texts: Mapping[str, str]
    """The text of each key, as in the file."""
    production: bool = False

    def __str__(self) -> str:
        return f"profile {self.name} in {self.file}"

    def text(self, key: str) -> str | None:
        """Return the text of a setting. Paths are relative to the profiles file."""
        text = self.texts.get(key)
        return str(self.file.parent / expanduser(text)) if text and key in FILE_KEYS else text

    def is_at(self, address: str) -> bool:
        """Return whether the deployment has this URL or WebSocket address. A profile without a URL matches any."""
        return not self._addresses or any(same_address(address, each) for each in self._addresses)

    def may_be_at(self, address: str) -> bool:
        """Return whether a URL may be the deployment under another name. For warnings: true in case of doubt."""
        return any(may_be_one_service(address, each) for each in self._addresses)

    @property
    def _addresses(self) -> tuple[str, ...]:
        url = self.texts.get("url")
        return (url, self.texts.get("ws_url", socket_of(url))) if url else ()


class Profiles:
    """The profiles of one file, which may not exist."""

    def __init__(self, file: Path) -> None:
        """Raises `UsageError` if the file is invalid: also for unknown keys, values of the wrong type, and secrets."""
        self.file = file
        document = _document_of(file)
        _check_layout(file, document)
        self.default: str | None = document.get("profile")
        """The name of the profile to use when none is named."""
        self.by_name: dict[str, Profile] = {}
        for name, table in document.get("profiles", {}).items():
            _check_profile(file, name, table)
            texts = {key: value for key, value in table.items() if key != PRODUCTION}
            self.by_name[name] = Profile(name, file, texts, table.get(PRODUCTION, False))

    def named(self, name: str, origin: str) -> Profile:
        """Return the profile of this name. `origin` says where the name came from. Raises `UsageError`."""
        if name in self.by_name:
            return self.by_name[name]
        raise _not_found(self.file, f"{name!r} ({origin})", name, self.by_name)


def default_profile_name(file: Path) -> str | None:
    """Return the name of the default profile, even if the rest of the file is invalid."""
    name = _document_of(file).get("profile")
    return name if isinstance(name, str) else None


def _not_found(file: Path, asked: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a profile that is not in the file. `asked` is its name and where the name came from."""
    names = ", ".join(known)
    why = f"known profiles: {names}" if names else "the file has no profiles"
    fix = f"create it with `extcli profile add {name} --url URL`"
    return UsageError(f"no profile {asked} in {file}", why=why, fix=fix)


def _text_of(file: Path) -> str:
    """Return the file's text; empty if it does not exist. Raises `UsageError` if it cannot be read."""
    fix = "set EXTCLI_CONFIG to use another file"
    try:
        return user_files.text(file, user_files.MAX_CONFIGURATION_BYTES)
    except OSError as error:
        if not exists(file):
            return ""  # also where we may not look, such as in the home of another user
        raise UsageError(f"cannot read {file}: {error.strerror}", fix=fix) from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not TOML: not UTF-8 text", fix=fix) from None


def _document_of(file: Path) -> dict[str, Any]:
    """Read the file as TOML; without a file it is empty. Raises `UsageError`."""
    text = _text_of(file)
    if not text:
        return {}  # without importing a parser
    try:
        return user_files.parse_toml(text)
    except ValueError as error:  # invalid TOML, or a number with more digits than Python parses
        raise UsageError(f"{file} is not TOML: {str(error).splitlines()[0]}", fix=_EXAMPLE) from None
    except RecursionError:
        raise UsageError(f"{file} is nested too deeply", fix=_EXAMPLE) from None


def _check_layout(file: Path, document: Mapping[str, Any]) -> None:
    """Raise `UsageError` unless the document has a table for each profile, and perhaps the name of the default."""
    for key, value in document.items():
        if key == "profiles":
            if not (isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values())):
                raise UsageError(f"{file}: profiles must be a table of tables", fix=_EXAMPLE)
        elif key != "profile":
            raise UsageError(f"{file}: {key!r} is not a known key", fix=_EXAMPLE)
        elif not (isinstance(value, str) and value):
            raise UsageError(f"{file}: profile must be the name of a profile", fix='write it like profile = "dev"')


def _check_profile(file: Path, name: str, table: Mapping[str, Any]) -> None:
    """Raise `UsageError` for an invalid profile: also for a secret, which stands in a file of its own."""
    where = f"{file}: profiles.{name}"
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):  # the file or a shell would need quotes
        raise UsageError(f"{where}: {name!r} is not a valid profile name", fix="use letters, digits, - and _")
    for key, value in table.items():
        if key not in KEYS:
            raise UsageError(f"{where}.{key} is not a known key", fix=f"use one of {', '.join(KEYS)}")
        if key == PRODUCTION and not isinstance(value, bool):
            raise UsageError(f"{where}.{key} must be true or false", fix=f"write it like {key} = true")
        if key != PRODUCTION and (not isinstance(value, str) or not value or "\0" in value):
            raise UsageError(f"{where}.{key} must be a string", fix=f'put it in quotes, like {key} = "…", or remove it')
    _check_url(file, name, table)


def _check_url(file: Path, name: str, table: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a secret or token without the URL of the service that it opens."""
    if URL.key not in table and (key := next((key for key in FILE_KEYS if key in table), None)):
        what = f"{file}: profiles.{name}.{key} needs a {URL.key} in the same profile"
        raise UsageError(what, why="extcli uses it only at that URL", fix='write it like url = "https://…"')


# Edits. Errors in other profiles do not stop them


def add(file: Path, name: str, values: Mapping[str, str]) -> None:
    """Append a profile with these values. Raises `UsageError` if the name is taken or a value is invalid."""
    from extcli import atomic_file

    with atomic_file.write_errors(file):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _open_edit(file) as edit:
        if name in edit.document.get("profiles", {}):
            fix = f"change it with `extcli config set KEY VALUE -p {name}`"
            raise UsageError(f"{file}: profiles.{name} exists already", fix=fix)
        edit.append(name, {key: _typed_value(file, name, key, text) for key, text in values.items()})
        _check_profile(file, name, edit.document.unwrap()["profiles"][name])


def set_value(file: Path, name: str, key: str, text: str) -> None:
    """Change a setting of a profile. Raises `UsageError` if there is no such profile: the name may be a typo."""
    with _open_edit(file) as edit:
        _profile_table(file, edit, name)[key] = _typed_value(file, name, key, text)
        _check_profile(file, name, edit.document.unwrap()["profiles"][name])


def unset_value(file: Path, name: str, key: str) -> None:
    """Remove a key from a profile, even an invalid key."""
    with _open_edit(file) as edit:
        table = _profile_table(file, edit, name)
        if key not in table:
            raise UsageError(f"{file}: profiles.{name}.{key} is not set")
        del table[key]
        if key == URL.key:
            _check_url(file, name, table)


def use(file: Path, name: str) -> None:
    """Make a profile the default."""
    with _open_edit(file) as edit:
        _profile_table(file, edit, name)
        edit.document["profile"] = name


def remove(file: Path, name: str) -> None:
    """Remove a profile. If it was the default, no default remains."""
    with _open_edit(file) as edit:
        _profile_table(file, edit, name)
        del edit.document["profiles"][name]
        if not edit.document["profiles"]:
            del edit.document["profiles"]  # an empty table of tables cannot be written
        if edit.document.get("profile") == name:
            del edit.document["profile"]


def _typed_value(file: Path, name: str, key: str, text: str) -> str | bool:
    """Return a typed value as the file has it. Raises `UsageError` if the setting cannot have it."""
    where = f"{file}: profiles.{name}.{key}"
    if key == PRODUCTION and text in ("true", "false"):
        return text == "true"
    if key in FILE_KEYS and text:
        path = Path(expanduser(text)).absolute()
        content, origin = settings.read_secret_file(path, where), f"{path} ({where})"
        if key == settings.SECRET_FILE.key:
            settings.decoded_secret(content, origin)
        else:
            settings.header_word(content, origin, "token")
        return text if path == file.parent / text else str(path)
    if key in SETTINGS and text:
        SETTINGS[key].read(text, where)
    return text


def _open_edit(file: Path) -> AbstractContextManager[TomlEdit]:
    from extcli import toml_file

    def read() -> str:
        _check_layout(file, _document_of(file))
        return _text_of(file)

    return toml_file.edit_table(file, "profiles", read, _HEADING)


def _profile_table(file: Path, edit: TomlEdit, name: str) -> Any:
    """Return the table of a profile. Raises `UsageError` if there is none."""
    tables = edit.document.get("profiles", {})
    if name not in tables:
        raise _not_found(file, repr(name), name, tables)
    return tables[name]
