"""Style sheets and scripts. Their addresses carry a hash of the content, so browsers may cache them permanently."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from emulator.dashboard.refusals import no_file
from emulator.http.endpoint import Page
from emulator.http.response import PAGE_HEADERS

FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_NO_WEIGHT: Final = re.compile(rb"q=0(\.0*)?")
_HEADERS: Final = (
    *(each for each in PAGE_HEADERS if each[0] != b"cache-control"),
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"vary", b"Accept-Encoding"),
)


class _File(NamedTuple):
    content: bytes
    compressed: bytes
    version: str


@cache
def _file(name: str) -> _File:
    content = (FOLDER / name).read_bytes()
    return _File(content, gzip.compress(content, 9, mtime=0), sha256(content).hexdigest()[:12])


@cache
def _names() -> frozenset[str]:
    return frozenset(path.name for path in FOLDER.iterdir() if path.suffix in _TYPES)


def version_of(name: str) -> str:
    """Return a short hash of a file's content."""
    return _file(name).version


def accepts_gzip(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser names gzip among the encodings that it accepts, and not with the weight 0."""
    weights = {}
    for each in headers.get(b"accept-encoding", b"").lower().split(b","):
        coding, _, weight = each.partition(b";")
        weights[coding.strip()] = weight.replace(b" ", b"")
    return b"gzip" in weights and not _NO_WEIGHT.fullmatch(weights[b"gzip"])


def static_page(name: str, headers: Mapping[bytes, bytes]) -> Page:
    """Return a file, compressed if the browser accepts that. Raises `NotFound`."""
    if name not in _names():
        raise no_file(name=name[:60])
    kind = _TYPES[name[name.rindex(".") :]]
    if accepts_gzip(headers):
        return Page(_file(name).compressed, kind, (*_HEADERS, (b"content-encoding", b"gzip")))
    return Page(_file(name).content, kind, _HEADERS)
