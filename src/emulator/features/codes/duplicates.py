"""Finds equal codes among ten million in a few MiB of memory, in short steps.

The hashes of all codes are sorted into buckets, so that equal ones meet while only one bucket is in memory. They go to
a temporary file. Codes are compared only if their hashes are equal.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import Final

from emulator.core.errors import EngineError

_BUCKETS: Final = 256
"""One byte of a hash chooses its bucket. Fewer buckets need more memory, more buckets more time."""
_WIDTH: Final = 8
"""Bytes of a hash."""
_MAX_BUFFERED: Final = 128 * 1024
"""Hashes in memory."""
_MAX_IN_MEMORY: Final = 1024 * 1024
"""Bytes after which the file is written to disk."""
_STEP: Final = 10_000
"""Hashes that are compared in one step."""

Place = tuple[int, int]
"""The index of a set, and of a code in it."""


class Duplicates:
    """Takes codes, then finds the hashes that occur twice.

    Every method but `close` may raise `EngineError`.
    """

    def __init__(self) -> None:
        self._buckets = [array("Q") for _ in range(_BUCKETS)]
        self._append = [bucket.append for bucket in self._buckets]
        self._buffered = 0
        self._file = SpooledTemporaryFile(_MAX_IN_MEMORY)  # noqa: SIM115 - `close` closes it
        self._flushes: list[array[int]] = []
        """Per flush of all buckets: where in the file each begins, and where the last one ends."""

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()

    def add(self, codes: Sequence[str]) -> None:
        """Add some codes."""
        packed = struct.pack(f"{len(codes)}q", *map(hash, codes))
        append = self._append
        for number, each in zip(packed[_WIDTH - 1 :: _WIDTH], array("Q", packed), strict=True):
            append[number](each)
        self._buffered += len(codes)
        if self._buffered >= _MAX_BUFFERED:
            self._flush()

    def repeated_hashes(self) -> Iterator[set[int]]:
        """Yield hashes that occur more than once, after each step of at most some milliseconds; most find none."""
        self._flush()
        for number in range(_BUCKETS):
            seen: set[int] = set()
            for packed in self._packed_hashes(number):
                for start in range(0, len(packed), _STEP * _WIDTH):
                    hashes = array("q", packed[start : start + _STEP * _WIDTH])
                    distinct = set(hashes)
                    repeated = distinct & seen
                    if len(distinct) < len(hashes):
                        repeated |= {each for each, count in Counter(hashes).items() if count > 1}
                    seen |= distinct
                    yield repeated

    def _flush(self) -> None:
        with _file_errors():
            starts = array("Q", [self._file.tell()])
            for bucket in self._buckets:
                starts.append(starts[-1] + len(bucket) * _WIDTH)
            self._file.write(b"".join(self._buckets))
        self._flushes.append(starts)
        for bucket in self._buckets:
            del bucket[:]
        self._buffered = 0

    def _packed_hashes(self, number: int) -> Iterator[bytes]:
        """Yield the hashes in a bucket, flush by flush."""
        for starts in self._flushes:
            with _file_errors():
                self._file.seek(starts[number])
                packed = self._file.read(starts[number + 1] - starts[number])
            yield packed


def pairs_among(
    codes: Sequence[str], place: Place, repeated: Set[int], first: dict[str, Place]
) -> Iterator[tuple[Place, Place]]:
    """Yield the places of equal codes: of the first one in `first`, and of one of these codes, which begin at `place`.

    Looks only at codes with repeated hashes, and adds them to `first`.
    """
    for position, code in enumerate(codes, place[1]):
        if hash(code) in repeated:
            here = (place[0], position)
            if first.setdefault(code, here) != here:
                yield first[code], here


@contextmanager
def _file_errors() -> Iterator[None]:
    """Turn errors of the temporary file into `EngineError`."""
    try:
        yield
    except OSError as error:
        raise EngineError(f"cannot use a temporary file: {error.strerror or type(error).__name__}") from error
