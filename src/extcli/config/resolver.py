"""Resolves each setting: the option, then the environment, then the chosen profile, then a default.

A profile named on the command line (`-p NAME`) counts as an option: its settings come before the environment.
`Resolver.find` does that for every setting alike. Addresses need more care: a WebSocket address belongs to one service
only, and so do a profile's secret and token.

With `-p live --url http://other`, the command goes to another service, by mistake or on purpose. That service must not
receive a token that is valid for live. So a profile's token, and tokens signed with its secret, go to the profile's own
addresses only. Tokens and secrets from options and variables are used for any address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from extcli.config import settings
from extcli.config.flags import Flags, by_precedence, profiles_file
from extcli.config.profiles import Profile, Profiles
from extcli.config.settings import Identity, Setting, header_word
from extcli.config.urls import socket_of
from extcli.errors import UsageError
from extcli.output.printer import write_stderr

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Source(IntEnum):
    """Where a value was found, in order of precedence."""

    FLAG = 1
    NAMED_PROFILE = 2
    """The profile of `-p NAME`."""
    VARIABLE = 3
    PROFILE = 4
    """The profile of `EXTCLI_PROFILE`, or the file's default."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T_co]):
    """A value, and where it was found."""

    value: T_co = field(repr=False)
    source: Source
    origin: str
    """`--url`, `EXTCLI_URL`, `profile live in /home/me/.config/extcli/config.toml`."""
    key: str

    @property
    def label(self) -> str:
        """The source's name for error messages; for a profile, with the key."""
        return f"{self.key} of {self.origin}" if self.in_profile else self.origin

    @property
    def in_profile(self) -> bool:
        return self.source in (Source.NAMED_PROFILE, Source.PROFILE)


