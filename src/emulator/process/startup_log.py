"""Logs the service's configuration, and warns of risky settings."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from emulator.core.config.settings import Settings
from emulator.storage.engine import Engine

_log = logging.getLogger("emulator")


def log_serving(settings: Settings, engine: Engine, port: int) -> None:
    """Log one line about the service when it starts."""
    _log.info(
        "serving: extcli %s, %s, data in %s, format %s, port %s, registered extensions: %s",
        version("extcli"), settings.environment.name, engine.location, engine.format, port,
        len(settings.extensions),
    )  # fmt: skip


def is_beyond_loopback(listeners: Iterable[socket.socket]) -> bool:
    """Whether clients on other machines may reach the port."""
    addresses = (each.getsockname()[0].partition("%")[0] for each in listeners)
    return not all(ipaddress.ip_address(each).is_loopback for each in addresses)


def log_admitted(settings: Settings, *, shows_token: bool) -> None:
    """Log who may call the control API of a sandbox that listens beyond loopback."""
    token = "the control token on standard output" if shows_token else "the configured control token"
    hosts = "".join(f", and anyone who calls it by the host {host}" for host in settings.control_hosts)
    _log.info(
        "the control API answers programs on this machine, clients with %s (EXTCLI_CONTROL_TOKEN)%s", token, hosts
    )


def log_warnings(warnings: Iterable[str]) -> None:
    """Log one line for each warning."""
    for warning in warnings:
        _log.warning("%s", warning)


def settings_warnings(settings: Settings, engine: Engine) -> Iterator[str]:
    """Yield warnings of settings that are valid but risky: lost data, readable secrets."""
    if settings.environment.verifies_tokens and not engine.survives_restart:
        yield "--production keeps data in memory, so a stop loses all of it: set --data"
    # Only regular files: a pipe can be read once.
    if settings.extensions_file is not None and settings.extensions_file.is_file() and sys.platform != "win32":
        for file in _files_with_secrets(settings.extensions_file):
            if file.is_file() and os.stat(file).st_mode & stat.S_IROTH:
                yield f"{file}: holds secrets, but every user of this machine can read it: chmod o-r"


def _files_with_secrets(file: Path) -> Iterator[Path]:
    """Yield the files that hold secrets: those that a valid extensions file names, and the extensions file if it
    contains any.
    """
    tables = tomllib.loads(file.read_text(encoding="utf-8"))["extensions"].values()
    if any(table.get("secrets") for table in tables):
        yield file
    yield from dict.fromkeys(file.parent / name for table in tables for name in table.get("secret_files", []))
