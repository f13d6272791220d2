"""The place of a run: its temporary directory, and the environment of the command."""

from __future__ import annotations

import os
import re
import shutil
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from extcli.config.settings import DEFAULT_CLIENT_ID, SERVICE_SETTINGS
from extcli.config.urls import socket_of
from extcli.errors import UsageError, shortened

_SECRET_BYTES = 32


class Place:
    """A new directory with mode 0700 in `TMPDIR` or `/tmp`."""

    def __init__(self) -> None:
        """Raises `UsageError`."""
        parent = os.environ.get("TMPDIR") or "/tmp"
        self.directory = os.path.join(parent, f"extcli-{os.urandom(8).hex()}")
        try:
            os.mkdir(self.directory, 0o700)
        except OSError as error:
            raise UsageError(f"cannot create a directory in {parent}: {error.strerror}", fix="set TMPDIR") from None

    @property
    def variables(self) -> dict[str, str]:
        """Variables that keep commands from reading and writing the user's own files."""
        return {
            "EXTCLI_SECRET_FILE": f"{self.directory}/secret",
            "EXTCLI_CONFIG": f"{self.directory}/config.toml",
            "EXTCLI_STATE_DIR": f"{self.directory}/state",
        }

    def write_secret(self, secret: str | None) -> None:
        """Write the secret file with mode 0600: this secret in base64, or a random one, which a sandbox accepts.

        Raises `UsageError`.
        """
        text = secret or b64encode(os.urandom(_SECRET_BYTES)).decode()
        try:
            descriptor = os.open(f"{self.directory}/secret", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w") as file:
                file.write(f"{text.strip()}\n")
        except OSError as error:
            raise UsageError(f"cannot write to {self.directory}: {error.strerror}", fix="set TMPDIR") from None

    def remove(self) -> None:
        """Remove the directory with everything in it."""
        shutil.rmtree(self.directory, ignore_errors=True)


def registered(file: Path | None, client_id: str | None) -> tuple[str | None, str | None]:
    """Return the client id to use and its first secret, from the extensions file. Without a client id: its first.

    Returns the client id as it is, and no secret, if the file does not have it. Raises `UsageError` for a bad file.
    """
    if file is None:
        return client_id, None
    from extcli.extensions.registry import read_text, tables_of

    tables = tables_of(file, read_text(file))
    chosen = client_id or next(iter(tables), None)
    table = tables.get(chosen or "", {})
    if table.get("secrets"):
        return chosen, table["secrets"][0]
    if table.get("secret_files"):
        return chosen, read_text(file.parent / table["secret_files"][0])
    return chosen, os.environ.get(table.get("secret_env", ""))


FIELDS = ("url", "ws_url", "host", "port", "client_id", "namespace")
"""What a template may contain, in braces."""
REMOVED = {each.variable for each in SERVICE_SETTINGS if each.variable}
REMOVED |= {"EXTCLI_PROFILE", "EXTCLI_TOKEN", "EXTCLI_SECRET"}
"""Variables of the caller that would lead the command to another service, identity or channel."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True, slots=True)
class Template:
    """A variable of the command, with fields such as `{url}` in its text."""

    name: str
    text: str

    @classmethod
    def parse(cls, argument: str) -> Template:
        """Parse `NAME=TEXT`. Doubled braces stand for themselves. Raises `UsageError`, also for an unknown field."""
        name, equals, text = argument.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise UsageError(f"--env {shortened(argument)!r} is not NAME=TEXT", fix="for example --env API={url}/v1")
        for found in _PART.finditer(text):
            if found[0] in ("{", "}"):
                raise UsageError(f"--env {name}: a single {found[0]!r}", fix="double it, or name a field in braces")
            if found[1] is not None and found[1] not in FIELDS:
                meant = get_close_matches(found[1], FIELDS, 1)
                hint = f"did you mean {{{meant[0]}}}? " if meant else ""
                raise UsageError(
                    f"--env {name}: unknown field {{{shortened(found[1])}}}", fix=f"{hint}fields: {', '.join(FIELDS)}"
                )
        return cls(name, text)

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the text with the value of each field."""
        return _PART.sub(lambda found: found[0][0] if found[1] is None else values[found[1]], self.text)


def environment_of(
    caller: Mapping[str, str], url: str, place: Place, client_id: str | None, templates: Iterable[Template]
) -> dict[str, str]:
    """Return the command's environment: the caller's without `REMOVED`, the service's address, and the templates."""
    parts = urlsplit(url)
    values = {
        "url": url,
        "ws_url": socket_of(url),
        "host": parts.hostname or "",
        "port": str(parts.port),
        "client_id": client_id or DEFAULT_CLIENT_ID,
        "namespace": "default",
    }
    return {
        **{name: value for name, value in caller.items() if name not in REMOVED},
        "EXTCLI_URL": url,
        "EXTCLI_WS_URL": values["ws_url"],
        "EXTCLI_CLIENT_ID": values["client_id"],
        **place.variables,
        **{each.name: each.filled(values) for each in templates},
    }
