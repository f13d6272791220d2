"""The extensions file of tests."""

from __future__ import annotations

from pathlib import Path

from emulator.core.extensions import Extension, read_extensions
from support.program import SECRET_BASE64
from support.service import CLIENT_ID

LAID_OUT = """\
# the extensions of this service
[extensions]            # all of them

[extensions.my-extension]   # ours
owner_user_id = "12345"     # not a number
secrets = [
    "bmV3ZXN0",  # of May
    "b2xkZXI=",  # of April
    "b2xkZXN0",  # of March
]
secret_files = ["kept.secret"]
secret_env = "OLD_SECRET"

[extensions.other]      # theirs
secret_env = "THEIR_SECRET"   # from the vault
# the end
"""


def write_extensions(folder: Path) -> str:
    """Write a file with the extension of the tests, and return its path, for `serve --extensions`."""
    file = folder / "extensions.toml"
    file.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{SECRET_BASE64}"]\n')
    file.chmod(0o600)
    return str(file)


def registered(folder: Path) -> dict[str, Extension]:
    """Return the extensions that the service reads from the file."""
    return read_extensions(folder / "extensions.toml", {"OLD_SECRET": "ZW52", "THEIR_SECRET": "ZW52"})
