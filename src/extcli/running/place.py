"""The private directory of one run: a secret, and what `extcli` commands would store in the user's directories."""

from __future__ import annotations

import os
import shutil
from base64 import b64encode
from pathlib import Path

from extcli.errors import UsageError

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
