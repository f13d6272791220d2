"""Short words for what the contract's tests are about: keys, instants, and readings taken to their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from emulator.engines.base import Cast, CastRequest, Entry, Item, Key, Terms
from emulator.engines.engine import Engine

NOW = 1_700_000_000_000
END = NOW + 60_000

Open = Callable[..., Engine]
"""`open(namespace=…)` gives a closed engine on the data of this test."""

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
"""Texts that must not be taken for one another, nor for anything but text."""


def key(name: str = "one", *, channel: str | None = "ch", owner: str = "client", user: str = "") -> Key:
    return Key("kind", owner, name, channel, user)


EVERYWHERE = key(channel=None)


async def all_of(pages: AsyncIterator[Sequence[T]]) -> list[T]:
    return [one async for page in pages for one in page]


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
    mark = CastRequest(voter, choice, times=times)
    return await engine.ballots.cast(at or key(), mark, now=now, expires_at=expires_at, tally=True)


async def counts(
    engine: Engine, at: Key | None = None, *, now: int = NOW, top: int | None = None
) -> list[tuple[str, int]]:
    return list((await engine.ballots.tally(at or key(), now=now, top=top)).counts)


async def choice_of(engine: Engine, voter: str, at: Key | None = None, *, now: int = NOW) -> str | None:
    return (await engine.ballots.tally(at or key(), now=now, voter=voter)).choice


async def entries(engine: Engine, at: Key | None = None, *, now: int = NOW, since: int = 0) -> list[Entry]:
    return await all_of(engine.ballots.entries(at or key(), now=now, since=since))


async def write(engine: Engine, value: bytes, at: Key | None = None, *, now: int = NOW, expires_at: int = END) -> None:
    where = at or key()
    await engine.documents.update([where], lambda _: {where: value}, now=now, expires_at=expires_at)


async def read(engine: Engine, at: Key | None = None, *, now: int = NOW) -> bytes | None:
    where = at or key()
    return (await engine.documents.read([where], now=now)).get(where)


async def append(engine: Engine, value: bytes, at: Key | None = None, *, now: int = NOW, expires_at: int = END) -> None:
    await engine.logs.append(at or key(), value, now=now, expires_at=expires_at)


async def items(engine: Engine, at: Key | None = None, *, now: int = NOW, since: int = 0) -> list[Item]:
    return await all_of((await engine.logs.read(at or key(), now=now, since=since)).pages)


async def latest(engine: Engine, at: Key | None = None, *, now: int = NOW, since: int = 0) -> int:
    return (await engine.logs.read(at or key(), now=now, since=since)).latest


WITHIN = 10.0
"""Seconds in which what other engines are told has to arrive."""


class Listener:
    """What an engine's relay has delivered, in order."""

    def __init__(self, engine: Engine) -> None:
        self.heard: list[tuple[Key, bytes]] = []
        self._news = asyncio.Event()
        engine.relay.listen(self._hear)

    async def has(self, count: int) -> None:
        """Wait until so many messages have come; more are too many."""
        async with asyncio.timeout(WITHIN):
            while len(self.heard) < count:
                self._news.clear()
                await self._news.wait()
        assert len(self.heard) == count, self.heard[-3:]

    def _hear(self, topic: Key, message: bytes) -> None:
        self.heard.append((topic, message))
        self._news.set()
