"""Random histories of operations of every shape, for tests that compare whole engines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st

from emulator.core.keys import NEVER, Key
from emulator.storage.engine import Engine
from emulator.storage.pools import Stock
from emulator.storage.shapes import CastRequest, Terms
from engines.shorthand import NOW, keep, purged

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
"""For tests whose examples begin with a reset, so that they can share one engine."""

USERS, CHOICES = ("A", "ü:1", ""), ("z", "x", "y", "")
ONE = Key("k", "e", "n", "")
KEYS = st.sampled_from([ONE, ONE, ONE._replace(channel="c|%"), ONE._replace(name="o|%"), ONE._replace(owner="")])
OF_USERS = st.builds(lambda key, user: key._replace(user=user), KEYS, st.sampled_from(USERS))
SOURCES = st.sampled_from([Key("lists", "", name, "") for name in ("1", "2")])
ITEMS = st.lists(st.sampled_from([f"i{number}" for number in range(6)]), max_size=5)
TERMS = st.builds(
    Terms,
    opens_at=st.sampled_from([0, NOW]),
    closes_at=st.sampled_from([NEVER, NOW + 500]),
    disabled=st.sampled_from([False, False, True]),
    per_voter=st.sampled_from([1, 3]),
    per_choice=st.integers(1, 3),
    choices=st.integers(1, 3),
)
CASTS = st.builds(
    CastRequest,
    st.sampled_from(USERS),
    st.sampled_from(CHOICES),
    note=st.sampled_from([b"", b"\xff\0n"]),
    times=st.integers(1, 2),
)
_OF_BALLOTS = (
    st.tuples(st.just("cast"), KEYS, CASTS),
    st.tuples(st.just("cast"), KEYS, CASTS),
    st.tuples(st.just("define"), KEYS, TERMS),
    st.tuples(st.just("drop ballot"), KEYS, st.booleans()),
)
_OF_DOCUMENTS = (
    st.tuples(st.just("write"), OF_USERS, st.sampled_from([b"", b"\xff", b"{}"])),
    st.tuples(st.just("keep"), OF_USERS, st.booleans()),
    st.tuples(st.just("drop document"), OF_USERS, st.none()),
)


def _of_pools(keys: st.SearchStrategy[Key]) -> tuple[st.SearchStrategy[Any], ...]:
    return (
        st.tuples(st.just("fill"), SOURCES, ITEMS),
        st.tuples(st.just("assign"), keys, SOURCES),
        st.tuples(st.just("draw"), keys, st.sampled_from(USERS)),
        st.tuples(st.just("draw"), keys, st.sampled_from(USERS)),
        st.tuples(st.just("stock"), keys, st.tuples(SOURCES, ITEMS)),
        st.tuples(st.just("drop pool"), keys, st.none()),
        st.tuples(st.just("discard"), SOURCES, st.none()),
    )


def _of_rosters(keys: st.SearchStrategy[Any]) -> tuple[st.SearchStrategy[Any], ...]:
    return (
        st.tuples(st.just("add"), keys, st.lists(st.sampled_from(USERS), max_size=3)),
        st.tuples(st.just("annotate"), keys, st.sampled_from([b"", b"\0|n"])),
        st.tuples(st.just("drop roster"), keys, st.none()),
    )


_PURGE = st.tuples(st.just("purge"), st.none(), st.none())
_FEW = st.sampled_from([ONE, ONE, ONE._replace(name="o|%")])
_KEPT = OF_USERS.map(lambda key: key._replace(kind="kept"))


def _histories(*operations: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    step = st.tuples(st.integers(-3, 5), st.sampled_from([10, 1000, 1000, NEVER]), st.one_of(*operations))
    return st.lists(step, min_size=12, max_size=50)


HISTORIES = _histories(
    *_OF_BALLOTS,
    *_OF_DOCUMENTS,
    st.tuples(st.just("append"), KEYS, st.sampled_from([b"", b"\0", b"v"])),
    *_of_pools(KEYS),
    *_of_rosters(KEYS),
    _PURGE,
)
"""Each operation with the ms that the clock moves before it, and the ms that what it writes lives."""
OF_ONE_SHAPE = {
    "ballots": _histories(*_OF_BALLOTS, _PURGE, st.tuples(st.just("tally"), KEYS, st.sampled_from(USERS))),
    "pools": _histories(*_of_pools(_FEW), _PURGE, st.tuples(st.just("counts"), _FEW, st.sampled_from(USERS))),
    "rosters": _histories(
        *_of_rosters(_FEW), _PURGE, st.tuples(st.just("list"), _FEW, st.lists(st.sampled_from(USERS), unique=True))
    ),
    "documents": _histories(
        *_OF_DOCUMENTS,
        _PURGE,
        st.tuples(st.just("peek"), st.one_of(OF_USERS, _KEPT), st.none()),
        st.tuples(st.just("drop document"), _KEPT, st.none()),
        st.tuples(st.just("write"), _KEPT, st.just(b"w")),
    ),
}
"""The same of one shape, with operations that read."""

History = Sequence[tuple[int, int, tuple[str, Any, Any]]]


async def replay(engine: Engine, history: History, now: int = NOW) -> int:
    """Run the operations; return the time after the last one."""
    for move, life, (what, key, value) in history:
        now += move
        await run(engine, what, key, value, now, min(now + life, NEVER))
    return now


async def run(engine: Engine, what: str, key: Any, value: Any, now: int, end: int) -> object:
    """Run one operation, and return what it returns."""
    match what:
        case "cast":
            return await engine.ballots.cast(key, value, now=now, expires_at=end, tally=True)
        case "define":
            return await engine.ballots.define(key, b"\xffd", value, now=now, expires_at=end)
        case "drop ballot":
            return sorted(await engine.ballots.drop(key._replace(channel=None if value else key.channel), now=now))
        case "tally":
            return await engine.ballots.tally(key, now=now, voter=value)
        case "peek":
            return await engine.documents.peek(key, now=now)
        case "counts":
            return await engine.pools.counts([key], now=now), await engine.pools.held([key], value, now=now)
        case "write":
            end = NEVER if key.kind == "kept" else end
            return await engine.documents.update([key], lambda _: {key: value}, now=now, expires_at=end)
        case "keep":
            kept = key._replace(kind="kept")
            return await keep(engine, {kept: b"k"}, replace=value)
        case "drop document":
            return await engine.documents.drop([key], now=now)
        case "append":
            return await engine.logs.append(key, value, now=now, expires_at=end)
        case "draw":
            return await engine.pools.draw(key, value, limit=len, now=now, held=True)
        case "drop pool":
            return await engine.pools.drop([key], now=now)
        case "discard":
            return await engine.pools.discard([key], now=now)
        case "add":
            return await engine.rosters.add_members(key, value, now=now, expires_at=end)
        case "annotate":
            return await engine.rosters.annotate(key, value, now=now, expires_at=end)
        case "list":
            return await engine.rosters.listing(key, value, now=now)
        case "drop roster":
            return await engine.rosters.drop([key], now=now)
        case "purge":
            return await purged(engine, now=now)
    with suppress(ValueError):  # another pool uses the list
        if what == "fill":
            await engine.pools.fill(key, value, now=now, expires_at=end)
        else:
            if what == "stock":
                value, items = value
                await engine.pools.fill(value, items, now=now, expires_at=end)
            stock = Stock(value, b"\xff" * (2 * bool(now % 3)))  # how many items a user may have
            await engine.pools.assign([key], lambda _: {key: stock}, now=now, expires_at=end)
    return None


async def answers(engine: Engine, history: History, now: int) -> list[object]:
    """Run the operations, and return all that they return."""
    found: list[object] = []
    for move, life, (what, key, value) in history:
        now += move
        found.append(await run(engine, what, key, value, now, min(now + life, NEVER)))
    return found
