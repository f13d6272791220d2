"""Random operations on a ballot, compared with a model in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.core.keys import Expired, Key
from emulator.storage.engine import Engine
from emulator.storage.pools import Holding, Stock
from emulator.storage.shapes import CLOSED, OVER_ALLOWANCE, UNKNOWN_VOTER, Cast, CastRequest, Tally, Terms
from engines.pool_shorthand import assign, draw, fill, source
from engines.shorthand import NOW, choice_of, counts, entries, key, purged
from support.examples import examples

VOTERS, CHOICES = ("A", "B", "C"), ("x", "y", "z", "")


@dataclass
class Model:
    """One ballot, recounted for every result."""

    terms: Terms = field(default_factory=Terms)
    end: int = 0
    rows: list[tuple[str, str, int, int]] = field(default_factory=list)
    """voter, choice, times, cast_at; in the order of casting."""
    ranking: list[str] = field(default_factory=list)
    """The choices that have casts, oldest first."""

    def begin(self, now: int) -> None:
        if now >= self.end:
            self.terms, self.rows, self.ranking = Terms(), [], []

    def define(self, terms: Terms, now: int, end: int) -> None:
        self.begin(now)
        self.terms = terms
        if not self.rows:
            self.end = max(self.end, end)

    def cast(self, request: CastRequest, now: int, end: int) -> Cast:
        kept = self.terms, self.rows, self.ranking
        self.begin(now)
        mine = [row for row in self.rows if row[0] == request.voter]
        previous = mine[-1][1] if mine else None
        refused = self.refusal(request, mine, now)
        if refused:
            tally = self.tally(previous)
            self.terms, self.rows, self.ranking = kept
            return Cast(refused, previous, tally)
        replaced = mine if self.terms.per_voter == 1 else [row for row in mine if row[1] == request.choice]
        times = 1 if self.terms.per_voter == 1 else request.times + sum(row[2] for row in replaced)
        self.rows = [row for row in self.rows if row not in replaced] + [(request.voter, request.choice, times, now)]
        chosen = [row[1] for row in self.rows]
        self.ranking = [choice for choice in self.ranking if choice in chosen]
        self.ranking += [] if request.choice in self.ranking else [request.choice]
        self.end = max(self.end, end)
        return Cast(None, previous, self.tally(request.choice))

    def refusal(self, request: CastRequest, mine: list[tuple[str, str, int, int]], now: int) -> str | None:
        if self.terms.disabled or not self.terms.opens_at <= now < self.terms.closes_at:
            return CLOSED
        if self.terms.known_voters_only and not request.known:
            return UNKNOWN_VOTER
        if self.terms.per_voter == 1:
            return None
        same = sum(row[2] for row in mine if row[1] == request.choice)
        exceeds = (
            sum(row[2] for row in mine) + request.times > self.terms.per_voter
            or same + request.times > self.terms.per_choice
            or len({row[1] for row in mine} | {request.choice}) > self.terms.choices
        )
        return OVER_ALLOWANCE if exceeds else None

    def tally(self, choice: str | None) -> Tally:
        sums = {each: sum(row[2] for row in self.rows if row[1] == each) for each in self.ranking}
        return Tally(tuple(sorted(sums.items(), key=lambda pair: -pair[1])), choice)


TERMS = st.builds(
    Terms,
    opens_at=st.sampled_from([0, 0, 0, NOW + 30]),
    closes_at=st.sampled_from([NOW + 9999, NOW + 9999, NOW + 200]),
    disabled=st.sampled_from([False] * 7 + [True]),
    known_voters_only=st.sampled_from([False, False, False, True]),
    per_voter=st.sampled_from([1, 2, 4, 5]),
    per_choice=st.sampled_from([1, 3, 5]),
    choices=st.integers(1, 3),
)
REQUESTS = st.builds(
    CastRequest,
    st.sampled_from(VOTERS),
    st.sampled_from(CHOICES),
    times=st.sampled_from([1, 1, 2, 3]),
    known=st.sampled_from([True, True, False]),
)
STEP = st.tuples(
    st.sampled_from([0, 0, 1, 9, -3]),  # clock step
    st.integers(20, 90),  # lifetime
    st.one_of(*[REQUESTS] * 6, TERMS, st.sampled_from(["purge", "drop"])),
)
"""Most ballots are open, so that the allowances decide."""


# Each example begins with a reset, so they can share one engine.
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]


POOLS, LISTS, USERS = (key("p"), key("q")), tuple(source(name) for name in "xyz"), ("A", "B", "C")


@dataclass
class List:
    items: list[str] = field(default_factory=list)
    end: int = 0
    pool: Pool | None = None


@dataclass(eq=False)
class Pool:
    key: Key
    end: int
    source: Key
    note: bytes = b""
    position: int = 0
    handed: list[tuple[str, str]] = field(default_factory=list)
    is_open: bool = True


@dataclass
class PoolsModel:
    pools: list[Pool] = field(default_factory=list)
    lists: dict[Key, List] = field(default_factory=dict)
    expired: list[Expired] = field(default_factory=list)
    spent: set[str] = field(default_factory=set)

    def expire(self, now: int) -> None:
        """Remove what has expired."""
        self.expired += [Expired(pool.key, pool.end) for pool in self.pools if pool.is_open and pool.end <= now]
        self.pools = [pool for pool in self.pools if now < pool.end]
        self.lists = {of: each for of, each in self.lists.items() if now < each.end}

    def live(self, where: Key) -> Pool | None:
        return next((pool for pool in self.pools if pool.key == where and pool.is_open), None)

    def fill(self, of: Key, items: str, end: int) -> bool:
        if of in self.lists and self.lists[of].pool:
            return False
        filled = self.lists.setdefault(of, List())
        filled.items += items
        filled.end = max(filled.end, end)
        return True

    def assign(self, wanted: dict[Key, Key], end: int) -> bool:
        """Assign lists to pools. A pool and its list live until the latest of `end` and both their ends."""
        taken = [self.lists[of].pool not in (None, self.live(pool)) for pool, of in wanted.items() if of in self.lists]
        if any(taken) or len(set(wanted.values())) < len(wanted):
            return False
        for where, of in wanted.items():
            pool = self.live(where)
            if pool is None:
                pool = Pool(where, end, of)
                self.pools.append(pool)
            elif pool.source != of:
                del self.lists[pool.source]
                pool.source, pool.position = of, 0
            given = self.lists.setdefault(of, List())
            given.pool, pool.note = pool, b"%d" % end
            given.end = pool.end = max(end, given.end, pool.end)
        return True

    def draw(self, where: Key, user: str, most: int) -> str | None:
        pool = self.live(where)
        if pool is None or sum(each == user for each, _ in pool.handed) >= most:
            return None
        for item in self.lists[pool.source].items[pool.position :]:
            pool.position += 1
            if item not in self.spent:
                self.spent.add(item)
                pool.handed.append((user, item))
                return item
        return None

    def drop(self, keys: list[Key]) -> dict[Key, int]:
        counts = {}
        for where in keys:
            if (pool := self.live(where)) is not None:
                pool.is_open = False
                del self.lists[pool.source]
                counts[where] = len(pool.handed)
        return counts

    def held(self, user: str) -> dict[Key, Holding]:
        holdings = {}
        for where in POOLS:
            mine = [
                (item, pool.is_open) for pool in self.pools if pool.key == where for h, item in pool.handed if h == user
            ]
            if mine:
                holdings[where] = Holding(tuple(item for item, _ in mine), sum(is_open for _, is_open in mine))
        return holdings


FILL = st.tuples(st.just("fill"), st.sampled_from(LISTS), st.text("abcd", max_size=6))
ASSIGN = st.tuples(st.just("assign"), st.dictionaries(st.sampled_from(POOLS), st.sampled_from(LISTS), min_size=1))
DRAW = st.tuples(st.just("draw"), st.sampled_from(POOLS), st.sampled_from(USERS), st.integers(0, 9))
DROP = st.tuples(st.just("drop"), st.lists(st.sampled_from(POOLS), max_size=2, unique=True))
PURGE = st.just(("purge",))
POOLS_STEP = st.tuples(
    st.sampled_from([0, 0, 1, 5, 25]),  # clock step
    st.integers(5, 120),  # lifetime
    st.one_of(FILL, FILL, ASSIGN, ASSIGN, DRAW, DRAW, DRAW, DRAW, DRAW, DROP, PURGE),
)


async def is_accepted(engine: Engine, operation: str, what: tuple, now: int, end: int) -> bool:  # type: ignore[type-arg]
    try:
        if operation == "fill":
            await fill(engine, list(what[1]), what[0], now=now, expires_at=end)
        else:
            await assign(engine, what[0], now=now, expires_at=end, note=b"%d" % end)
    except ValueError:
        return False
    return True


class PropertyContract:
    @settings(max_examples=examples(240), deadline=None, suppress_health_check=SHARED)
    @given(st.lists(STEP, min_size=20, max_size=60))
    async def test_a_ballot_equals_its_recount_after_any_operations(
        self, engine: Engine, steps: list[tuple[int, int, CastRequest | Terms | str]]
    ) -> None:
        await engine.reset()
        model, now = Model(), NOW
        for move, life, what in steps:
            now += move
            if isinstance(what, CastRequest):
                done = await engine.ballots.cast(key(), what, now=now, expires_at=now + life, tally=True)
                assert model.cast(what, now, now + life) == done
            elif isinstance(what, Terms):
                await engine.ballots.define(key(), b"", what, now=now, expires_at=now + life)
                model.define(what, now, now + life)
            elif what == "drop":
                await engine.ballots.drop(key(), now=now)
                model = Model()
            elif now >= model.end:
                await purged(engine, now=now)
                await engine.tidy()
                model = Model()
            else:
                assert [one for one in await purged(engine, now=now) if one.at > now] == []

        model.begin(now)
        assert list(model.tally(None).counts) == await counts(engine, now=now)
        assert [next((row[1] for row in reversed(model.rows) if row[0] == voter), None) for voter in VOTERS] == [
            await choice_of(engine, voter, now=now) for voter in VOTERS
        ]
        assert sorted(model.rows, key=lambda row: row[3]) == [
            tuple(entry[:4]) for entry in await entries(engine, now=now)
        ]

    @settings(max_examples=examples(240), deadline=None, suppress_health_check=SHARED)
    @given(st.lists(POOLS_STEP, min_size=20, max_size=50))
    async def test_pools_equal_a_model_after_any_operations(
        self,
        engine: Engine,
        steps: list[tuple[int, int, tuple]],  # type: ignore[type-arg]
    ) -> None:
        await engine.reset()
        model, now = PoolsModel(), NOW
        for move, life, (operation, *what) in steps:
            now += move
            model.expire(now)
            if operation == "fill":
                assert model.fill(*what, now + life) == await is_accepted(engine, operation, what, now, now + life)
            elif operation == "assign":
                assert model.assign(*what, now + life) == await is_accepted(engine, operation, what, now, now + life)
            elif operation == "draw":
                where, user, most = what
                assert model.draw(where, user, most) == await draw(engine, user, where, most=most, now=now)
            elif operation == "drop":
                assert model.drop(*what) == await engine.pools.drop(*what, now=now)
            else:
                reported = await purged(engine, now=now)
                assert set(reported) <= set(model.expired)  # one that was replaced or dropped since may be missing
                assert len(set(reported)) == len(reported)
                await engine.tidy()
                model.expired = []

            live = {where: model.live(where) for where in POOLS}
            stocks = await engine.pools.stocks(POOLS, now=now)
            assert stocks == {where: Stock(pool.source, pool.note) for where, pool in live.items() if pool}
            for user in USERS:
                assert model.held(user) == await engine.pools.held(POOLS, user, now=now)
