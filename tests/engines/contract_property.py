"""Random operations on a ballot, compared with a model in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.engines.base import CLOSED, OVER_ALLOWANCE, UNKNOWN_VOTER, Cast, CastRequest, Tally, Terms
from emulator.engines.engine import Engine
from engines.shorthand import NOW, choice_of, counts, entries, key
from support.examples import examples

VOTERS, CHOICES = ("A", "B", "C", "D"), ("x", "y", "z", "")


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
    opens_at=st.sampled_from([0, NOW, NOW + 30]),
    closes_at=st.sampled_from([NOW + 40, NOW + 200, NOW + 9999]),
    disabled=st.sampled_from([False, False, False, True]),
    known_voters_only=st.sampled_from([False, False, True]),
    per_voter=st.sampled_from([1, 1, 2, 4]),
    per_choice=st.integers(1, 3),
    choices=st.integers(1, 3),
)
REQUESTS = st.builds(
    CastRequest, st.sampled_from(VOTERS), st.sampled_from(CHOICES), times=st.integers(1, 3), known=st.booleans()
)
STEP = st.tuples(
    st.integers(-3, 25),  # clock step
    st.integers(5, 60),  # lifetime
    st.one_of(REQUESTS, REQUESTS, REQUESTS, REQUESTS, TERMS, st.sampled_from(["purge", "drop"])),
)


# Each example begins with a reset, so they can share one engine.
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]


class PropertyContract:
    @settings(max_examples=examples(60), deadline=None, suppress_health_check=SHARED)
    @given(st.lists(STEP, max_size=40))
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
                await engine.purge(now=now)
                await engine.tidy()
                model = Model()
            else:
                assert [one for one in await engine.purge(now=now) if one.at > now] == []

        model.begin(now)
        assert list(model.tally(None).counts) == await counts(engine, now=now)
        assert [next((row[1] for row in reversed(model.rows) if row[0] == voter), None) for voter in VOTERS] == [
            await choice_of(engine, voter, now=now) for voter in VOTERS
        ]
        assert sorted(model.rows, key=lambda row: row[3]) == [
            tuple(entry[:4]) for entry in await entries(engine, now=now)
        ]
