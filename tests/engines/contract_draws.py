"""The contract of a draw of a reward code: also draws during marks and deletes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

import pytest

from emulator.core.callers import Caller, Role
from emulator.core.clock import DAY, Clock
from emulator.core.errors import BadRequest
from emulator.core.keys import Key
from emulator.features.codes.grants import GrantBody
from emulator.features.codes.service import CodeSets
from emulator.features.codes.uploads import NamesBody
from emulator.features.directory import Directory
from emulator.storage.engine import Engine
from engines.shorthand import purged

BACKEND = Caller("client", Role.BACKEND, None, None, "A-backend")
VIEWERS = {
    "with a shared id": Caller("client", Role.VIEWER, "7", "5", "Uopaque"),
    "with an opaque id only": Caller("client", Role.VIEWER, "7", None, "U5"),
}


class Overtaken:
    """A shape of an engine; another node does something right before the first operation of one name."""

    def __init__(self, shape: Any, operation: str, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._shape, self._operation, self._meanwhile = shape, operation, meanwhile

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._shape, name)
        if name != self._operation:
            return found
        self._operation = ""

        async def later(*args: Any, **kwargs: Any) -> Any:
            await self._meanwhile()
            return await found(*args, **kwargs)

        return later


class NoPolls:
    async def voters(
        self, caller: Caller, channel: str | None, poll_id: str, value: int
    ) -> AsyncIterator[Sequence[tuple[str, int]]]:
        for page in ():
            yield page


def code_sets(engine: Engine) -> CodeSets:
    return wired(engine.documents, engine.pools, engine.rosters)


def overtaken(engine: Engine, shape: str, operation: str, meanwhile: Callable[[], Awaitable[None]]) -> CodeSets:
    shapes: dict[str, Any] = {"pools": engine.pools, "rosters": engine.rosters}
    shapes[shape] = Overtaken(shapes[shape], operation, meanwhile)
    return wired(engine.documents, **shapes)


def wired(documents: Any, pools: Any, rosters: Any, clock: Clock | None = None) -> CodeSets:
    clock = clock or Clock()
    return CodeSets(pools, rosters, clock, NoPolls(), Directory(documents, clock))  # type: ignore[arg-type]


async def put(sets: CodeSets, *codes: str, index: int = 0) -> None:
    async with sets.new_upload(BACKEND) as upload:
        await upload.add(0, 0, list(codes))
        await sets.define(upload, NamesBody([f"set {index}"], [index]), 1)


async def mark(sets: CodeSets, *users: str, prize: int = 0) -> None:
    body = GrantBody(prize_limits=[1] * 10, prizes=[prize])
    async with sets.new_grant(BACKEND) as grant:
        await grant.add(users)
        await grant.put_in_effect(body)


class DrawsContract:
    @pytest.mark.parametrize("operation", ["listing", "add_members", "annotate"])
    async def test_a_mark_keeps_the_marks_of_a_set_that_another_node_has_just_added(
        self, engine: Engine, operation: str
    ) -> None:
        other_node, (viewer, _) = code_sets(engine), VIEWERS.values()

        async def add_set() -> None:
            await put(other_node, "b", index=1)
            await mark(other_node, "5", prize=1)

        node = overtaken(engine, "rosters", operation, add_set)
        await put(other_node, "a")
        await mark(node, "6")

        assert [0, 1] == await node.eligibility(viewer)

    @pytest.mark.parametrize("operation", ["add_members", "annotate"])
    async def test_a_mark_lives_as_long_as_a_set_that_another_node_has_just_renewed(
        self, engine: Engine, operation: str
    ) -> None:
        clock = Clock()
        other_node = wired(engine.documents, engine.pools, engine.rosters, clock=clock)

        async def renew_set() -> None:
            clock.advance(10 * DAY)
            await put(other_node, "b")

        node = overtaken(engine, "rosters", operation, renew_set)
        await put(other_node, "a")
        await mark(node, "5")
        clock.advance(89 * DAY)
        await purged(engine, now=clock.now())

        assert [1] == await other_node.eligibility(VIEWERS["with a shared id"])

    async def test_an_upload_extends_all_marks_of_living_sets_and_deletes_the_others(self, engine: Engine) -> None:
        clock, viewer = Clock(), VIEWERS["with a shared id"]
        sets = wired(engine.documents, engine.pools, engine.rosters, clock=clock)
        await put(sets, "a", index=0)
        await put(sets, "b", index=1)
        for number in range(120):
            await mark(sets, "5", prize=number % 2)
        for index in (0, 0):
            clock.advance(60 * DAY)
            await put(sets, "c", index=index)

        assert [1] == await sets.eligibility(viewer)
        rosters = [roster async for page in engine.rosters.all(Key("marked", "client", ""), now=0) for roster in page]
        assert 60 == len(rosters)

    async def test_a_delete_leaves_no_record_of_marks(self, engine: Engine) -> None:
        sets = code_sets(engine)
        await put(sets, "a")
        await mark(sets, "5")
        await sets.clear(BACKEND)

        pages = [page async for page in engine.dump(now=Clock().now())]
        assert [] == [record for page in pages for record in page if record[0].kind in ("marks", "marked")]

    async def test_a_delete_keeps_the_marks_of_a_set_that_another_node_has_just_added(self, engine: Engine) -> None:
        other_node, (viewer, _) = code_sets(engine), VIEWERS.values()

        async def add_set() -> None:
            await put(other_node, "b")
            await mark(other_node, "5")

        await put(other_node, "a")
        await mark(other_node, "6")
        node = overtaken(engine, "rosters", "drop", add_set)
        assert [0] == await node.clear(BACKEND)

        assert [1] == await node.eligibility(viewer)

    async def test_draws_during_marks_and_deletes_hand_out_what_was_granted(self, engine: Engine) -> None:
        sets, (viewer, _) = code_sets(engine), VIEWERS.values()
        order, drawn = random.Random(1), list[str]()
        for each in range(20):
            await put(sets, f"{each}a", f"{each}b", f"{each}c")
            is_deleted = bool(each % 2)
            operations: list[Coroutine[Any, Any, Any]] = [mark(sets, "5"), *(sets.redeem(viewer, 0) for _ in range(3))]
            if is_deleted:
                operations.append(sets.clear(BACKEND))
            order.shuffle(operations)
            results = await asyncio.gather(*operations, return_exceptions=True)
            if not is_deleted:
                results.append(await sets.redeem(viewer, 0))

            refused = [result for result in results if isinstance(result, BaseException)]
            assert not refused or (is_deleted and [BadRequest] == list(map(type, refused)))  # a mark after the delete
            codes = [result[0] for result in results if isinstance(result, tuple) and result[0]]
            assert len(codes) <= 1 if is_deleted else len(codes) == 1
            drawn += codes
            assert (None, tuple(drawn)) == await sets.redeem(viewer, 0)
            await sets.clear(BACKEND)
