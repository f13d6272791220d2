"""Saves and loads snapshots as streams, through temporary files, so that memory does not grow with the data."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any

from msgspec import Struct

from emulator.auth.signing_key import SigningKey
from emulator.control.operation import Control
from emulator.control.snapshots.codec import (
    FORMAT,
    LAST_LINE,
    SnapshotHeader,
    check_header,
    encode_header,
    encode_record,
    invalid,
    is_secret,
    read_header,
    read_records,
    type_name,
)
from emulator.core.clock import Clock, system_now
from emulator.core.errors import temporary_file_errors
from emulator.core.observability.audit import audit
from emulator.core.settings import Settings
from emulator.core.wire.refusals import invalid_parameter
from emulator.http.endpoint import Call, Parameter, control_endpoint
from emulator.storage.engine import Engine
from emulator.storage.records import Record, RecordChecks

_RECORDS_PER_STEP = 25
"""Records that are encoded before other requests run."""
_CHUNK_BYTES = 256 * 1024
"""Bytes of a response that are read from the file at once."""


class LoadResult(Struct):
    """The result of loading a snapshot."""

    counts: dict[str, int]
    """The number of records that the service now has, by type."""
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
    _control: Control
    _check_content: Callable[[Record], None]
    """Raises `ValueError` for a record that its feature could not read."""

    async def save(self, *, keys: bool) -> AsyncIterator[bytes]:
        """Yield a snapshot of this instant. Without `keys`, it has no documents of `SECRET_KINDS`.

        Yields nothing before all data was read. Raises `EngineError`.
        """
        counts: Counter[str] = Counter()
        state = self._clock.state
        with temporary_file_errors(), TemporaryFile() as file:
            before = b""
            async for page in self._engine.dump(now=self._clock.now()):
                chosen = [record for record in page if keys or not is_secret(record)]
                for start in range(0, len(chosen), _RECORDS_PER_STEP):
                    some = chosen[start : start + _RECORDS_PER_STEP]
                    counts.update(type_name(record) for record in some)
                    file.write(before + b",\n".join(map(encode_record, some)))
                    before = b",\n"
                    await asyncio.sleep(0)
            file.write(b"\n" * bool(before) + LAST_LINE)
            file.seek(0)
            name = self._settings.environment.name
            yield encode_header(SnapshotHeader(FORMAT, self._version, name, state, keys, dict(counts)))
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
                await asyncio.sleep(0)  # a client that reads fast never makes the response wait

    async def load(self, chunks: AsyncIterator[bytes]) -> LoadResult:
        """Check a snapshot, replace all data and the clock with it in one step, and count the records.

        Raises `BadRequest` with the line for an invalid snapshot; then nothing has changed.
        """
        with temporary_file_errors(), TemporaryFile() as file:
            async for chunk in chunks:
                file.write(chunk)
            file.seek(0)
            header = await self._check(file)
            file.seek(0)
            own = [] if header.keys else [self._key.record()]
            await self._control.load(_records_in(file, own), replace=True, clock=header.clock)
        audit("snapshot loaded", records=sum(header.counts.values()))
        counts: Counter[str] = Counter()
        async for page in self._engine.dump(now=self._clock.now()):
            counts.update(type_name(record) for record in page if header.keys or not is_secret(record))
        return LoadResult(dict(counts), header.keys)

    async def _check(self, file: IO[bytes]) -> SnapshotHeader:
        """Check all lines of a snapshot, and return its header. Raises `BadRequest`."""
        header, checks, counts = read_header(file), RecordChecks(), Counter[str]()
        check_header(header, self._settings.environment.name, system_now())
        for page in read_records(file):
            for line, record in page:
                if not header.keys and is_secret(record):
                    problem = 'the first line says "keys":false, so no record may be of this kind'
                    raise invalid(line, f"{record[0].kind}: {problem}")
                try:
                    checks.check(record)
                    self._check_content(record)
                except ValueError as error:
                    raise invalid(line, str(error)) from None
                counts[type_name(record)] += 1
            await asyncio.sleep(0)
        for name in sorted({*header.counts, *counts}):
            declared, found = header.counts.get(name, 0), counts[name]
            if declared != found:
                last = counts.total() + 2  # the first line is the header
                raise invalid(last, f"{name}: the first line counts {declared:,} records, but there are {found:,}")
        return header


async def _records_in(file: IO[bytes], own: Sequence[Record]) -> AsyncIterator[Sequence[Record]]:
    """Yield the service's own key, if the snapshot has none, and then the records in a checked file."""
    yield own
    read_header(file)
    for page in read_records(file):
        yield [record for _, record in page]


_KEYS = Parameter("keys", "`true` includes the signing key, links, PINs and PIN tokens.")


@control_endpoint("GET", "/_emulator/snapshot", query=(_KEYS,), answer=dict[str, Any], secrets=frozenset({"*"}))
async def save_snapshot(snapshots: Snapshots, call: Call) -> AsyncIterator[bytes]:
    """Save all data and the clock as one JSON document with one record per line."""
    keys = call.text("keys") or "false"
    if keys not in ("true", "false"):
        raise invalid_parameter("keys", keys, "true or false")
    return snapshots.save(keys=keys == "true")


@control_endpoint(
    "PUT",
    "/_emulator/snapshot",
    body=dict[str, Any],
    answer=LoadResult,
    limit="snapshot",
    streamed=True,
    secrets=frozenset({"*"}),
)
async def load_snapshot(snapshots: Snapshots, call: Call) -> LoadResult:
    """Replace all data and the clock with a snapshot, in one step. The body is streamed, and checked completely first.

    The response counts the records that the service then has. After a snapshot without keys, the service keeps its own
    signing key, but all links, PINs and refresh tokens end.
    """
    return await snapshots.load(call.chunks)