class Resolver:
    """Finds the value of each setting."""

    def __init__(self, flags: Flags, environ: Mapping[str, str]) -> None:
        self.flags = flags
        self.checked_files: set[Path] = set()
        """Files whose permissions have been checked: one warning is enough."""
        self._environ = environ

    def variable(self, name: str) -> str | None:
        """Return an environment variable. An empty variable counts as not set."""
        return self._environ.get(name) or None

    def find(self, setting: Setting[T]) -> Found[T] | None:
        """Return the value with the highest precedence. Raises `UsageError` if it or the profile is invalid."""
        if (text := setting.option_value(self.flags)) is not None:
            return Found(setting.read(text, setting.option), Source.FLAG, setting.option, setting.key)
        first, second = by_precedence(self.in_variable, self.in_profile, is_named=bool(self.flags.profile))
        return first(setting) or second(setting)

    def in_variable(self, setting: Setting[T]) -> Found[T] | None:
        """Return the value of the setting's environment variable. Raises `UsageError` if it is invalid."""
        if text := self.variable(setting.variable):
            return Found(setting.read(text, setting.variable), Source.VARIABLE, setting.variable, setting.key)
        return None

    def in_profile(self, setting: Setting[T]) -> Found[T] | None:
        """Return the value in the chosen profile. Raises `UsageError` if it or the profile is invalid."""
        if self.profile and (text := self.profile.text(setting.key)):
            value = setting.read(text, f"{setting.key} of {self.profile}")
            source = Source.NAMED_PROFILE if self.flags.profile else Source.PROFILE
            return Found(value, source, str(self.profile), setting.key)
        return None

    def value(self, setting: Setting[T], default: T | None = None) -> T:
        """Return the value with the highest precedence, or the default. Raises `UsageError` like `find`."""
        found = self.find(setting)
        value = found.value if found else setting.default if default is None else default
        assert value is not None, f"{setting.key} has no default: use `find`"
        return value

    # The profile

    @cached_property
    def profiles_file(self) -> Path:
        """The path of the profiles file, which may not exist."""
        return Path(profiles_file(self._environ))

    @cached_property
    def profiles(self) -> Profiles:
        """The content of the profiles file."""
        return Profiles(self.profiles_file)

    @property
    def named_profile(self) -> tuple[str, str] | None:
        """The profile named by --profile or EXTCLI_PROFILE, and which of the two. The file's default does not count."""
        if self.flags.profile is not None:
            return self.flags.profile, "--profile"
        name = self.variable("EXTCLI_PROFILE")
        return (name, "EXTCLI_PROFILE") if name else None

    def choose_profile(self) -> None:
        """Load the chosen profile now, so that every command reports a missing one."""
        _ = self.profile

    def ignore_profiles(self) -> None:
        """Ignore all profiles from now on."""
        self.profile = None

    @cached_property
    def profile(self) -> Profile | None:
        """The chosen profile. Raises `UsageError` if it does not exist, or if the file is invalid."""
        if asked := self.named_profile:
            return self.profiles.named(*asked)
        default = self.profiles.default
        return self.profiles.named(default, "the key profile") if default else None

    def production(self) -> Profile | None:
        """Return the production profile that this command would change: the one named, or any with the same address.

        A named profile counts even if the address comes from elsewhere, which may be another name of its service.
        """
        chosen = self.profile
        if chosen and chosen.production and (self.named_profile or "url" not in chosen.texts):
            return chosen
        there = (each for each in self.profiles.by_name.values() if each.production)
        return next((each for each in there if each.may_be_at(self.url()) or each.may_be_at(self.ws_url())), None)

    # Addresses

    def url(self) -> str:
        return self.value(settings.URL)

    def configured_ws_url(self) -> Found[str] | None:
        """Return the configured WebSocket address; `None` means the default, derived from the URL.

        An address from a source of lower precedence than the URL belongs to another service, unless that source has the
        same URL.
        """
        url, socket = self.find(settings.URL), self.find(settings.WS_URL)
        if url and socket and socket.source > url.source:
            named = self.profile if socket.in_profile else None
            return socket if named and "url" in named.texts and named.is_at(url.value) else None
        return socket

    def ws_url(self) -> str:
        """Return the WebSocket address."""
        found = self.configured_ws_url()
        return found.value if found else socket_of(self.url())

    def broadcast_method(self, *, post: bool) -> str:
        """Return the method for broadcasts: GET as specified, or POST for deployments that accept nothing else."""
        return "POST" if post else self.value(settings.BROADCAST_METHOD)

    # How a command behaves

    def timeout(self, default: float | None = None) -> float:
        """Return the timeout in seconds, above zero; the command may have a default of its own."""
        return self.value(settings.TIMEOUT, default)

    # Who it acts as

    def client_id(self) -> str:
        return self.value(settings.CLIENT_ID)

    def channel(self) -> str | None:
        """Return the configured channel; `None` means the role's default, see `DEFAULT_CHANNEL`."""
        found = self.find(settings.CHANNEL)
        return found.value if found else None

    def identity(self, default: str) -> Identity:
        return self.value(settings.ACTS_AS, Identity.parse(default, "the command's default"))

    # Secrets and tokens. `to` is the address that gets them, by default the service

    def find_token(self, to: str | None = None) -> Found[str | Path] | None:
        """Return the ready-made token, or the path of its file.

        `--as` excludes tokens from the environment and from the profile. `EXTCLI_AS`, or a secret in the environment,
        excludes the profile's. If the profile is named on the command line, its own identity or secret excludes the
        token in the environment.
        """
        flags = self.flags
        if flags.token_file and flags.acts_as:
            raise UsageError("--token-file and --as exclude each other", why="a token already has a role and a user")
        if flags.token_file:
            return Found(flags.token_file, Source.FLAG, "--token-file", "token")
        if flags.acts_as:
            return None
        given, own = self._in_text_variable("EXTCLI_TOKEN", "token"), self._own_file(settings.TOKEN_FILE, to)
        if flags.profile:
            identity = self.in_profile(settings.ACTS_AS) or self._own_file(settings.SECRET_FILE, to)
            return own if own or identity else given
        has_other = any(map(self.variable, ("EXTCLI_AS", "EXTCLI_SECRET", "EXTCLI_SECRET_FILE")))
        return given or (None if has_other else own)

    def find_secret(self, to: str | None = None) -> Found[str | Path] | None:
        """Return the secret that signs tokens, or the path of its file.

        There is no option for it, because arguments are visible in process lists and shell histories.
        """
        return self._find_value_or_file("EXTCLI_SECRET", settings.SECRET_FILE, to)

    def token(self, to: str | None = None) -> str | None:
        """Return the token that `find_token` finds, read from its file if necessary. Raises `UsageError`."""
        found = self.find_token(to)
        return None if found is None else header_word(self._read_text(found), _secret_label(found), "token")

    def secret(self, to: str | None = None) -> bytes | None:
        """Return the secret that `find_secret` finds, decoded. Raises `UsageError`."""
        found = self.find_secret(to)
        return None if found is None else settings.decoded_secret(self._read_text(found), found.label)

    def control_token(self) -> str | None:
        """Return the token for the control API of the service, if one is configured. Raises `UsageError`."""
        found = self._find_value_or_file("EXTCLI_CONTROL_TOKEN", settings.CONTROL_TOKEN_FILE, None)
        return None if found is None else header_word(self._read_text(found), _secret_label(found), "control token")

    def _find_value_or_file(self, variable: str, file: Setting[Path], to: str | None) -> Found[str | Path] | None:
        """Return what the variable holds, otherwise the path of the file that its variable or the profile names.

        The profile comes first if it is named on the command line.
        """
        own = self._own_file(file, to)
        if own and self.flags.profile:
            return own
        return self._in_text_variable(variable, file.key.removesuffix("_file")) or self.in_variable(file) or own

    def _in_text_variable(self, variable: str, key: str) -> Found[str | Path] | None:
        text = self.variable(variable)
        return Found(text, Source.VARIABLE, variable, key) if text else None

    def _own_file(self, file: Setting[Path], to: str | None) -> Found[str | Path] | None:
        """Return the profile's secret or token file, unless the address belongs to another service."""
        found = self.in_profile(file)
        return found if found and self.profile and self.profile.is_at(to or self.url()) else None

    def _read_text(self, found: Found[str | Path]) -> str:
        if isinstance(found.value, str):
            return found.value.strip()
        if not self.flags.quiet and found.value not in self.checked_files:
            self.checked_files.add(found.value)
            write_stderr(filter(None, [settings.permission_warning(found.value)]))
        return settings.read_secret_file(found.value, found.label)


def _secret_label(found: Found[str | Path]) -> str:
    return f"{found.value} ({found.label})" if isinstance(found.value, Path) else found.label
