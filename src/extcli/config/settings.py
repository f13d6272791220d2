"""Every setting: its key in a profile, its variable, its option, and how to parse it. And the files of secrets."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from stat import S_IRGRP, S_IROTH, S_ISREG
from typing import Any, Generic, TypeVar

from emulator.contract import user_files
from emulator.contract.limits import MIN_SECRET_BYTES
from emulator.contract.names import Role
from emulator.contract.shell import quote_word
from extcli.config.flags import DEFAULT_CLIENT_ID as DEFAULT_CLIENT_ID
from extcli.config.flags import DEFAULT_URL as DEFAULT_URL
from extcli.config.flags import Flags
from extcli.config.urls import SOCKET, checked_path, checked_url, socket_of
from extcli.errors import UsageError, shortened
from extcli.output import times
from extcli.output.format import Format

ROLES = tuple(map(str, Role))
DEFAULT_CHANNEL = "1001"
DEFAULT_USER = "U1"
DEFAULT_PIN_PATH = "link/pin"
_LONGEST_TIMEOUT = 24 * 86_400_000
"""In ms; a socket of the operating system waits at most 24.8 days."""

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Identity:
    """The role and user that a command acts as: `backend`, `viewer:U1`."""

    role: str
    user: str | None = None

    @classmethod
    def parse(cls, text: str, origin: str) -> Identity:
        """Parse `ROLE` or `ROLE:USER`. Raises `UsageError` for an unknown role, which a service takes for a viewer."""
        role, colon, user = text.partition(":")
        if role not in ROLES:
            fix = f"use {', '.join(ROLES[:-1])} or {ROLES[-1]}; ROLE:USER also names the user, for example viewer:U1"
            raise UsageError(f"{shortened(role)!r} ({origin}) is not a role", fix=fix)
        if colon and not user:
            raise UsageError(f"{text!r} ({origin}) names no user", fix=f"write {role}:USER, or {role} alone")
        return cls(role, user or None)

    def __str__(self) -> str:
        return f"{self.role}:{self.user}" if self.user else self.role

    @property
    def spans_channels(self) -> bool:
        """Whether a token of this role may omit the channel, and then reads all channels (ruling A4)."""
        return self.role in ("admin", "backend")


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """One setting."""

    key: str
    """Its name in a profile and in `extcli config`."""
    read: Callable[[str, str], T_co]
    """Parses the text. The second argument names its origin in the `UsageError`."""
    variable: str = ""
    option: str = ""
    default: T_co | None = None
    """`None` if each command chooses one."""

    def option_value(self, flags: Flags) -> str | None:
        """Return the value of the setting's command-line option, if given. It may be empty."""
        given: Any = getattr(flags, "acts_as" if self.key == "as" else self.key, None)
        return None if given is None else str(given)


def header_word(text: str, origin: str, what: str) -> str:
    """Return the text if it fits in a header: printable ASCII without spaces. Raises `UsageError`."""
    if not text:
        raise UsageError(f"{origin} is empty", fix=f"check the command that writes the {what}")
    if not re.fullmatch(r"[!-~]+", text):
        raise UsageError(f"{origin} is not a valid {what}", why="it has spaces, line breaks or non-ASCII characters")
    return text


def _not_empty(text: str, origin: str) -> str:
    if not text:
        raise UsageError(f"{origin} is empty", fix="give a value, or leave it out")
    return text


def _seconds(text: str, origin: str) -> float:
    try:
        length = times.parse_duration(text, bare="s")
    except UsageError as error:
        raise UsageError(f"{error.what} ({origin})", fix=error.fix) from None
    return min(max(length, 1), _LONGEST_TIMEOUT) / 1000


def _format(text: str, origin: str) -> Format:
    if text not in list(Format):
        fix = "use table, plain (tab-separated), json, jsonl or csv; `status` and `connect env` also take env"
        raise UsageError(f"{text!r} ({origin}) is not an output format", fix=fix)
    return Format(text)


def _method(text: str, origin: str) -> str:
    if text.upper() not in ("GET", "POST"):
        raise UsageError(f"{text!r} ({origin}) is not a broadcast method", fix="use GET or POST")
    return text.upper()


_client_id = partial(header_word, what="client id")

