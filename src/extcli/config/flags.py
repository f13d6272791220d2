"""The shared options of one run, and the rules of the configuration that completion shares with commands.

Every command line and every completion reads this, so it imports next to nothing: completion has 200 ms.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8282"
DEFAULT_CLIENT_ID = "my-extension"
_OPTIONS = {
    "profile": "-p", "url": "--url", "client_id": "--client-id", "channel": "--channel", "acts_as": "--as",
    "token_file": "--token-file",
}  # fmt: skip

T = TypeVar("T")


class Flags(NamedTuple):
    """The shared options as given; `None` where not given."""

    profile: str | None = None
    url: str | None = None
    client_id: str | None = None
    acts_as: str | None = None
    channel: str | None = None
    token_file: Path | None = None
    output: str | None = None
    timeout: str | None = None
    quiet: bool = False
    verbose: bool = False
    dry_run: str | None = None
    """`request` or `curl`: how to print requests instead of sending them."""
    query: str | None = None

    def over(self, outer: Flags) -> Flags:
        """Return these options; options that are not set are taken from those given before the command's name."""
        # An empty text counts as given; the command reports it.
        return self._replace(
            **{name: getattr(outer, name) for name, value in self._asdict().items() if value in (None, False)}
        )

    def words(self, *names: str) -> list[str]:
        """Return the given ones of these options, by default all that name the service and the caller, as words.

        With these, another command of extcli finds the same service.
        """
        given = ((_OPTIONS[name], getattr(self, name)) for name in names or _OPTIONS)
        return [word for option, value in given if value for word in (option, str(value))]


def by_precedence(variable: T, profile: T, *, is_named: bool) -> tuple[T, T]:
    """Return the values of a setting in the environment and in the profile, the one with precedence first.

    A profile that is named on the command line (`-p NAME`) comes before the environment.
    """
    return (profile, variable) if is_named else (variable, profile)


def profiles_file(environ: Mapping[str, str]) -> str:
    """Return the path of the profiles file: EXTCLI_CONFIG, or the default of the platform."""
    if named := environ.get("EXTCLI_CONFIG"):
        return named
    if sys.platform != "linux":
        import platformdirs

        return str(platformdirs.user_config_path("extcli", appauthor=False) / "config.toml")
    base = environ.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")
    return os.path.join(base, "extcli", "config.toml")
