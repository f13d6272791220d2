"""The contract of setting a namespace aside: one step takes all that was written before, another brings it back."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from emulator.engines.engine import Engine
from emulator.errors import EngineError
from engines.contract_dump import dumped, fill_all, load
from engines.shorthand import Open, cast, choice_of, counts, key, write


async def can_set_aside(engine: Engine) -> bool:
    """Return whether the engine can do it; if not, check that it says so and changes nothing."""
    if not engine.can_copy:
        await write(engine, b"1")
        before = await dumped(engine)
        with pytest.raises(EngineError):
            await engine.set_aside()
        with pytest.raises(EngineError):
            await engine.take_back()
        assert before == await dumped(engine)
    return engine.can_copy


class AsideContract:
    async def test_what_was_set_aside_comes_back_and_later_writes_are_gone(self, engine: Engine) -> None:
        if not await can_set_aside(engine):
            return
        await fill_all(engine)
        before = await dumped(engine)

        await engine.set_aside()
        assert [] == await dumped(engine)
        await fill_all(engine)
        await write(engine, b"later", key("later"))
        await engine.take_back()

        assert before == await dumped(engine)

    async def test_each_of_many_simultaneous_casts_is_before_or_after_and_none_is_lost(self, engine: Engine) -> None:
        if not await can_set_aside(engine):
            return
        voters = [f"U{number}" for number in range(200)]
        work = [partial(cast, engine, voter, "a") for voter in voters]
        await asyncio.gather(*(each() for each in work[:100]), engine.set_aside(), *(each() for each in work[100:]))
        after = {voter for voter in voters if await choice_of(engine, voter)}

        await engine.take_back()

        before = {voter for voter in voters if await choice_of(engine, voter)}
        assert (set(voters), set()) == (before | after, before & after)

    async def test_a_second_time_replaces_what_was_kept_and_a_drop_deletes_it(self, engine: Engine) -> None:
        if not await can_set_aside(engine):
            return
        for name in ("first", "second"):
            await write(engine, b"1", key(name))
            await engine.set_aside()
        await engine.take_back()
        assert [key("second")] == [record[0] for record in await dumped(engine)]

        await engine.set_aside()
        await engine.drop_aside()
        await engine.drop_aside()
        with pytest.raises(EngineError):
            await engine.take_back()
        await engine.tidy()
        assert 0 == await engine.size()

    async def test_a_copy_of_a_namespace_leaves_out_what_each_has_aside(self, engine: Engine, open: Open) -> None:
        if not await can_set_aside(engine):
            return
        async with open(namespace="copy") as copy:
            for each in (engine, copy):
                await load(each, [])
                await write(each, b"old", key("old"))
                await each.set_aside()
            await write(engine, b"new", key("new"))

            await copy.copy(engine, now=0)

            assert await dumped(engine) == await dumped(copy)
            await copy.take_back()
            assert [key("old")] == [record[0] for record in await dumped(copy)]

    async def test_a_refused_take_back_leaves_the_writes_beside_it(self, engine: Engine) -> None:
        if not await can_set_aside(engine):
            return
        await cast(engine, "U1", "a")

        _, refused = await asyncio.gather(cast(engine, "U2", "a"), engine.take_back(), return_exceptions=True)

        assert isinstance(refused, EngineError)
        assert await counts(engine) == [("a", 2)]
