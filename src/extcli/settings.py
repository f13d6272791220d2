"""Where each value comes from: the flag, then the environment, then a default. `Sources` asks them in that order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from extcli import times
from extcli.addresses import SOCKET, checked_path, checked_url, socket_of
from extcli.errors import Misused

DEFAULT_URL = "http://127.0.0.1:8282"
DEFAULT_CLIENT_ID = "my-extension"
DEFAULT_CHANNEL = "1001"
DEFAULT_USER = "U1"
DEFAULT_PIN_PATH = "link/pin"
_DEFAULT_TIMEOUT = 30.0


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    PLAIN = "plain"
    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True)
class Flags:
    """The shared options as given on one level of the command line; `None` where not given."""

    url: str | None = None
    client_id: str | None = None
    acts_as: str | None = None
    channel: str | None = None
    token_file: Path | None = None
    output: Format | None = None
    timeout: str | None = None
    quiet: bool = False
    verbose: bool = False

    def over(self, outer: Flags) -> Flags:
        """These, and where nothing is given here, those given before the command's name."""
        return Flags(**{each.name: getattr(self, each.name) or getattr(outer, each.name) for each in fields(Flags)})


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a command acts as: `backend`, `viewer:U1`."""

    role: str
    user: str | None = None

    @classmethod
    def parse(cls, text: str, origin: str) -> Identity:
        role, _, user = text.partition(":")
        if not re.fullmatch(r"[A-Za-z_]+", role):
            raise Misused(f"{text!r} ({origin}) names no role", fix="write ROLE or ROLE:USER, for example viewer:U1")
        return cls(role, user or None)

    @property
    def spans_channels(self) -> bool:
        """Whether a token of this role may go without a channel, and then reads all of them (ruling A4)."""
        return self.role in ("admin", "backend")


class Sources:
    """Finds a setting. A profile will be one more place to ask, between the environment and the default."""

    def __init__(self, flags: Flags, environ: Mapping[str, str]) -> None:
        self.flags = flags
        self._environ = environ

    def variable(self, name: str) -> str | None:
        """An environment variable; set but empty counts as not set."""
        return self._environ.get(name) or None

    def find(self, flag: str | None, option: str, variable: str) -> tuple[str | None, str]:
        """The value, and the name of the place it was found in."""
        if flag:
            return flag, option
        return self.variable(variable), variable

    def url(self) -> str:
        text, origin = self.find(self.flags.url, "--url", "EXTCLI_URL")
        return checked_url(text, origin, like=DEFAULT_URL) if text else DEFAULT_URL

    def ws_url(self) -> str:
        """Where the socket is: beside the service, unless told for the service that the environment names."""
        text = None if self.flags.url else self.variable("EXTCLI_WS_URL")
        like = socket_of(DEFAULT_URL)
        return checked_url(text, "EXTCLI_WS_URL", schemes=SOCKET, like=like) if text else socket_of(self.url())

    def pin_path(self) -> str:
        """Where a PIN is requested, below `/v1/e/`: a deployment puts its own name into that path."""
        text = self.variable("EXTCLI_PIN_PATH")
        return checked_path(text, "EXTCLI_PIN_PATH") if text else DEFAULT_PIN_PATH

    def broadcast_method(self, *, post: bool) -> str:
        """By which method broadcasts are sent: GET as specified, or POST where that is all a deployment takes."""
        text = "POST" if post else (self.variable("EXTCLI_BROADCAST_METHOD") or "GET").upper()
        if text not in ("GET", "POST"):
            raise Misused(f"{text!r} (EXTCLI_BROADCAST_METHOD) is no way to broadcast", fix="GET or POST")
        return text

    def state_dir(self) -> Path | None:
        """Where to keep what outlives a command; `None` for the usual place on this platform."""
        text = self.variable("EXTCLI_STATE_DIR")
        return Path(text) if text else None

    def client_id(self) -> str:
        text, origin = self.find(self.flags.client_id, "--client-id", "EXTCLI_CLIENT_ID")
        return _one_word(text, origin, "a client id") if text else DEFAULT_CLIENT_ID

    def channel(self) -> str | None:
        """The channel asked for; `None` leaves it to the role: see `DEFAULT_CHANNEL`."""
        return self.find(self.flags.channel, "--channel", "EXTCLI_CHANNEL")[0]

    @property
    def names_somebody(self) -> bool:
        """Whether the user said whom to act as, by a role or by a token."""
        return bool(self.find(self.flags.acts_as, "--as", "EXTCLI_AS")[0] or self.token())

    def identity(self, default: str) -> Identity:
        text, origin = self.find(self.flags.acts_as, "--as", "EXTCLI_AS")
        return Identity.parse(text or default, origin)

    def timeout(self, default: float = _DEFAULT_TIMEOUT) -> float:
        """Seconds, never none at all."""
        text, origin = self.find(self.flags.timeout, "--timeout", "EXTCLI_TIMEOUT")
        if not text:
            return default
        try:
            return max(times.duration(text, bare="s"), 1) / 1000
        except Misused as error:
            raise Misused(f"{error.what} ({origin})", fix=error.fix) from None

    def format(self, *, terminal: bool) -> Format:
        text, origin = self.find(self.flags.output, "--output", "EXTCLI_OUTPUT")
        if not text:
            return Format.TABLE if terminal else Format.PLAIN
        if text not in list(Format):
            raise Misused(f"{text!r} ({origin}) is no output format", fix=f"one of {', '.join(Format)}")
        return Format(text)

    def token(self) -> str | None:
        """A ready-made token, unless the caller asked to be somebody by `--as`."""
        if self.flags.token_file:
            if self.flags.acts_as:
                raise Misused("--token-file and --as exclude each other", why="a token already says who it is")
            origin = f"{self.flags.token_file} (--token-file)"
            return _one_word(_read(self.flags.token_file, "--token-file"), origin, "a token")
        text = self.variable("EXTCLI_TOKEN")
        return _one_word(text.strip(), "EXTCLI_TOKEN", "a token") if text and not self.flags.acts_as else None

    def secret(self) -> bytes | None:
        """The extension's secret, decoded. Never an option: arguments show up in process lists and histories."""
        text, origin = self.variable("EXTCLI_SECRET"), "EXTCLI_SECRET"
        if not text:
            path, origin = self.variable("EXTCLI_SECRET_FILE"), "EXTCLI_SECRET_FILE"
            text = _read(Path(path), origin) if path else None
        return _decoded_secret(text, origin) if text is not None else None


def _one_word(text: str, origin: str, what: str) -> str:
    if not text:
        raise Misused(f"what {origin} holds is empty", fix="did the command that was to fill it fail?")
    if not re.fullmatch(r"[!-~]+", text):
        raise Misused(f"what {origin} holds is not {what}", why="it has spaces, line breaks or non-ASCII characters")
    return text


def _read(path: Path, origin: str) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "not a text file"
        raise Misused(f"{path} ({origin}) cannot be read", why=why) from None


def _decoded_secret(text: str, origin: str) -> bytes:
    import base64
    import binascii

    compact = "".join(text.split()).translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        secret = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not secret:
        # No cause is chained: it could quote the secret.
        raise Misused(f"{origin} is not base64", fix="use the secret exactly as it was handed out") from None
    return secret
