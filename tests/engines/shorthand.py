"""Short helpers for engine tests: keys, times, one-line operations and listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self, TypeVar

from emulator.core.errors import EngineError
from emulator.core.keys import NEVER, Expired, Key
from emulator.storage.engine import Engine
from emulator.storage.shapes import BallotEntry, Cast, CastRequest, LogEntry, Terms

NOW = 1_700_000_000_000
END = NOW + 60_000

Open = Callable[..., Engine]
"""`open(namespace=…)` returns a closed engine on the data of this test."""

T = TypeVar("T")

MANY = Terms(per_voter=5, per_choice=3, choices=2)

ODD = (
    "",
    " ",
    "a",
    "A",
    "ä",
    "a\u0308",
    "\x00",
    "a\x00",
    "a\x00b",
    "'",
    '"',
    "%",
    "_",
    ":",
    "a:b",
    "{a}",
    "*",
    "\n",
    "🎲",
)
"""Texts that an engine might confuse with each other, or with syntax of its own."""


def key(name: str = "one", *, channel: str | None = "ch", owner: str = "client", user: str = "") -> Key:
    return Key("kind", owner, name, channel, user)


EVERYWHERE = key(channel=None)


async def all_of(pages: AsyncIterator[Sequence[T]]) -> list[T]:
    return [one async for page in pages for one in page]


async def purged(engine: Engine, *, now: int) -> list[Expired]:
    """Purge, and return what was reported, earliest first."""
    return sorted(await all_of(engine.purge(now=now)), key=lambda one: (one.at, one.key))


async def cast(
    engine: Engine,
    voter: str,
    choice: str,
    at: Key | None = None,
    *,
    now: int = NOW,
    expires_at: int = END,
    times: int = 1,
) -> Cast:
    request = CastRequest(voter, choice, times=times)
    return await engine.ballots.cast(at or key(), request, now=now, expires_at=expires_at, tally=True)


async def counts(
    engine: Engine, at: Key | None = None, *, now: int = NOW, top: int | None = None
) -> list[tuple[str, int]]:
    return list((await engine.ballots.tally(at or key(), now=now, top=top)).counts)


async def choice_of(engine: Engine, voter: str, at: Key | None = None, *, now: int = NOW) -> str | None:
    return (await engine.ballots.tally(at or key(), now=now, voter=voter)).choice


async def entries(engine: Engine, at: Key | None = None, *, now: int = NOW, since: int = 0) -> list[BallotEntry]:
    return await all_of(engine.ballots.entries(at or key(), now=now, since=since))


async def write(engine: Engine, value: bytes, at: Key | None = None, *, now: int = NOW, expires_at: int = END) -> None:
    where = at or key()
    await engine.documents.update([where], lambda _: {where: value}, now=now, expires_at=expires_at)


async def keep(
    engine: Engine, documents: Mapping[Key, bytes], *, replace: bool, now: int = NOW, expires_at: int = NEVER
) -> Mapping[Key, bytes]:
    """Keep documents, and wait until they are on disk; return those that stay as they were."""
    kept = await engine.documents.keep(documents, replace=replace, now=now, expires_at=expires_at)
    if kept.saved is not None:
        await kept.saved
    return kept.found


async def read(engine: Engine, at: Key | None = None, *, now: int = NOW) -> bytes | None:
    where = at or key()
    return (await engine.documents.read([where], now=now)).get(where)


async def append(engine: Engine, value: bytes, at: Key | None = None, *, now: int = NOW, expires_at: int = END) -> None:
    await engine.logs.append(at or key(), value, now=now, expires_at=expires_at)


async def items(engine: Engine, at: Key | None = None, *, now: int = NOW, since: int = 0) -> list[LogEntry]:
    return await all_of((await engine.logs.read(at or key(), now=now, since=since)).pages)


async def latest(engine: Engine, at: Key | None = None, *, now: int = NOW, since: int = 0) -> int:
    return (await engine.logs.read(at or key(), now=now, since=since)).latest


WITHIN = 10.0
"""Seconds in which messages must arrive."""


class Listener:
    """Records the messages that an engine's relay delivers, in order."""

    def __init__(self, engine: Engine) -> None:
        self.received: list[tuple[Key, bytes]] = []
        self._news = asyncio.Event()
        engine.relay.listen(self._receive)

    async def has(self, count: int) -> None:
        """Wait for exactly `count` messages in total."""
        async with asyncio.timeout(WITHIN):
            while len(self.received) < count:
                self._news.clear()
                await self._news.wait()
        assert len(self.received) == count, self.received[-3:]

    def _receive(self, topic: Key, message: bytes) -> None:
        self.received.append((topic, message))
        self._news.set()


async def wait_until_connected(engines: Sequence[Engine]) -> None:
    """Publish repeatedly on each engine, until all others get its messages."""
    for publisher in engines:
        listeners = [Listener(each) for each in engines if each is not publisher]
        async with asyncio.timeout(WITHIN):
            while not all(each.received for each in listeners):
                with suppress(EngineError):
                    await publisher.relay.publish(key(), b"1")
                await asyncio.sleep(0.02)


class LoopPasses:
    """Counts the passes of the event loop during the block."""

    count = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)