URL = Setting("url", partial(checked_url, like=DEFAULT_URL), "EXTCLI_URL", "--url", DEFAULT_URL)
WS_URL = Setting("ws_url", partial(checked_url, schemes=SOCKET, like=socket_of(DEFAULT_URL)), "EXTCLI_WS_URL")
CLIENT_ID = Setting("client_id", _client_id, "EXTCLI_CLIENT_ID", "--client-id", DEFAULT_CLIENT_ID)
ACTS_AS = Setting("as", Identity.parse, "EXTCLI_AS", "--as")
CHANNEL = Setting("channel", _not_empty, "EXTCLI_CHANNEL", "--channel")
SECRET_FILE = Setting("secret_file", lambda text, _: Path(text), "EXTCLI_SECRET_FILE")
TOKEN_FILE = Setting("token_file", lambda text, _: Path(text), option="--token-file")
CONTROL_TOKEN_FILE = Setting("control_token_file", lambda text, _: Path(text), "EXTCLI_CONTROL_TOKEN_FILE")
PIN_PATH = Setting("pin_path", checked_path, "EXTCLI_PIN_PATH", default=DEFAULT_PIN_PATH)
BROADCAST_METHOD = Setting("broadcast_method", _method, "EXTCLI_BROADCAST_METHOD", default="GET")
OUTPUT = Setting("output", _format, "EXTCLI_OUTPUT", "--output")
TIMEOUT = Setting("timeout", _seconds, "EXTCLI_TIMEOUT", "--timeout", 30.0)

FILES = (SECRET_FILE, TOKEN_FILE, CONTROL_TOKEN_FILE)
FILE_KEYS = frozenset(each.key for each in FILES)
"""The keys of files with secrets."""
SERVICE_SETTINGS = (URL, WS_URL, CLIENT_ID, *FILES, ACTS_AS, CHANNEL, PIN_PATH, BROADCAST_METHOD)
SETTINGS: dict[str, Setting[object]] = {each.key: each for each in (*SERVICE_SETTINGS, OUTPUT, TIMEOUT)}
"""Every setting that a profile may hold as text, by key."""
PRODUCTION = "production"
"""The one boolean key of a profile: whether to ask before data is lost there."""
KEYS = (*SETTINGS, PRODUCTION)

VARIABLES = {
    URL.variable: "The service's address",
    WS_URL.variable: "The WebSocket's address; by default derived from EXTCLI_URL",
    CLIENT_ID.variable: "The extension's client id",
    ACTS_AS.variable: "The identity to act as: ROLE or ROLE:USER",
    CHANNEL.variable: "The channel",
    "EXTCLI_SECRET": "The extension's secret, in base64",
    SECRET_FILE.variable: "A file with the extension's secret",
    "EXTCLI_TOKEN": "A ready-made token",
    "EXTCLI_CONTROL_TOKEN": "The control token of an emulator on another machine or in a container",
    CONTROL_TOKEN_FILE.variable: "A file with the control token",
    "EXTCLI_PROFILE": "The profile to use",
    OUTPUT.variable: "The output format: table, plain, json, jsonl or csv",
    TIMEOUT.variable: "The timeout, such as 5s or 2m",
    PIN_PATH.variable: "The path below /v1/e/ that issues PINs",
    BROADCAST_METHOD.variable: "The method of broadcasts: GET or POST",
    "EXTCLI_CONFIG": "The profiles file",
    "EXTCLI_STATE_DIR": "The folder with stored links",
}
"""Every variable that commands read, with its meaning. The variables of `serve` are declared with its options."""


# The files of secrets and tokens


def read_secret_file(file: Path, label: str) -> str:
    """Return the text of a file. `label` names the setting. Raises `UsageError`."""
    try:
        return user_files.text(file, user_files.SECRET, pipes=True).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "not a text file"
        raise UsageError(f"cannot read {file} ({label})", why=why) from None


def decoded_secret(text: str, origin: str) -> bytes:
    """Return the secret that a text in base64 stands for. Raises `UsageError`."""
    try:
        secret = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        secret = b""
    if not secret:
        # The cause is not chained, as it could quote the secret.
        raise UsageError(f"{origin} is not base64", fix="use the secret exactly as Twitch shows it") from None
    return secret


def random_secret() -> str:
    """Return a new secret in base64."""
    return base64.b64encode(os.urandom(MIN_SECRET_BYTES)).decode()


def write_secret(file: Path, secret: str, *, owned_like: Path | None = None) -> None:
    """Write a secret in base64 to a new file with mode 0600. Raises `UsageError`."""
    from extcli import atomic_file

    with atomic_file.write_errors(file):
        atomic_file.create_private(file, f"{secret.strip()}\n", owned_like=owned_like or file.parent)


def permission_warning(file: Path) -> str:
    """Return a warning if other users can read this file, which holds a secret or token; otherwise an empty string."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return ""
    # A pipe, as in `<(pass show …)`, belongs to this user. On Windows the mode means nothing.
    if os.name != "posix" or not S_ISREG(mode) or not mode & (S_IRGRP | S_IROTH):
        return ""
    return f"other users can read {file}: chmod 600 {quote_word(str(file))}"
