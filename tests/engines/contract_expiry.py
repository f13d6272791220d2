"""The contract of expiries: a write never shortens one, because the clock may be wrong when it is made."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping

import pytest

from emulator.engines.base import NEVER, CastRequest, Terms
from emulator.engines.engine import Engine
from emulator.engines.records import ListRecord
from engines.pool_shorthand import add_members, assign, draw, fill, held, listing, source
from engines.shorthand import NOW, append, key, read, write

DAY = 24 * 3_600_000
LIFETIME = 7 * DAY
SCHEDULES, STEPS = 12, 8

Write = Callable[[Engine, int, int], Awaitable[object]]
"""Writes a thing at a time, with an expiry."""
IsAlive = Callable[[Engine, int], Awaitable[bool]]


async def _document(engine: Engine, now: int, end: int) -> None:
    await write(engine, b"%d" % end, now=now, expires_at=end)


async def _has_document(engine: Engine, now: int) -> bool:
    return await read(engine, now=now) is not None


async def _cast(engine: Engine, now: int, end: int) -> None:
    await engine.ballots.cast(key("poll"), CastRequest(f"U{end}", "a"), now=now, expires_at=end)


async def _has_cast(engine: Engine, now: int) -> bool:
    return bool((await engine.ballots.tally(key("poll"), now=now)).counts)


async def _definition(engine: Engine, now: int, end: int) -> None:
    await engine.ballots.define(key("defined"), b"%d" % end, Terms(), now=now, expires_at=end)


async def _has_definition(engine: Engine, now: int) -> bool:
    return await engine.ballots.definition(key("defined"), now=now) is not None


async def _item(engine: Engine, now: int, end: int) -> None:
    await append(engine, b"1", key("log"), now=now, expires_at=end)


async def _has_item(engine: Engine, now: int) -> bool:
    return (await engine.logs.read(key("log"), now=now)).latest != 0


async def _list(engine: Engine, now: int, end: int) -> None:
    await fill(engine, [f"{end}"], source("unused"), now=now, expires_at=end)


async def _has_list(engine: Engine, now: int) -> bool:
    records = [record async for page in engine.dump(now=now) for record in page]
    return any(isinstance(record, ListRecord) and record.key == source("unused") for record in records)


async def _pool(engine: Engine, now: int, end: int) -> None:
    await assign(engine, {key("pool"): source("of pool")}, now=now, expires_at=end)


async def _has_pool(engine: Engine, now: int) -> bool:
    return bool(await engine.pools.stocks([key("pool")], now=now))


async def _member(engine: Engine, now: int, end: int) -> None:
    await add_members(engine, ["U1"], key("roster"), now=now, expires_at=end)


async def _has_member(engine: Engine, now: int) -> bool:
    return bool(await listing(engine, "U1", now=now))


KINDS: Mapping[str, tuple[Write, IsAlive]] = {
    "document": (_document, _has_document),
    "cast": (_cast, _has_cast),
    "definition": (_definition, _has_definition),
    "log": (_item, _has_item),
    "list": (_list, _has_list),
    "pool": (_pool, _has_pool),
    "roster": (_member, _has_member),
}


class ExpiryContract:
    @pytest.mark.parametrize("kind", KINDS)
    async def test_a_write_under_a_clock_set_back_shortens_no_expiry(self, engine: Engine, kind: str) -> None:
        change, is_alive = KINDS[kind]
        await change(engine, NOW, NOW + LIFETIME)
        await change(engine, NOW - 8 * DAY, NOW - DAY)

        await engine.purge(now=NOW + LIFETIME - 1)

        assert await is_alive(engine, NOW + LIFETIME - 1)
        assert not await is_alive(engine, NOW + LIFETIME)

    @pytest.mark.parametrize("kind", KINDS)
    async def test_a_thing_lives_as_long_as_its_latest_expiry(self, engine: Engine, kind: str) -> None:
        """Whatever steps the clock takes between the writes."""
        change, is_alive = KINDS[kind]
        for seed in range(SCHEDULES):
            await engine.reset()
            steps = random.Random(f"{kind} {seed}")
            latest = 0
            for _ in range(STEPS):
                now = NOW + steps.randrange(-30, 6) * DAY
                if latest <= now:  # it has expired, and starts again
                    latest = 0
                end = now + steps.choice((DAY, LIFETIME, LIFETIME, 14 * DAY))
                await change(engine, now, end)
                latest = max(latest, end)
            assert (await is_alive(engine, latest - 1), await is_alive(engine, latest)) == (True, False), seed

    async def test_a_pool_and_what_it_handed_out_live_as_long_as_its_list(self, engine: Engine) -> None:
        await fill(engine, ["a"], expires_at=NOW + 20)
        await assign(engine, expires_at=NOW + 5)
        await draw(engine)

        for now, lives in ((NOW + 19, True), (NOW + 20, False)):
            await engine.purge(now=now)
            assert lives == bool(await engine.pools.stocks([key()], now=now)), now
            assert lives == (await held(engine, now=now) is not None), now

    async def test_a_pool_with_another_list_ends_no_earlier(self, engine: Engine) -> None:
        await assign(engine, expires_at=NOW + 20)
        await assign(engine, {key(): source("other")}, expires_at=NOW + 5)

        await engine.purge(now=NOW + 19)

        assert {key(): (source("other"), b"")} == await engine.pools.stocks([key()], now=NOW + 19)
        assert {} == await engine.pools.stocks([key()], now=NOW + 20)

    async def test_a_write_may_let_a_document_end_earlier(self, engine: Engine) -> None:
        await write(engine, b"1", expires_at=NEVER)

        await engine.documents.update(
            [key()], lambda _: {key(): b"2"}, now=NOW, expires_at=NOW + 5, may_end_earlier=True
        )

        assert (b"2", None) == (await read(engine, now=NOW + 4), await read(engine, now=NOW + 5))

    async def test_what_is_written_again_after_a_removal_has_a_new_expiry(self, engine: Engine) -> None:
        await write(engine, b"1", expires_at=NEVER)
        await engine.documents.drop([key()], now=NOW)
        await write(engine, b"2", expires_at=NOW + 5)
        await engine.ballots.cast(key(), CastRequest("U1", "a"), now=NOW, expires_at=NEVER)
        await engine.ballots.drop(key(), now=NOW)
        await engine.ballots.cast(key(), CastRequest("U1", "a"), now=NOW, expires_at=NOW + 5)

        assert await read(engine, now=NOW + 5) is None
        assert (await engine.ballots.tally(key(), now=NOW + 5)).counts == ()
