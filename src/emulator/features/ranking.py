"""Rankings: the most frequent free-text answers to a question (ruling R1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import MAX_ANSWER_BYTES
from emulator.core.callers import ANYONE, CHANNEL_WRITERS, GLOBAL, Caller, check_extension_wide, is_global
from emulator.core.changes import Change, Changes
from emulator.core.clock import DAY, Clock
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.observability.facts import ABSENT, notice
from emulator.core.wire.refusals import too_long
from emulator.features.id_quota import IdQuota
from emulator.features.kinds import Kind, ListedRecord, Measured, Subject
from emulator.http.endpoint import CHANNEL, PAGE, Call, Nothing, endpoint, id_of
from emulator.storage.kinds import Stored, accept_any, text_of, wrong
from emulator.storage.records import BallotRecord, ChoiceRecord, EntryRecord
from emulator.storage.shapes import Ballots, CastRequest, Terms


def checked_answer(answer: str) -> str:
    """Return an answer of at most 1 KiB of UTF-8; raise `BadRequest` for a longer one."""
    if (size := len(answer.encode())) > MAX_ANSWER_BYTES:
        raise too_long("key", size=size, unit="bytes", limit=MAX_ANSWER_BYTES)
    return answer


def _check_ranking(record: BallotRecord) -> None:
    if record.definition is not None:
        raise wrong("definition", "a ranking has no definition")
    if record.terms != Terms():
        raise wrong("terms", "a ranking has no terms")


def _check_entry(record: EntryRecord) -> None:
    if record.entry.times != 1:
        raise wrong("times", f"{record.entry.times} is not 1: each user has one answer")
    checked_answer(record.entry.choice)
    text_of(record.entry.note, "note")


LIFETIME = DAY
"""A ranking expires this long after its last answer, in ms (Limits)."""
MAX_RANKED_ANSWERS = 100


class Accepted(Struct):
    """The response to a submitted answer."""

    accepted: bool
    original: str | UnsetType = UNSET
    """The caller's previous answer, if any."""


class Score(Struct):
    """An answer and the number of users who submitted exactly this text."""

    key: str
    score: int


class ListedRanking(ListedRecord):
    """One ranking; `count` is the number of users who answered."""


class RankingList(Struct):
    """Rankings by channel, then id."""

    rankings: list[ListedRanking]
    next: str
    """The cursor of the next page; `0` if there is none."""


class AnswerBody(Struct):
    """A free-text answer of at most 1 KiB of UTF-8."""

    key: str


class Ranking(Struct):
    """The most frequent answers, highest score first."""

    data: list[Score]


_QUERY = (id_of("ranking"), CHANNEL)


@dataclass(eq=False, repr=False)
class Rankings:
    """Rankings of all extensions. The channel of a call is `None` for all channels together (ruling A4)."""

    _ballots: Ballots
    _clock: Clock
    _id_quota: IdQuota
    _changes: Changes

    @endpoint("POST", "/v1/e/rank", roles=ANYONE, body=AnswerBody, answer=Accepted, query=_QUERY)
    async def submit_answer(self, call: Call) -> Accepted:
        """Submit an answer, or replace an earlier one."""
        caller, answer, now = call.caller, call.body(AnswerBody).key, self._clock.now()
        key = _ranking_key(caller, call.channel or "", call.checked_id)
        request = CastRequest(caller.opaque_id, checked_answer(answer), (caller.user_id or "").encode())
        write = partial(self._ballots.cast, key, request, now=now, expires_at=now + LIFETIME)
        cast = await self._id_quota.write(key, caller, LIFETIME, now, write)
        await self._changes.committed(Change(key, "answer", caller.opaque_id, answer, now))
        return Accepted(True, UNSET if cast.previous is None else cast.previous)

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Return the number of users for each answer."""
        tally = await self._ballots.tally(_ranking_key(caller, channel, id), now=self._clock.now())
        return Measured(dict(tally.counts))

    @endpoint("GET", "/v1/e/rank", roles=CHANNEL_WRITERS, answer=Ranking, query=_QUERY)
    async def read_ranking(self, call: Call) -> Ranking:
        """Read the 100 most frequent answers."""
        key = _ranking_key(call.caller, call.channel, call.checked_id)
        tally = await self._ballots.tally(key, now=self._clock.now(), top=MAX_RANKED_ANSWERS)
        if not tally.counts:
            notice(ABSENT, key)
        return Ranking([Score(answer, users) for answer, users in tally.counts])

    @endpoint("DELETE", "/v1/e/rank", roles=CHANNEL_WRITERS, query=_QUERY)
    async def clear_ranking(self, call: Call) -> Nothing:
        """Delete a ranking and its answers. Deleting an absent ranking is not an error."""
        caller, channel, ranking_id = call.caller, call.channel, call.checked_id
        if is_global(ranking_id):
            check_extension_wide(caller, ranking_id)
        key = _ranking_key(caller, channel, ranking_id)
        if found := await self._ballots.drop(key, now=self._clock.now()):
            rankings = len(found) if key.channel is None else ""
            audit("rankings deleted", caller, channel=channel, ranking=ranking_id, rankings=rankings)
        await self._changes.committed(*(Change(dropped, "cleared", caller.opaque_id) for dropped in found))
        for dropped in found:
            await self._id_quota.release(dropped)
        return Nothing()

    @endpoint("GET", "/v1/e/rankings", roles=CHANNEL_WRITERS, answer=RankingList, query=PAGE)
    async def list_rankings(self, call: Call) -> RankingList:
        """List the rankings of a channel, or of all channels with an extension-level token.

        The order is channel, then id.
        """
        group, now = Key("rank", call.caller.client_id, "", call.channel), self._clock.now()
        found, next = await call.page.read(self._ballots.listing, group, now=now)
        rankings = [  # a ranking expires that long after its latest answer
            ListedRanking(key.name, key.channel or "", casts, expires_at - LIFETIME)
            for key, casts, expires_at, _ in found
        ]
        return RankingList(rankings, next)


def _ranking_key(caller: Caller, channel: str | None, ranking_id: str) -> Key:
    """Return the key of a ranking; a global ranking belongs to no channel."""
    return Key("rank", caller.client_id, ranking_id, "" if is_global(ranking_id) else channel)


RANKINGS = Kind(
    "rankings",
    "the rankings, with their answers",
    ("rank",),
    LIFETIME,
    (
        Stored(BallotRecord, "rank", _check_ranking),
        Stored(ChoiceRecord, "rank", accept_any),
        Stored(EntryRecord, "rank", _check_entry),
    ),
    waits_for=Subject("rank", "rank", frozenset({"count", "key", "score"}), "default", shared=GLOBAL),
)
