"""Saves and loads snapshots as streams, through temporary files, so that memory does not grow with the data.

The codec is imported when it is used: most services never need it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Final, Protocol

from msgspec import Struct

from emulator.auth.signing_key import SigningKey
from emulator.clock import Clock, system_now
from emulator.config.settings import Settings
from emulator.control.snapshots.refusals import invalid
from emulator.control.snapshots.rules import (
    END,
    FORMAT,
    AliveCounts,
    ClockState,
    Header,
    check_counts,
    check_header,
    encode_header,
    instant_of,
    is_secret,
)
from emulator.engines.engine import Engine
from emulator.engines.records import DocumentRecord, Record
from emulator.errors import EngineError
from emulator.observability.audit import audit

_PIECE: Final = 8 * 1024
"""Bytes that are decoded, and written to storage, before other requests run: about 1 ms."""
_STEP: Final = 25
"""Records that are encoded before other requests run."""
_CHUNK: Final = 256 * 1024
"""Bytes of a response that are read from the file at once."""


class Loads(Protocol):
    """Replaces all data of a running service."""

    async def load(
        self, pages: AsyncIterator[Sequence[Record]], *, replace: bool, offset: int | None, frozen_at: int | None
    ) -> None: ...


class Loaded(Struct):
    """The numbers of records after a snapshot was loaded."""

    counts: dict[str, int]
    """The number of records by type."""
    keys: bool
    """Whether the snapshot had the keys."""


@dataclass(eq=False, repr=False)
class Snapshots:
    """Snapshots of one running service."""

    _engine: Engine
    _key: SigningKey
    _clock: Clock
    _settings: Settings
    _version: str
    _control: Loads
    _check_content: Callable[[Record], None]
    """Raises `ValueError` for a record that its feature could not read."""

    async def save(self, *, keys: bool) -> AsyncIterator[bytes]:
        """Yield a snapshot of this instant. Without `keys`, it has no documents of `SECRET_KINDS`.

        Yields nothing before all data was read. Raises `EngineError`.
        """
        from emulator.control.snapshots.codec import encode_record, type_name

        counts: Counter[str] = Counter()
        state = ClockState(frozen_at=self._clock.now()) if self._clock.frozen else ClockState(self._clock.offset)
        with _temporary_file() as file:
            before = b""
            async for page in self._engine.dump(now=self._clock.now()):
                chosen = [record for record in page if keys or not is_secret(record)]
                for start in range(0, len(chosen), _STEP):
                    some = chosen[start : start + _STEP]
                    counts.update(type_name(type(record)) for record in some)
                    file.write(before + b",\n".join(map(encode_record, some)))
                    before = b",\n"
                    await asyncio.sleep(0)
            file.write(b"\n" * bool(before) + END)
            file.seek(0)
            name = self._settings.environment.name
            yield encode_header(Header(FORMAT, self._version, name, state, keys, dict(counts)))
            while chunk := file.read(_CHUNK):
                yield chunk
                await asyncio.sleep(0)  # a client that reads fast never makes the response wait

    async def load(self, chunks: AsyncIterator[bytes]) -> Loaded:
        """Check a snapshot, replace all data and the clock with it in one step, and count the records.

        Raises `BadRequest` with the line for an invalid snapshot, and `Forbidden` if the clock cannot be moved. Then
        nothing has changed.
        """
        from emulator.control.snapshots.codec import type_name

        async with self._checked_file(chunks) as (file, header, counts):
            await self._control.load(
                self._pages(file, with_own_key=not header.keys),
                replace=True,
                offset=header.clock.offset,
                frozen_at=header.clock.frozen_at,
            )
        audit("snapshot loaded", records=sum(header.counts.values()))
        return Loaded({type_name(each): count for each, count in counts.items()}, header.keys)

    @asynccontextmanager
    async def _checked_file(
        self, chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[tuple[IO[bytes], Header, Counter[type[Record]]]]:
        """Write a snapshot to a temporary file, checking every line; also return the counts once it is loaded."""
        from emulator.control.snapshots.codec import type_name
        from emulator.control.snapshots.reader import SnapshotReader
        from emulator.engines.records import RecordChecks

        reader, checks, counts, alive = SnapshotReader(), RecordChecks(), Counter[str](), AliveCounts()
        with _temporary_file() as file:
            async for chunk in chunks:
                file.write(chunk)
                for start in range(0, len(chunk), _PIECE):
                    records = reader.feed(chunk[start : start + _PIECE])
                    now = instant_of(reader.header, system_now()) if reader.header else 0
                    for line, record in records:
                        self._check(line, record, checks.check, reader.header)
                        counts[type_name(type(record))] += 1
                        alive.add(record, now)
                    await asyncio.sleep(0)
            header = reader.finish()
            check_header(header, self._settings.environment.name, system_now())
            check_counts(header, counts, reader.line)
            file.seek(0)
            yield file, header, alive.counts

    def _check(self, line: int, record: Record, check_order: Callable[[Record], None], header: Header | None) -> None:
        if header is not None and not header.keys and is_secret(record):
            raise invalid(line, f'{record[0].kind}: the first line says "keys":false, so no record may be of this kind')
        try:
            check_order(record)
            self._check_content(record)
        except ValueError as error:
            raise invalid(line, str(error)) from None

    async def _pages(self, file: IO[bytes], *, with_own_key: bool) -> AsyncIterator[Sequence[Record]]:
        """Yield the records in a checked file, with the service's own key in its place among the documents."""
        from emulator.control.snapshots.reader import SnapshotReader

        own = self._key.record() if with_own_key else None
        reader = SnapshotReader()
        while piece := file.read(_PIECE):
            page = [record for _, record in reader.feed(piece)]
            if own is not None and page and _comes_after(page[-1], own):
                at = next(index for index, record in enumerate(page) if _comes_after(record, own))
                page.insert(at, own)
                own = None
            if page:
                yield page
        if own is not None:
            yield [own]


def _comes_after(record: Record, document: DocumentRecord) -> bool:
    return not isinstance(record, DocumentRecord) or record.key > document.key


@contextmanager
def _temporary_file() -> Iterator[IO[bytes]]:
    """Open a temporary file, and turn its errors into `EngineError`."""
    try:
        with TemporaryFile() as file:
            yield file
    except OSError as error:
        raise EngineError(f"cannot use a temporary file: {error.strerror or type(error).__name__}") from error
