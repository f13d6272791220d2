"""The Lua scripts that run inside Redis. Each operation is one script call, and so one atomic step."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).with_name("lua")


class Script(NamedTuple):
    text: bytes
    digest: bytes


def _script(*names: str) -> Script:
    """Return `common.lua` and these files as one script; a file may use what earlier ones define."""
    text = b"".join((_FOLDER / f"{name}.lua").read_bytes() for name in ("common", *names))
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


DOCUMENTS = _script("documents")
BALLOTS = _script("ballot_meta", "ballots")
ENTRIES = _script("ballot_meta", "entries")
LOGS = _script("logs")
POOLS = _script("pools")
ROSTERS = _script("rosters")
PURGE = _script("purge")
DUMP = _script("dump")
LOAD = _script("load")
CATALOG = _script("catalog")

ALL = (DOCUMENTS, BALLOTS, ENTRIES, LOGS, POOLS, ROSTERS, PURGE, DUMP, LOAD, CATALOG)
