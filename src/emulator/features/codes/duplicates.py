"""Finds equal codes among ten million in a few MiB of memory, in short steps.

The hashes of all codes are sorted into buckets, so that equal ones meet while only one bucket is in memory. The codes
themselves are kept in order, and read again only if hashes are equal. Both go to temporary files.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import Final, NamedTuple

from emulator.errors import EngineError

_SHIFT: Final = 56
"""The highest eight bits of a hash choose its bucket. Fewer buckets need more memory, more buckets more time."""
_BUCKETS: Final = 1 << (64 - _SHIFT)
_MAX_BUFFERED: Final = 128 * 1024
"""Hashes in memory."""
_MAX_IN_MEMORY: Final = 1024 * 1024
"""Bytes after which a file is written to disk."""
_STEP: Final = 10_000
"""Hashes that are compared at once."""
_MAX_CANDIDATES: Final = 1_000
"""Repeated hashes to look at. Two different codes hardly ever have the same hash."""

Place = tuple[int, int]
"""The index of a set, and of a code in it."""


class _Batch(NamedTuple):
    """Consecutive codes, and the position of their text in the temporary file."""

    place: Place
    start: int
    size: int


class Duplicates:
    """Takes codes in batches, then finds codes that occur twice. Every method but `close` may raise `EngineError`.

    No code may contain NUL.
    """

    def __init__(self) -> None:
        # Hashes are signed: a negative index counts from the end of the list, so every hash has a bucket.
        self._buckets = [array("q") for _ in range(_BUCKETS)]
        self._append = [bucket.append for bucket in self._buckets]
        self._buffered = 0
        self._hashes = SpooledTemporaryFile(_MAX_IN_MEMORY)  # noqa: SIM115 - `close` closes it
        self._flushes: list[array[int]] = []
        """Per flush of all buckets: where in the file each begins, and where the last one ends."""
        self._texts = SpooledTemporaryFile(_MAX_IN_MEMORY)  # noqa: SIM115
        self._batches: list[_Batch] = []

    def close(self) -> None:
        """Delete the temporary files."""
        self._hashes.close()
        self._texts.close()

    def add(self, place: Place, codes: Sequence[str]) -> None:
        """Add consecutive codes of a set; the first is at `place`."""
        if not codes:
            return
        append = self._append
        for each in map(hash, codes):
            append[each >> _SHIFT](each)
        self._buffered += len(codes)
        text = "\0".join(codes).encode()
        with _file_errors():
            self._batches.append(_Batch(place, self._texts.tell(), self._texts.write(text)))
            if self._buffered >= _MAX_BUFFERED:
                self._flush()

    def find(self, most: int) -> Iterator[tuple[Place, Place] | None]:
        """Yield pairs of places with equal codes, at most `most`, and `None` about once per ms of other work."""
        candidates: set[int] = set()
        compared = 0
        for number in range(_BUCKETS):
            distinct: set[int] = set()
            size = 0
            for hashes in self._hashes_in(number):
                distinct.update(hashes)
                size += len(hashes)
                compared += len(hashes)
                if compared >= _STEP:
                    compared = 0
                    yield None
            if len(distinct) < size:
                for repeated in self._repeated_hashes(number):
                    candidates |= repeated
                    yield None
            if len(candidates) >= _MAX_CANDIDATES:
                break
        first: dict[str, Place] = {}
        for batch in self._batches if candidates else ():
            for position, code in enumerate(self._codes(batch), batch.place[1]):
                if hash(code) not in candidates:
                    continue
                place = (batch.place[0], position)
                if first.setdefault(code, place) != place:
                    yield first[code], place
                    most -= 1
                    if not most:
                        return
            yield None

    def _flush(self) -> None:
        starts = array("Q", [self._hashes.tell()])
        for bucket in self._buckets:
            starts.append(starts[-1] + len(bucket) * bucket.itemsize)
        self._hashes.write(b"".join(self._buckets))
        self._flushes.append(starts)
        for bucket in self._buckets:
            del bucket[:]
        self._buffered = 0

    def _repeated_hashes(self, number: int) -> Iterator[set[int]]:
        """Yield the hashes that occur more than once in a bucket, in steps."""
        seen: set[int] = set()
        for hashes in self._hashes_in(number):
            distinct = set(hashes)
            repeated = distinct & seen
            if len(distinct) < len(hashes):
                repeated |= {each for each, count in Counter(hashes).items() if count > 1}
            seen |= distinct
            yield repeated

    def _hashes_in(self, number: int) -> Iterator[array[int]]:
        """Yield the hashes in a bucket, at most `_STEP` at once."""
        for starts in self._flushes:
            hashes = array("q")
            with _file_errors():
                self._hashes.seek(starts[number])
                hashes.frombytes(self._hashes.read(starts[number + 1] - starts[number]))
            for start in range(0, len(hashes), _STEP):
                yield hashes[start : start + _STEP]
        for start in range(0, len(self._buckets[number]), _STEP):
            yield self._buckets[number][start : start + _STEP]

    def _codes(self, batch: _Batch) -> list[str]:
        with _file_errors():
            self._texts.seek(batch.start)
            return self._texts.read(batch.size).decode().split("\0")


@contextmanager
def _file_errors() -> Iterator[None]:
    """Turn errors of the temporary files into `EngineError`."""
    try:
        yield
    except OSError as error:
        raise EngineError(f"cannot use a temporary file: {error.strerror or type(error).__name__}") from error
