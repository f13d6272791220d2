"""Short helpers for tests of pools and rosters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from emulator.core.keys import Key
from emulator.storage.engine import Engine
from emulator.storage.pools import Holding, Stock
from engines.shorthand import END, NOW, key


def source(name: str = "list") -> Key:
    return key(name)._replace(kind="lists")


async def fill(
    engine: Engine,
    items: Sequence[str],
    into: Key | None = None,
    *,
    now: int = NOW,
    expires_at: int = END,
) -> None:
    await engine.pools.fill(into or source(), items, now=now, expires_at=expires_at)


async def assign(
    engine: Engine, stocks: Mapping[Key, Key] | None = None, *, now: int = NOW, expires_at: int = END, note: bytes = b""
) -> None:
    """Assign a list to each pool; by default the list `source()` to the pool `key()`."""
    written = {pool: Stock(of, note) for pool, of in (stocks or {key(): source()}).items()}
    await engine.pools.assign(list(written), lambda _: written, now=now, expires_at=expires_at)


async def stocked(engine: Engine, items: Sequence[str], pool: Key | None = None, *, expires_at: int = END) -> None:
    """Fill a list of the pool's own and assign it."""
    where = pool or key()
    of = where._replace(kind=f"lists of {where.kind}")
    await fill(engine, items, of, expires_at=expires_at)
    await assign(engine, {where: of}, expires_at=expires_at)


async def draw(
    engine: Engine, user: str = "U1", pool: Key | None = None, *, most: int = 1, now: int = NOW
) -> str | None:
    return (await engine.pools.draw(pool or key(), user, limit=lambda _: most, now=now)).item


async def draws(engine: Engine, count: int, pool: Key | None = None, *, now: int = NOW, name: str = "") -> list[str]:
    """Draw concurrently with this many users, and return the items."""
    drawn = await asyncio.gather(*(draw(engine, f"{name}{number}", pool, now=now) for number in range(count)))
    return [item for item in drawn if item is not None]


async def held(engine: Engine, user: str = "U1", pool: Key | None = None, *, now: int = NOW) -> Holding | None:
    where = pool or key()
    return (await engine.pools.held([where], user, now=now)).get(where)


async def drop(engine: Engine, pool: Key | None = None, *, now: int = NOW) -> int | None:
    where = pool or key()
    return (await engine.pools.drop([where], now=now)).get(where)


async def add_members(
    engine: Engine, members: Sequence[str], roster: Key | None = None, *, now: int = NOW, expires_at: int = END
) -> None:
    await engine.rosters.add_members(roster or key(), members, now=now, expires_at=expires_at)


async def listing(engine: Engine, *members: str, beside: Key | None = None, now: int = NOW) -> set[str]:
    """Return the rosters of any of the members."""
    return {found.name for found in await engine.rosters.listing(beside or key(""), members, now=now)}


async def annotate(
    engine: Engine, note: bytes, roster: Key | None = None, *, now: int = NOW, expires_at: int = END
) -> bool:
    return await engine.rosters.annotate(roster or key(), note, now=now, expires_at=expires_at)


async def all_rosters(engine: Engine, group: Key, *, now: int = NOW) -> dict[str, bytes]:
    return {name: note async for page in engine.rosters.all(group, now=now) for name, note in page.items()}
