"""Writes records (`engines/records.py`) into a namespace.

To replace everything, the records are written under a new generation in short steps, and then that generation becomes
the present one. Other records are written by one script call, so they must be few.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage import records as types
from emulator.storage.records import Record, digest_of
from emulator.storage.redis.keys import channel_last, expiry_arg, name_last, name_last_prefix, user_last
from emulator.storage.redis.pipeline import LOAD, Pipeline

STEP: Final = 250
"""Records that one script call writes."""
_LIST_PAGE: Final = 500
_PRESENT: Final = b""
"""In place of a generation: the present one."""
_CLEARED: Final[dict[type[Record], tuple[bytes, Callable[[Key], bytes]]]] = {
    types.DocumentRecord: (b"d", user_last),
    types.BallotRecord: (b"b", channel_last),
    types.ItemRecord: (b"l", channel_last),
    types.ListRecord: (b"s", user_last),
    types.PoolRecord: (b"p", user_last),
    types.RosterRecord: (b"q", name_last),
}
"""The letter and the name of the key that a record replaces."""


class Load:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def __call__(self, pages: AsyncIterator[Sequence[Record]], *, replace: bool) -> None:
        if replace:
            await self._replace(pages)
            return
        records = [record async for page in pages for record in page]
        writing = _Writing(self._pipeline, _PRESENT)
        await writing.write(records, clear=True)
        await writing.finish()

    async def _replace(self, pages: AsyncIterator[Sequence[Record]]) -> None:
        generation: bytes = await self._pipeline.run(LOAD, b"begin", _PRESENT)
        writing = _Writing(self._pipeline, generation)
        try:
            async for page in pages:
                for start in range(0, len(page), STEP):
                    await writing.write(page[start : start + STEP])
            await writing.finish()
            if not await self._pipeline.run(LOAD, b"show", generation):
                raise EngineError(_GIVEN_UP)
        except BaseException:
            with suppress(EngineError):  # `tidy` finds it in the end
                await self._pipeline.run(LOAD, b"give_up", generation)
            raise


_GIVEN_UP: Final = "the load took too long; nothing was replaced"


class _Writing:
    """Writes records to one generation."""

    def __init__(self, pipeline: Pipeline, generation: bytes) -> None:
        self._pipeline = pipeline
        self._generation = generation
        self._ballots: list[bytes] = []
        self._lists: list[tuple[bytes, bytes]] = []
        """The lists of live pools, with their families."""

    async def write(self, records: Sequence[Record], *, clear: bool = False) -> None:
        args: list[bytes] = []
        cleared: dict[tuple[bytes, bytes], None] = {}
        for record in records:
            args += self._args(record)
            if clear and type(record) in _CLEARED:
                letter, name = _CLEARED[type(record)]
                cleared[letter, name(record[0])] = None
        flat = [part for each in cleared for part in each]
        if not await self._pipeline.run(LOAD, b"write", self._generation, b"%d" % len(cleared), *flat, *args):
            raise EngineError(_GIVEN_UP)

    async def finish(self) -> None:
        for start in range(0, len(self._ballots), STEP):
            args = [part for name in self._ballots[start : start + STEP] for part in (b"f", name)]
            await self._pipeline.run(LOAD, b"write", self._generation, b"0", *args)
        for source, family in self._lists:
            await resolve_spent(self._pipeline, source, family, generation=self._generation)

    def _args(self, record: Record) -> tuple[bytes, ...]:
        match record:
            case types.DocumentRecord(key, expires_at, value):
                return b"d", user_last(key), expiry_arg(expires_at), value
            case types.BallotRecord(key, expires_at, definition, terms):
                self._ballots.append(name := channel_last(key))
                times = (expiry_arg(terms.opens_at), expiry_arg(terms.closes_at))
                text = b"" if definition is None else b"=" + definition
                return b"b", name, expiry_arg(expires_at), text, *times, *(b"%d" % number for number in terms[2:])
            case types.ChoiceRecord(key, choice):
                return b"c", channel_last(key), choice.encode()
            case types.EntryRecord(key, (voter, choice, times, at, note), whole):
                texts = (voter.encode(), choice.encode())
                return b"e", channel_last(key), *texts, b"%d" % times, expiry_arg(at), note, b"%d" % whole
            case types.ItemRecord(key, at, expires_at, value):
                return b"i", channel_last(key), expiry_arg(at), expiry_arg(expires_at), value
            case _:
                return self._args_of_rewards(record)

    def _args_of_rewards(self, record: Any) -> tuple[bytes, ...]:
        match record:
            case types.ListRecord(key, expires_at):
                return b"s", user_last(key), expiry_arg(expires_at)
            case types.ListItemsRecord(key, items):
                return b"t", user_last(key), "\0".join(items).encode()
            case types.PoolRecord(key, _, expires_at, source, note):
                if source is not None:
                    self._lists.append((user_last(source), name_last_prefix(key)))
                return b"p", user_last(key), expiry_arg(expires_at), user_last(source) if source else b"", note
            case types.HandedRecord(key, number, user, item):
                return b"h", user_last(key), b"%d" % number, user.encode(), item.encode()
            case types.SpentRecord(key, digest):
                return b"x", name_last_prefix(key), digest.encode()
            case types.RosterRecord(key, expires_at, note):
                return b"q", name_last(key), expiry_arg(expires_at), note
            case types.MemberRecord(key, member):
                return b"m", name_last(key), member.encode()
            case _:
                raise TypeError(f"not a record: {type(record).__name__}")


async def resolve_spent(pipeline: Pipeline, source: bytes, family: bytes, *, generation: bytes = _PRESENT) -> None:
    """Mark items of a list as spent whose digest a load has recorded.

    The loaded data has only digests of spent items.
    """
    start = 0
    while await pipeline.run(LOAD, b"has_digests", generation, family):
        ends = (b"%d" % start, b"%d" % (start + _LIST_PAGE - 1))
        items = await pipeline.run(LOAD, b"list", generation, source, *ends)
        if not items:
            return
        digests = [part for item in items for part in (item, digest_of(item.decode()).hex().encode())]
        await pipeline.run(LOAD, b"resolve", generation, family, *digests)
        start += _LIST_PAGE
