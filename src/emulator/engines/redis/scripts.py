"""The scripts that run inside Redis: each operation is one call of one of them, and so one atomic step."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).with_name("lua")


class Script(NamedTuple):
    text: bytes
    digest: bytes


def _script(*names: str) -> Script:
    """The parts in this order; what an earlier one names, a later one may use."""
    text = b"".join((_FOLDER / f"{name}.lua").read_bytes() for name in ("common", *names))
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


DOCUMENTS = _script("documents")
BALLOTS = _script("heads", "ballots")
ENTRIES = _script("heads", "entries")
LOGS = _script("logs")
POOLS = _script("pools")
ROSTERS = _script("rosters")
PURGE = _script("purge")

ALL = (DOCUMENTS, BALLOTS, ENTRIES, LOGS, POOLS, ROSTERS, PURGE)
