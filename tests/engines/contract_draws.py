"""The contract of a draw of a reward code: how many operations it takes, and draws during marks and deletes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

import pytest

from emulator.callers import Caller, Role
from emulator.clock import Clock
from emulator.engines.engine import Engine
from emulator.errors import BadRequest
from emulator.features.codes.rules import GrantBody, NamesBody
from emulator.features.codes.service import CodeSets
from emulator.features.identity.directory import Directory
from engines.shorthand import LoopPasses

BACKEND = Caller("client", Role.BACKEND, None, None, "A-backend")
VIEWERS = {
    "with a shared id": Caller("client", Role.VIEWER, "7", "5", "Uopaque"),
    "with an opaque id only": Caller("client", Role.VIEWER, "7", None, "U5"),
}


class Counted:
    """A shape of an engine that notes the names of the operations it is called for."""

    def __init__(self, shape: Any, calls: list[str]) -> None:
        self._shape, self._calls = shape, calls

    def __getattr__(self, name: str) -> Any:
        self._calls.append(name)
        return getattr(self._shape, name)


class Overtaken:
    """The documents of an engine; another node does something right before the first operation of one name."""

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


def code_sets(engine: Engine, calls: list[str]) -> CodeSets:
    return wired(engine.documents, Counted(engine.pools, calls), Counted(engine.rosters, calls), calls)


def overtaken(engine: Engine, operation: str, meanwhile: Callable[[], Awaitable[None]]) -> CodeSets:
    return wired(Overtaken(engine.documents, operation, meanwhile), engine.pools, engine.rosters, [])


def wired(documents: Any, pools: Any, rosters: Any, calls: list[str]) -> CodeSets:
    clock, counted = Clock(), Counted(documents, calls)
    return CodeSets(pools, rosters, counted, clock, NoPolls(), Directory(counted, clock))  # type: ignore[arg-type]


async def put(sets: CodeSets, *codes: str, index: int = 0) -> None:
    async with sets.new_upload(BACKEND) as upload:
        await upload.add(0, 0, list(codes))
        await sets.define(upload, NamesBody([f"set {index}"], [index]), 1)


async def mark(sets: CodeSets, *users: str, prize: int = 0) -> None:
    body = GrantBody(prize_limits=[1] * 10, prizes=[prize])
    async with sets.new_grant(BACKEND) as grant:
        await grant.add(users)
        await sets.grant(BACKEND, grant, body)


class DrawsContract:
    @pytest.mark.parametrize("viewer", VIEWERS.values(), ids=VIEWERS)
    async def test_a_draw_of_a_code_takes_three_operations(self, engine: Engine, viewer: Caller) -> None:
        calls: list[str] = []
        sets = code_sets(engine, calls)
        await put(sets, "a", "b")
        await mark(sets, "5")

        for code, held in (("a", ("a",)), (None, ("a",))):
            calls.clear()
            assert (code, held) == await sets.redeem(viewer, 0)
            assert ["read", "listing", "draw"] == calls

    async def test_the_event_loop_runs_while_uploaded_codes_are_compared(self, engine: Engine) -> None:
        calls: list[str] = []
        sets = code_sets(engine, calls)
        async with sets.new_upload(BACKEND) as upload:
            for start in range(0, 30_000, 5_000):
                await upload.add(0, start, [f"code {number}" for number in range(start, start + 5_000)])
            await upload.add(0, 30_000, ["code 0"])
            calls.clear()
            async with LoopPasses() as passes:
                with pytest.raises(BadRequest, match=r"codes\[0\]\[0\] and codes\[0\]\[30000\]"):
                    await sets.define(upload, NamesBody(["hats"]), 1)

        assert passes.count > calls.count("items") > 3

    async def test_a_mark_counts_until_the_sets_are_deleted(self, engine: Engine) -> None:
        sets, (viewer, other) = code_sets(engine, []), VIEWERS.values()
        await put(sets, "a", "b")

        assert (None, ()) == await sets.redeem(viewer, 0)
        await mark(sets, "5")
        assert ("a", ("a",)) == await sets.redeem(viewer, 0)
        assert [1] == await sets.clear(BACKEND)
        assert (None, ("a",)) == await sets.redeem(viewer, 0)
        assert (None, ()) == await sets.redeem(other, 0)
        await put(sets, "a", "c")
        assert (None, ("a",)) == await sets.redeem(viewer, 0)
        await mark(sets, "5")
        assert ("c", ("a", "c")) == await sets.redeem(viewer, 0)

    async def test_a_mark_keeps_the_marks_of_a_set_that_another_node_has_just_added(self, engine: Engine) -> None:
        other_node, (viewer, _) = code_sets(engine, []), VIEWERS.values()

        async def add_set() -> None:
            await put(other_node, "b", index=1)
            await mark(other_node, "5", prize=1)

        node = overtaken(engine, "update", add_set)
        await put(other_node, "a")
        await mark(node, "6")

        assert [0, 1] == await node.eligibility(viewer)

    async def test_a_delete_leaves_no_record_of_marks(self, engine: Engine) -> None:
        sets = code_sets(engine, [])
        await put(sets, "a")
        await mark(sets, "5")
        await sets.clear(BACKEND)

        pages = [page async for page in engine.dump(now=Clock().now())]
        assert [] == [record for page in pages for record in page if record[0].kind in ("marks", "marked")]

    async def test_a_delete_keeps_the_marks_of_a_set_that_another_node_has_just_added(self, engine: Engine) -> None:
        other_node, (viewer, _) = code_sets(engine, []), VIEWERS.values()

        async def add_set() -> None:
            await put(other_node, "b")
            await mark(other_node, "5")

        await put(other_node, "a")
        await mark(other_node, "6")
        node = overtaken(engine, "update", add_set)
        assert [0] == await node.clear(BACKEND)

        assert [1] == await node.eligibility(viewer)

    async def test_draws_during_marks_and_deletes_hand_out_what_was_granted(self, engine: Engine) -> None:
        sets, (viewer, _) = code_sets(engine, []), VIEWERS.values()
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
