"""Resolves each setting: the option, then the environment, then the chosen profile, then a default.

A profile named on the command line (`-p NAME`) counts as an option: its settings come before the environment.
`Resolver.find` does that for every setting alike. Addresses need more care: a WebSocket address belongs to one service
only, and so do a profile's secret and token (`secret_lookup.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from extcli.config import settings
from extcli.config.flags import Flags
from extcli.config.precedence import by_precedence, profiles_file
from extcli.config.profiles import Profile, Profiles, read_profiles
from extcli.config.settings import Identity, Setting
from extcli.config.urls import socket_of
from extcli.output.format import Format

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

    def value(self, setting: Setting[T], default: T) -> T:
        """Return the value with the highest precedence, or the default. Raises `UsageError` like `find`."""
        found = self.find(setting)
        return found.value if found else default

    # The profile

    @cached_property
    def profiles_file(self) -> Path:
        """The path of the profiles file, which may not exist."""
        return Path(profiles_file(self._environ))

    @cached_property
    def profiles(self) -> Profiles:
        """The content of the profiles file."""
        return read_profiles(self.profiles_file)

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
        return next((each for each in there if each.may_be_of(self.url()) or each.may_be_of(self.ws_url())), None)

    # Addresses

    def url(self) -> str:
        return self.value(settings.URL, settings.DEFAULT_URL)

    def configured_ws_url(self) -> Found[str] | None:
        """Return the configured WebSocket address; `None` means the default, derived from the URL.

        An address from a source of lower precedence than the URL belongs to another service, unless that source has the
        same URL.
        """
        url, socket = self.find(settings.URL), self.find(settings.WS_URL)
        if url and socket and socket.source > url.source:
            named = self.profile if socket.in_profile else None
            return socket if named and "url" in named.texts and named.is_of(url.value) else None
        return socket

    def ws_url(self) -> str:
        """Return the WebSocket address."""
        found = self.configured_ws_url()
        return found.value if found else socket_of(self.url())

    def pin_path(self) -> str:
        """Return the path below `/v1/e/` that issues PINs. Deployments have their own."""
        return self.value(settings.PIN_PATH, settings.DEFAULT_PIN_PATH)

    def broadcast_method(self, *, post: bool) -> str:
        """Return the method for broadcasts: GET as specified, or POST for deployments that accept nothing else."""
        return "POST" if post else self.value(settings.BROADCAST_METHOD, settings.DEFAULT_BROADCAST_METHOD)

    # How a command behaves

    def state_dir(self) -> Path | None:
        """Return the directory for stored links; `None` for the platform's default."""
        text = self.variable("EXTCLI_STATE_DIR")
        return Path(text) if text else None

    def timeout(self, default: float = settings.DEFAULT_TIMEOUT) -> float:
        """Return the timeout in seconds, above zero."""
        return self.value(settings.TIMEOUT, default)

    def format(self, *, terminal: bool) -> Format:
        return self.value(settings.OUTPUT, Format.TABLE if terminal else Format.PLAIN)

    # Who it acts as

    def client_id(self) -> str:
        return self.value(settings.CLIENT_ID, settings.DEFAULT_CLIENT_ID)

    def channel(self) -> str | None:
        """Return the configured channel; `None` means the role's default, see `DEFAULT_CHANNEL`."""
        found = self.find(settings.CHANNEL)
        return found.value if found else None

    def identity(self, default: str) -> Identity:
        found = self.find(settings.ACTS_AS)
        return found.value if found else Identity.parse(default, "the command's default")
