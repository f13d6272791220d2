"""Style sheets and scripts. Their addresses carry a hash of the content, so browsers may cache them permanently."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from emulator.dashboard.refusals import no_file
from emulator.http.response import PAGE_HEADERS, Reply

FOLDER = Path(__file__).parent / "static"
_TYPES = {".js": b"text/javascript", ".css": b"text/css", ".svg": b"image/svg+xml"}
_HEADERS = (
    *(each for each in PAGE_HEADERS if each[0] != b"cache-control"),
    (b"cache-control", b"public, max-age=31536000, immutable"),
)


@cache
def _files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in _TYPES}


@cache
def version_of(name: str) -> str:
    """Return a short hash of a file's content."""
    return sha256(_files()[name]).hexdigest()[:12]


def static_file(name: str) -> Reply:
    """Return a file. Raises `NotFound`."""
    if name not in _files():
        raise no_file(name=name[:60])
    content_type = _TYPES[name[name.rindex(".") :]]
    return Reply(200, _files()[name], content_type=content_type, more=_HEADERS)
