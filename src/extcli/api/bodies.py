"""Reads response bodies: decompresses them on the way, and limits their decoded size and the time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

from extcli import clock
from extcli.api.failures import timed_out
from extcli.errors import CliError, ExitCode, TooLarge, shortened

PROBE: Final = 16 << 20
"""Bytes read of the response to a probe. Another program may respond without end."""
RESPONSE: Final = 64 << 20
"""Bytes of a response that is read as a whole."""
CROWD: Final = 1 << 20
"""Bytes of a response to a request of a crowd. Those are short, and there are many at a time."""
ENCODINGS: Final = "gzip"
"""The content encodings that extcli accepts, as a header names them."""
_PIECE: Final = 1 << 20
_FIX: Final = "check that --url (EXTCLI_URL) is an extension service"


class Undecodable(CliError):
    """Raised for a response body that is not encoded as its header says, or whose encoding was not requested."""

    exit_code = ExitCode.SERVICE_FAILED


class Decoder:
    """Decodes one response body. Raises an error when the body is too large or takes too long."""

    def __init__(self, url: str, encoding: str, *, limit: int | None, deadline: float | None) -> None:
        """`encoding` is the header `content-encoding`.

        `deadline` is a time of `clock.elapsed`; `None` means no limit.
        """
        self._url = url
        self._encoding = encoding.strip().lower()
        self._gzip: Any = _new_gzip() if self._encoding not in ("", "identity") else None
        self._limit = limit
        self._deadline = deadline
        self._size = 0

    def decoded(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of the next bytes, in pieces of at most 1 MiB if they are compressed."""
        for piece in self._inflate(data) if self._gzip else (data,):
            self._size += len(piece)
            if self._limit is not None and self._size > self._limit:
                raise TooLarge(f"a response of {self._url}", self._limit)
            if self._deadline is not None and clock.elapsed() > self._deadline:
                raise timed_out(self._url)
            if piece:
                yield piece

    def check_end(self) -> None:
        """Raise `Undecodable` if a compressed body has ended too early."""
        if self._gzip and self._size and not self._gzip.eof:
            raise self._undecodable()

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        if self._encoding not in (ENCODINGS, f"x-{ENCODINGS}"):
            raise self._undecodable()
        try:
            more = True
            while more:
                if self._gzip.eof:  # another member follows
                    self._gzip = _new_gzip()
                piece = self._gzip.decompress(data, _PIECE)
                data = self._gzip.unused_data if self._gzip.eof else self._gzip.unconsumed_tail
                more = bool(data) or (len(piece) == _PIECE and not self._gzip.eof)
                yield piece
        except zlib.error:
            raise self._undecodable() from None

    def _undecodable(self) -> Undecodable:
        why = f"content-encoding {shortened(self._encoding, 40)}; extcli accepts {ENCODINGS}"
        if self._encoding in (ENCODINGS, f"x-{ENCODINGS}"):
            why = "the compressed body is damaged or incomplete"
        return Undecodable(f"a response of {self._url} cannot be decoded", why=why, fix=_FIX)


def _new_gzip() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)
