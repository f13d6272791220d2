"""What `extcli exec` and the fixtures give the programs of a run: the variable of its report, and a new secret."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path
from typing import Final

from emulator.contract.limits import MIN_SECRET_BYTES

ON_FAILURE: Final = "EXTCLI_ON_FAILURE"
"""The directory of the report of `exec`. Tests that failed keep their namespaces for it."""
NAMESPACES: Final = "namespaces"
"""The folder in that directory with a folder for each namespace."""


def write_secret(file: str | Path, secret: str | None = None) -> None:
    """Write a new file with mode 0600: this secret in base64, or a random one, which a sandbox accepts.

    Raises `OSError`.
    """
    text = secret or b64encode(os.urandom(MIN_SECRET_BYTES)).decode()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as target:
        target.write(f"{text.strip()}\n")
