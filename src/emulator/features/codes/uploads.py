"""Uploads of codes: their limits, and the lists that they fill before any set uses them (ruling C2).

Equal codes are found among ten million in a few MiB of memory, in short steps. The hashes of all codes are sorted into
buckets, so that equal ones meet while only one bucket is in memory. They go to a temporary file. Codes are compared
only if their hashes are equal.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import accumulate, islice
from tempfile import SpooledTemporaryFile
from typing import Any

from msgspec import Struct

from emulator.contract.limits import MAX_CODE_LENGTH, MAX_CODES, MAX_SET_NAME_LENGTH, MAX_SETS
from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.errors import BadRequest, Facts, Unavailable, refusal, temporary_file_errors
from emulator.core.ids import NewId
from emulator.core.keys import Key
from emulator.features.codes.grants import LIFETIME, Draft
from emulator.storage.pools import Pools

MAX_ERRORS = 20
"""Errors reported for one body."""
_ALLOWED_LENGTHS = frozenset(range(1, MAX_CODE_LENGTH + 1))
_MIN_CODES_PER_WRITE = 5_000
"""Codes of an array that are written at once; fewer at its end. Each write takes a commit."""
_MAX_REPEATED_HASHES = 1_000
"""Repeated hashes to look at. Two different codes hardly ever have the same hash."""


_BUCKETS = 256
"""The remainder of a hash chooses its bucket. Fewer buckets need more memory, more buckets more time."""
_HASH_BYTES = 8
"""Bytes of a hash."""
_MAX_HASHES_IN_MEMORY = 128 * 1024
"""Hashes in memory."""
_MAX_FILE_IN_MEMORY = 1024 * 1024
"""Bytes after which the file is written to disk."""

CodePlace = tuple[int, int]
"""The index of a set, and of a code in it."""


@refusal(BadRequest, "Invalid codes", "C2", "The code sets are malformed",
         "Correct the sets; `extcli codes upload --dry-run` finds errors in files.")  # fmt: skip
def malformed_sets(*, errors: Sequence[str]) -> Facts:
    return Facts(errors[0], errors[0], "valid sets, in which no code occurs twice", errors[1:])


@refusal(BadRequest, "Invalid codes", "C2", "Another set has this name",
         "Choose another name; `extcli codes list` shows the names.")  # fmt: skip
def name_in_use(*, position: int, index: int) -> Facts:
    detail = f"names[{position}]: the code set at index {index} already has this name"
    return Facts(detail, f"the name of the set at index {index}", "a name that no active set has")


@refusal(Unavailable, "Codes removed", "C2", "A reset removed the uploaded codes", "Upload the codes again.")
def codes_removed() -> Facts:
    detail = "during the upload, the service was reset or loaded other data; nothing was changed"
    return Facts(detail, "an upload that a reset interrupted", "an upload that no reset interrupts")


class NamesBody(Struct):
    """The members of a PUT besides the codes."""

    names: list[str]
    indices: list[int] | None = None
    """The index of each set; its position if absent."""


def problems_of_codes(array: int, at: int, codes: Sequence[Any]) -> Iterator[str]:
    """Yield the problems of consecutive codes of `codes[array]`, starting at position `at`."""
    if at + len(codes) > MAX_CODES and at <= MAX_CODES:
        yield f"codes[{array}]: has more than {MAX_CODES} codes"
    if _are_valid_codes(codes):
        return
    for position, code in enumerate(codes, at):
        if not isinstance(code, str):
            yield f"codes[{array}][{position}]: must be a string"
        elif not code or len(code) > MAX_CODE_LENGTH:
            yield f"codes[{array}][{position}]: has {len(code)} characters; a code has 1 to {MAX_CODE_LENGTH}"
        elif not code.isprintable():
            yield f"codes[{array}][{position}]: has unprintable characters"


def _are_valid_codes(codes: Sequence[Any]) -> bool:
    try:
        return _ALLOWED_LENGTHS.issuperset(map(len, codes)) and "".join(codes).isprintable()
    except TypeError:  # a code is not a string
        return False


def problems_of_sets(body: NamesBody, indices: Sequence[int], arrays: int) -> Iterator[str]:
    """Yield the problems of the number of sets, their names and their indices."""
    if not 1 <= arrays <= MAX_SETS:
        yield f"codes: {arrays} sets given; must be 1 to {MAX_SETS}"
    if len(body.names) != arrays:
        yield f"names: {len(body.names)} given for {arrays} sets"
    for position, name in enumerate(body.names):
        if not name or len(name) > MAX_SET_NAME_LENGTH or not name.isprintable():
            yield f"names[{position}]: must be 1 to {MAX_SET_NAME_LENGTH} printable characters"
    if len(indices) != arrays:
        yield f"indices: {len(indices)} given for {arrays} sets"
    for position, index in enumerate(indices):
        if not 0 <= index < MAX_SETS:
            yield f"indices[{position}]: {index} is not within 0 to {MAX_SETS - 1}"
    if len(set(body.names)) != len(body.names):
        yield "names: must be unique"
    if len(set(indices)) != len(indices):
        yield "indices: must be unique"


class Duplicates:
    """Takes codes, then finds the hashes that occur twice.

    Every method but `close` may raise `EngineError`.
    """

    def __init__(self) -> None:
        self._buckets = [array("q") for _ in range(_BUCKETS)]
        self._buffered = 0
        self._file = SpooledTemporaryFile(_MAX_FILE_IN_MEMORY)  # noqa: SIM115 - `close` closes it
        self._flushes: list[array[int]] = []
        """Per flush of all buckets: where in the file each begins, and where the last one ends."""

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()

    def add(self, codes: Sequence[str]) -> None:
        """Add some codes."""
        append = [bucket.append for bucket in self._buckets]
        for each in map(hash, codes):
            append[each % _BUCKETS](each)
        self._buffered += len(codes)
        if self._buffered >= _MAX_HASHES_IN_MEMORY:
            self._flush()

    def repeated_hashes(self) -> Iterator[set[int]]:
        """Yield hashes that occur more than once, after each step of at most some milliseconds; most find none."""
        self._flush()
        for number in range(_BUCKETS):
            hashes = self._bucket(number)
            counts = Counter(hashes) if len(set(hashes)) < len(hashes) else {}
            yield {each for each, count in counts.items() if count > 1}

    def _flush(self) -> None:
        sizes = (len(bucket) * _HASH_BYTES for bucket in self._buckets)
        with temporary_file_errors():
            self._flushes.append(array("Q", accumulate(sizes, initial=self._file.tell())))
            self._file.write(b"".join(self._buckets))
        for bucket in self._buckets:
            del bucket[:]
        self._buffered = 0

    def _bucket(self, number: int) -> array[int]:
        """Return the hashes in a bucket, of all flushes."""
        hashes = array("q")
        with temporary_file_errors():
            for starts in self._flushes:
                self._file.seek(starts[number])
                hashes.frombytes(self._file.read(starts[number + 1] - starts[number]))
        return hashes


def repeated_code_pairs(
    codes: Sequence[str], place: CodePlace, repeated: Set[int], first: dict[str, CodePlace]
) -> Iterator[tuple[CodePlace, CodePlace]]:
    """Yield the places of equal codes: of the first one in `first`, and of one of these codes, which begin at `place`.

    Looks only at codes with repeated hashes, and adds them to `first`.
    """
    for position, code in enumerate(codes, place[1]):
        if hash(code) in repeated:
            here = (place[0], position)
            if first.setdefault(code, here) != here:
                yield first[code], here


class Upload(Draft):
    """The codes of one PUT, in lists that no set uses until `CodeSets.define`."""

    def __init__(self, caller: Caller, pools: Pools, clock: Clock, new_id: NewId) -> None:
        super().__init__()
        self.caller = caller
        self._pools = pools
        self._clock = clock
        self._new_id = new_id
        self._errors: list[str] = []
        self._duplicates = Duplicates()
        self._lists: dict[int, Key] = {}
        self.sizes: dict[Key, int] = {}
        """The number of codes of each list."""
        self._array = 0
        self._unwritten: list[str] = []
        """The latest codes of the array `_array`."""

    async def add(self, array: int, at: int, codes: list[Any]) -> None:
        """Add the next codes of an array of the body: `codes[array][at:]`.

        Errors are collected for `list_by_index`; the 20th is raised at once.
        """
        self._collect(problems_of_codes(array, at, codes))
        if not self._errors and array < MAX_SETS:
            self._duplicates.add(codes)
            if array != self._array:
                await self._write()
                self._array = array
            self._unwritten += codes
            if len(self._unwritten) >= _MIN_CODES_PER_WRITE:
                await self._write()

    def restart(self) -> None:
        self._duplicates.close()
        self._errors, self._duplicates = [], Duplicates()
        self._array, self._unwritten = 0, []
        self.abandoned += self._lists.values()
        self._lists.clear()
        self.sizes.clear()

    async def list_by_index(self, body: NamesBody, arrays: int) -> dict[int, Key]:
        """Return the key of the uploaded list of each set, by its index.

        Raises `BadRequest` with the first 20 errors of the whole body.
        """
        indices = list(range(arrays)) if body.indices is None else body.indices
        self._collect(problems_of_sets(body, indices, arrays), raises_any=True)
        await self._write()
        await self._check_duplicates()
        return {index: self._list_of(array) for array, index in enumerate(indices)}

    async def close(self) -> None:
        self._duplicates.close()
        if self.abandoned:
            await self._pools.discard(self.abandoned, now=self._clock.now())

    def _collect(self, problems: Iterable[str], *, raises_any: bool = False) -> None:
        """Collect problems of the body. Raises `BadRequest` with the first 20, or with fewer if it `raises_any`."""
        self._errors += islice(problems, MAX_ERRORS - len(self._errors))
        if len(self._errors) >= (1 if raises_any else MAX_ERRORS):
            raise malformed_sets(errors=self._errors)

    async def _write(self) -> None:
        """Append the codes in memory to the list of their array."""
        if self._unwritten:
            codes, self._unwritten = self._unwritten, []
            now, key = self._clock.now(), self._list_of(self._array)
            await self._pools.fill(key, codes, now=now, expires_at=now + LIFETIME)
            self.sizes[key] = self.sizes.get(key, 0) + len(codes)

    async def _check_duplicates(self) -> None:
        """Raise `BadRequest` with the first 20 codes that occur again, if any do."""
        repeated: set[int] = set()
        for found in self._duplicates.repeated_hashes():
            repeated |= found
            if len(repeated) >= _MAX_REPEATED_HASHES:
                break
            await asyncio.sleep(0)
        places: dict[str, CodePlace] = {}
        for number, key in self._lists.items() if repeated else ():
            at = 0
            while codes := await self._pools.items(key, at, now=self._clock.now()):
                pairs = repeated_code_pairs(codes, (number, at), repeated, places)
                problems = (f"{_name(first)} and {_name(second)}: are the same code" for first, second in pairs)
                self._collect(problems)
                at += len(codes)
                await asyncio.sleep(0)
        self._collect((), raises_any=True)

    def _list_of(self, array: int) -> Key:
        if array not in self._lists:
            self._lists[array] = Key("code_list", self.caller.client_id, self._new_id())
        return self._lists[array]


def _name(place: CodePlace) -> str:
    return f"codes[{place[0]}][{place[1]}]"
