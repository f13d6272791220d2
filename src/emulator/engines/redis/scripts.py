"""The scripts that run inside Redis: each operation is one call of one of them, and so one atomic step."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).with_name("lua")


class Script(NamedTuple):
    text: bytes
    digest: bytes


def _script(name: str) -> Script:
    text = (_FOLDER / "common.lua").read_bytes() + (_FOLDER / f"{name}.lua").read_bytes()
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


DOCUMENTS = _script("documents")
BALLOTS = _script("ballots")
LOGS = _script("logs")
POOLS = _script("pools")
ROSTERS = _script("rosters")
PURGE = _script("purge")

ALL = (DOCUMENTS, BALLOTS, LOGS, POOLS, ROSTERS, PURGE)
