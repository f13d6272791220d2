"""Rules of the configuration that completion shares with commands. Imports next to nothing: completion has 200 ms."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TypeVar

DEFAULT_URL = "http://127.0.0.1:8282"
DEFAULT_CLIENT_ID = "my-extension"

T = TypeVar("T")


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
