"""Reads the text of an `Authorization` header: its two words, and a digest that stands for it. No I/O."""

from __future__ import annotations

from hashlib import blake2b

from emulator.auth import refusals
from emulator.contract.names import is_client_id

_MAX_HEADER_LENGTH = 8_192


def digest_of(header: str) -> bytes:
    """Return 128 bits that stand for a header in the cache, in place of its some 300 characters.

    BLAKE2b is a cryptographic hash function. To be taken for another caller, a client would need a header with the
    digest of that caller's, of the 2**128 that there are; two of its own with one digest would gain it nothing.
    """
    text = header.encode() if header.isascii() else header.encode("utf-8", "surrogatepass")
    return blake2b(text).digest()[:16]  # `digest_size=16` takes longer


def split_header(header: str | None) -> tuple[str, str]:
    """Split `<client id> <JWT>`; surrounding double quotes are removed. Raises `Unauthorized`."""
    if not header:
        raise refusals.no_header()
    if len(header) > _MAX_HEADER_LENGTH:
        raise refusals.long_header(limit=_MAX_HEADER_LENGTH)
    parts = header.strip().strip('"').split()
    if len(parts) != 2:
        raise refusals.malformed_header(words=len(parts))
    if parts[0].lower() == "bearer":
        raise refusals.bearer()
    if not is_client_id(parts[0]):
        raise refusals.malformed_client_id()
    return parts[0], parts[1]
