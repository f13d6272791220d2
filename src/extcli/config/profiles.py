"""The file of profiles, each the settings of one deployment: where it is, what it may say, and which one is chosen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os.path import exists
from pathlib import Path
from typing import Any

from extcli.config.settings import KEYS, PRODUCTION, SECRET_FILE, SETTINGS, TOKEN_FILE, URL
from extcli.config.urls import may_be_one_service, same_address, socket_of
from extcli.errors import UsageError

_FILES = (SECRET_FILE.key, TOKEN_FILE.key)
_NEVER = {"secret": SECRET_FILE.key, "token": TOKEN_FILE.key}
"""What never stands in the file, and the key that names where it is."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of one deployment."""

    name: str
    file: Path
    texts: Mapping[str, str]
    """By key, as it stands in the file."""
    production: bool = False

    def __str__(self) -> str:
        return f"profile {self.name} in {self.file}"

    def text(self, key: str) -> str | None:
        """What it says of a setting; the path of a file is seen from the file of profiles."""
        text = self.texts.get(key)
        return str(self.file.parent / Path(text).expanduser()) if text and key in _FILES else text

    def is_of(self, address: str) -> bool:
        """Whether this is an address of the deployment: its URL or its socket. One without a URL is of any."""
        return not self._addresses or any(same_address(address, each) for each in self._addresses)

    def may_be_of(self, address: str) -> bool:
        """Whether this may be an address of the deployment by another name, for warnings: it errs towards yes."""
        return any(may_be_one_service(address, each) for each in self._addresses)

    @property
    def _addresses(self) -> tuple[str, ...]:
        url = self.texts.get("url")
        return (url, self.texts.get("ws_url", socket_of(url))) if url else ()


class Profiles:
    """The profiles of one file, which need not be there."""

    def __init__(self, file: Path, document: Mapping[str, Any]) -> None:
        """Raises `UsageError` for what cannot be meant: unknown keys, values of other types, secrets."""
        self.file = file
        for key in document:
            check_no_secret(f"{file}: {key}", key)
            if key not in ("profile", "profiles"):
                raise UsageError(
                    f"{file}: {key!r}: is not a known key", fix="settings belong below [profiles.NAME]; known: profile"
                )
        self.default = document.get("profile")
        """The name of the one that is used when none is chosen."""
        if self.default is not None and not (isinstance(self.default, str) and self.default):
            raise UsageError(f"{file}: profile: must be the name of a profile", fix='write it like profile = "dev"')
        tables = document.get("profiles", {})
        if not isinstance(tables, dict):
            raise UsageError(f"{file}: profiles: must be a table", fix="write a table [profiles.NAME] for each")
        self.by_name = {name: _profile(file, name, table) for name, table in tables.items()}

    def named(self, name: str, origin: str) -> Profile:
        """The profile of this name; `origin` is what asked for it."""
        if name in self.by_name:
            return self.by_name[name]
        raise not_there(self.file, f"{name!r} ({origin})", name, self.by_name)


def not_there(file: Path, asked: str, name: str, there: Iterable[str]) -> UsageError:
    """The complaint about a profile that is not in the file; `asked` is its name, and what asked for it."""
    names = ", ".join(there)
    why = f"there are {names}" if names else "there are none"
    return UsageError(
        f"there is no profile {asked} in {file}", why=why, fix=f"`extcli profile add {name} --url URL` makes one"
    )


def file_of_profiles(named: str | None) -> Path:
    """The file that `EXTCLI_CONFIG` names, else that in the platform's place for the settings of programs."""
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_config_path("extcli", appauthor=False) / "config.toml"


def read_profiles(file: Path) -> Profiles:
    """What the file says; no profiles if there is no file."""
    text = text_of(file)
    return Profiles(file, {} if text is None else document_of(file, text))


def text_of(file: Path) -> str | None:
    """The file's text, `None` if it is not there; raises `UsageError` for what cannot be read."""
    try:
        return file.read_bytes().decode()
    except OSError as error:
        if not exists(file):
            return None  # nor where it cannot be looked for, as in the home of somebody else
        raise UsageError(f"{file}: cannot be read: {error.strerror}", fix="EXTCLI_CONFIG names another file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not TOML: it is not UTF-8 text", fix="EXTCLI_CONFIG names another file") from None


def document_of(file: Path, text: str) -> dict[str, Any]:
    """The text as TOML, which is only loaded here: most people have no such file."""
    import tomllib

    fix = 'write it like [profiles.dev] and, below, url = "http://127.0.0.1:8282"'
    try:
        return tomllib.loads(text)
    except ValueError as error:  # of TOML, or a number of more digits than Python reads
        raise UsageError(f"{file}: is not TOML: {str(error).splitlines()[0]}", fix=fix) from None
    except RecursionError:
        raise UsageError(f"{file}: is nested too deeply", fix=fix) from None


def check_name(where: str, name: str) -> None:
    """Raise `UsageError` for a name that would need quotes in the file or at a prompt."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise UsageError(f"{where}{name!r} is no name for a profile", fix="use letters, digits, - and _")


def check_key(where: str, key: str) -> None:
    """Raise `UsageError` for a key that a profile cannot have, and above all for a secret."""
    check_no_secret(where, key)
    if key not in KEYS:
        raise UsageError(f"{where}: is not a known key", fix=f"one of {', '.join(KEYS)}")


def check_keys(where: str, table: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a secret or token without the URL of the service that it opens."""
    if URL.key not in table and (key := next((key for key in _FILES if key in table), None)):
        raise UsageError(
            f"{where}.{key}: needs a {URL.key} beside it",
            why="it is for that service alone",
            fix='write it like url = "https://…"',
        )


def check_no_secret(where: str, key: str) -> None:
    """Raise `UsageError` if this key holds a secret or token itself."""
    if key in _NEVER:
        raise UsageError(
            f"{where}: a secret or token itself never stands in this file",
            why="such files are copied, shown and shared",
            fix=f"put it into a file that you alone can read, and name that by {_NEVER[key]}",
        )


def _profile(file: Path, name: str, table: Any) -> Profile:
    check_name(f"{file}: profiles: ", name)
    where = f"{file}: profiles.{name}"
    if not isinstance(table, dict):
        raise UsageError(f"{where}: must be a table", fix=f"write [profiles.{name}], and its keys below")
    for key, value in table.items():
        check_key(f"{where}.{key}", key)
        if key == PRODUCTION and not isinstance(value, bool):
            raise UsageError(f"{where}.{key}: must be true or false", fix=f"write it like {key} = true")
        if key in SETTINGS and not (isinstance(value, str) and value):
            raise UsageError(
                f"{where}.{key}: must be text", fix=f'write it in quotes, like {key} = "…", or leave it out'
            )
    check_keys(where, table)
    texts = {key: value for key, value in table.items() if key != PRODUCTION}
    return Profile(name, file, texts, table.get(PRODUCTION, False))
