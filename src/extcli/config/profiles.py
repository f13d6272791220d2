"""Reads the profiles file. Each profile holds the settings of one deployment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os.path import exists, expanduser
from pathlib import Path
from typing import Any

from emulator.contract import user_files
from extcli.config.settings import (
    CONTROL_TOKEN_FILE,
    FILE_KEYS,
    KEYS,
    PRODUCTION,
    SECRET_FILE,
    SETTINGS,
    TOKEN_FILE,
    URL,
)
from extcli.config.urls import may_be_one_service, same_address, socket_of
from extcli.errors import UsageError

_NEVER = {"secret": SECRET_FILE.key, "token": TOKEN_FILE.key, "control_token": CONTROL_TOKEN_FILE.key}
"""Keys that the file must not hold, and the key that names a file for them."""


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
        return str(self.file.parent / in_home(text)) if text and key in FILE_KEYS else text

    def is_of(self, address: str) -> bool:
        """Return whether the deployment has this URL or WebSocket address. A profile without a URL matches any."""
        return not self._addresses or any(same_address(address, each) for each in self._addresses)

    def may_be_of(self, address: str) -> bool:
        """Return whether a URL may be the deployment under another name. For warnings: true in case of doubt."""
        return any(may_be_one_service(address, each) for each in self._addresses)

    @property
    def _addresses(self) -> tuple[str, ...]:
        url = self.texts.get("url")
        return (url, self.texts.get("ws_url", socket_of(url))) if url else ()


class Profiles:
    """The profiles of one file, which may not exist."""

    def __init__(self, file: Path, document: Mapping[str, Any]) -> None:
        """Raises `UsageError` for unknown keys, values of the wrong type, and secrets."""
        self.file = file
        for key in document:
            check_no_secret(f"{file}: {key}", key)
            if key not in ("profile", "profiles"):
                raise UsageError(
                    f"{file}: {key!r} is not a known key",
                    fix="settings belong in a table [profiles.NAME]; the only other key is profile",
                )
        self.default = document.get("profile")
        """The name of the profile to use when none is named."""
        if self.default is not None and not (isinstance(self.default, str) and self.default):
            raise UsageError(f"{file}: profile must be the name of a profile", fix='write it like profile = "dev"')
        tables = document.get("profiles", {})
        if not isinstance(tables, dict):
            raise UsageError(f"{file}: profiles must be a table", fix="write one table [profiles.NAME] per profile")
        self.by_name = {name: _profile(file, name, table) for name, table in tables.items()}

    def named(self, name: str, origin: str) -> Profile:
        """Return the profile of this name. `origin` says where the name came from. Raises `UsageError`."""
        if name in self.by_name:
            return self.by_name[name]
        raise not_found(self.file, f"{name!r} ({origin})", name, self.by_name)


def in_home(text: str) -> Path:
    """Return the path with a home directory in place of `~` or `~USER`. It stays if there is no such user."""
    return Path(expanduser(text))


def not_found(file: Path, asked: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a profile that is not in the file. `asked` is its name and where the name came from."""
    names = ", ".join(known)
    why = f"known profiles: {names}" if names else "the file has no profiles"
    return UsageError(
        f"no profile {asked} in {file}", why=why, fix=f"create it with `extcli profile add {name} --url URL`"
    )


def read_profiles(file: Path) -> Profiles:
    """Read the file; without a file there are no profiles. Raises `UsageError`."""
    text = text_of(file)
    return Profiles(file, {} if text is None else document_of(file, text))


def text_of(file: Path) -> str | None:
    """Return the file's text, or `None` if it does not exist. Raises `UsageError` if it cannot be read."""
    try:
        return user_files.text(file, user_files.CONFIGURATION)
    except OSError as error:
        if not exists(file):
            return None  # also where we may not look, such as in the home of another user
        raise UsageError(f"cannot read {file}: {error.strerror}", fix="EXTCLI_CONFIG names another file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not TOML: not UTF-8 text", fix="EXTCLI_CONFIG names another file") from None


def document_of(file: Path, text: str) -> dict[str, Any]:
    """Parse the text as TOML."""
    fix = 'write it like [profiles.dev] and, below, url = "http://127.0.0.1:8282"'
    try:
        return user_files.decoded(text)
    except ValueError as error:  # invalid TOML, or a number with more digits than Python parses
        raise UsageError(f"{file} is not TOML: {str(error).splitlines()[0]}", fix=fix) from None
    except RecursionError:
        raise UsageError(f"{file} is nested too deeply", fix=fix) from None


def check_name(where: str, name: str) -> None:
    """Raise `UsageError` for a name that would need quotes in the file or in a shell."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise UsageError(f"{where}{name!r} is not a valid profile name", fix="use letters, digits, - and _")


def check_key(where: str, key: str) -> None:
    """Raise `UsageError` for a key that a profile cannot have, such as a secret."""
    check_no_secret(where, key)
    if key not in KEYS:
        raise UsageError(f"{where} is not a known key", fix=f"use one of {', '.join(KEYS)}")


def check_keys(where: str, table: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a secret or token without the URL of the service that it opens."""
    if URL.key not in table and (key := next((key for key in FILE_KEYS if key in table), None)):
        raise UsageError(
            f"{where}.{key} needs a {URL.key} in the same profile",
            why="it is sent to that service only",
            fix='write it like url = "https://…"',
        )


def check_no_secret(where: str, key: str) -> None:
    """Raise `UsageError` if this key would hold a secret or token itself."""
    if key in _NEVER:
        raise UsageError(
            f"{where}: a secret or token must not be in this file",
            why="configuration files are copied, shown and shared",
            fix=f"put it into a file that only you can read, and set {_NEVER[key]} to its path",
        )


def _profile(file: Path, name: str, table: Any) -> Profile:
    check_name(f"{file}: profiles: ", name)
    where = f"{file}: profiles.{name}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table", fix=f"write [profiles.{name}] and the keys below it")
    for key, value in table.items():
        check_key(f"{where}.{key}", key)
        if key == PRODUCTION and not isinstance(value, bool):
            raise UsageError(f"{where}.{key} must be true or false", fix=f"write it like {key} = true")
        if key in SETTINGS and not (isinstance(value, str) and value):
            raise UsageError(f"{where}.{key} must be text", fix=f'write it in quotes, like {key} = "…", or remove it')
        if key in FILE_KEYS and "\0" in value:
            raise UsageError(f"{where}.{key} must be a path without a null character", fix="write it without \\u0000")
    check_keys(where, table)
    texts = {key: value for key, value in table.items() if key != PRODUCTION}
    return Profile(name, file, texts, table.get(PRODUCTION, False))
