"""Reads a ballot's entries while voting goes on.

Redis returns the casts as they are stored, and keeps those that are replaced during a reading.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec

from emulator.engines.redis.keys import channel_last, channel_last_prefix, expiry_arg, now_arg
from emulator.engines.redis.nodes import Reply
from emulator.engines.redis.pipeline import ENTRIES, Pipeline
from emulator.engines.redis.reading import PAGE, Position, merged_pages
from emulator.engines.shapes import NEVER, BallotEntry, Key
from emulator.errors import EngineError


class _Cast(msgspec.Struct, array_like=True, gc=False):
    """One of a voter's casts, as `ballots.lua` packs it."""

    number: str
    choice: str
    times: int
    at: str
    note: str
    """Bytes that are not UTF-8 are surrogates, as `surrogateescape` makes them."""
    is_whole: int = 0


class _RawCast(msgspec.Struct, array_like=True):
    number: str
    choice: str
    times: int
    at: str
    note: msgspec.Raw
    is_whole: int = 0


class _Replaced(msgspec.Struct, array_like=True):
    """A cast that a later one replaced during a reading."""

    voter: str
    choice: str
    times: int
    note: msgspec.Raw


_Row = tuple[bytes, bytes, _Cast]
"""Position, that is time and number of 16 digits each; voter; and cast."""
_END = b"\xff"
"""After all positions."""
_decode_casts = msgspec.msgpack.Decoder(list[_Cast]).decode
_decode_raw_casts = msgspec.msgpack.Decoder(list[_RawCast]).decode
_decode_replaced = msgspec.msgpack.Decoder(_Replaced).decode
_HEADERS = {0xD9: 2, 0xDA: 3, 0xDB: 5}
"""Bytes of the header of a MessagePack text by its first byte; any other has one byte."""


def _casts(packed: bytes) -> list[_Cast]:
    try:
        return _decode_casts(packed)
    except UnicodeDecodeError:  # `msgspec` reads texts as UTF-8 only
        return [
            _Cast(each.number, each.choice, each.times, each.at, _text(each.note), each.is_whole)
            for each in _decode_raw_casts(packed)
        ]


def _text(packed: msgspec.Raw) -> str:
    raw = bytes(packed)
    return raw[_HEADERS.get(raw[0], 1) :].decode("utf-8", "surrogateescape")


def _cast_of(member: bytes, casts: Sequence[_Cast]) -> _Cast:
    """Return the one of a voter's casts that a member of the set by age names."""
    if len(casts) == 1:
        return casts[0]
    number = member[16:32].decode()
    return next(cast for cast in casts if cast.number == number)


def _replaced_row(member: bytes) -> _Row:
    old = _decode_replaced(member[48:])
    return member[:32], old.voter.encode(), _Cast("", old.choice, old.times, "", _text(old.note))


def _entry(row: _Row) -> BallotEntry:
    position, voter, cast = row
    return BallotEntry(voter.decode(), cast.choice, cast.times, int(position[:16]), _note(cast.note))


def _note(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _joined_notes(rows: Sequence[_Row], separator: str) -> bytes | None:
    """Return the joined notes of rows, or `None` if one of them is not whole."""
    casts = [cast for _, _, cast in rows]
    return _note(separator.join([cast.note for cast in casts])) if all(cast.is_whole for cast in casts) else None


class Reading:
    """Reads the entries of one ballot with numbers below a bound, oldest first."""

    def __init__(self, pipeline: Pipeline, id: bytes, reading: bytes, since: int, bound: bytes) -> None:
        self._pipeline = pipeline
        self._args = (id, reading)
        self._start = b"[" + expiry_arg(since)
        self._bound = bound

    def request(self, size: int) -> asyncio.Future[Reply]:
        """Begin to read the next rows, at most `size`; `rows` takes the reply."""
        return self._pipeline.enqueue(ENTRIES, (b"page", *self._args, self._start, b"%d" % size)).reply

    def rows(self, reply: Reply, size: int) -> tuple[list[_Row], bool]:
        """Return the rows of a reply to `request`, and whether there may be more."""
        (members, casts, replaced), bound = reply, self._bound
        unread, of_voter = iter(casts), dict[bytes, list[_Cast]]()
        rows: list[_Row] = []
        for member in members:
            voter = member[32:]
            found = of_voter.get(voter)
            if found is None:
                found = of_voter[voter] = _casts(next(unread))
            if member[16:32] < bound:
                rows.append((member[:32], voter, _cast_of(member, found)))
        ends = [some[-1][:32] for some in (members, replaced) if len(some) == size]
        last = min(ends, default=_END)
        # A replaced entry belongs to the readings that began after its cast and before its replacement.
        if old := [_replaced_row(member) for member in replaced if member[16:32] < bound <= member[32:48]]:
            rows = sorted(rows + old)[:size]
            last = min(last, rows[-1][0]) if len(rows) == size else last
        if replaced:
            rows = [row for row in rows if row[0] <= last]
        self._start = b"(" + last + b"\xff"
        return rows, last is not _END

    async def fetch(self, size: int) -> tuple[list[tuple[Position, BallotEntry]], bool]:
        rows, has_more = self.rows(await self.request(size), size)
        return [((int(row[0][:16]), int(row[0][16:])), _entry(row)) for row in rows], has_more


class Readings:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        async with self._open_readings(key, now, since) as readings:
            async for page in merged_pages([reading.fetch for reading in readings], limit):
                yield page

    async def notes(
        self, key: Key, *, now: int, separator: bytes, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[bytes | Sequence[BallotEntry]]:
        async with self._open_readings(key, now, since) as readings:
            if len(readings) != 1:
                async for page in merged_pages([reading.fetch for reading in readings], limit):
                    yield page
                return
            [reading] = readings
            left = NEVER if limit is None else limit
            size = min(PAGE, left)
            reply = reading.request(size)
            while left > 0:
                rows, has_more = reading.rows(await reply, size)
                left = left - len(rows) if has_more else 0
                size = min(PAGE, left)
                if left:  # Redis reads the next page while this one is sent
                    reply = reading.request(size)
                if rows:
                    yield _joined_notes(rows, separator.decode()) or [_entry(row) for row in rows]

    @asynccontextmanager
    async def _open_readings(self, key: Key, now: int, since: int) -> AsyncIterator[list[Reading]]:
        id = uuid.uuid4().bytes
        name, is_all = (channel_last_prefix(key), b"1") if key.channel is None else (channel_last(key), b"0")
        bound, *ballots = await self._pipeline.run(ENTRIES, b"begin", id, now_arg(now), is_all, name)
        try:
            yield [Reading(self._pipeline, ballot, id, since, bound) for ballot in ballots]
        finally:
            if ballots:
                with suppress(EngineError):  # not awaited, because the reading may have been cancelled
                    self._pipeline.enqueue(ENTRIES, [b"finish", id, *ballots])
