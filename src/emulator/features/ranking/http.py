"""Rankings over REST: `rank` and `rankings`."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from emulator.callers import ANYONE, CHANNEL_WRITERS
from emulator.features.ranking.service import Accepted, RankingList, Rankings, Score
from emulator.http.endpoint import CHANNEL, PAGE, Call, Nothing, checked_id, endpoint, id_of

_QUERY = (id_of("ranking"), CHANNEL)


class AnswerBody(Struct):
    """A free-text answer."""

    key: str


class Ranking(Struct):
    """The most frequent answers, highest score first."""

    data: list[Score]


@endpoint("POST", "/v1/e/rank", roles=ANYONE, body=AnswerBody, answer=Accepted, query=_QUERY)
async def submit_answer(rankings: Rankings, call: Call) -> Accepted:
    """Submit an answer, or replace an earlier one."""
    answer = call.body(AnswerBody).key
    return await rankings.submit(call.caller, call.channel, checked_id(call.id, "id"), answer)


@endpoint("GET", "/v1/e/rank", roles=CHANNEL_WRITERS, answer=Ranking, query=_QUERY)
async def read_ranking(rankings: Rankings, call: Call) -> Ranking:
    """Read the 100 most frequent answers."""
    return Ranking(await rankings.read(call.caller, call.channel, checked_id(call.id, "id")))


@endpoint("DELETE", "/v1/e/rank", roles=CHANNEL_WRITERS, query=_QUERY)
async def clear_ranking(rankings: Rankings, call: Call) -> Nothing:
    """Delete a ranking and its answers. Deleting an absent ranking is not an error."""
    await rankings.clear(call.caller, call.channel, checked_id(call.id, "id"))
    return Nothing()


@endpoint("GET", "/v1/e/rankings", roles=CHANNEL_WRITERS, answer=RankingList, query=PAGE)
async def list_rankings(rankings: Rankings, call: Call) -> RankingList:
    """List the rankings of a channel, or of all channels with an extension-level token.

    The order is channel, then id.
    """
    return await rankings.listing(call.caller, call.channel, call.page)


endpoints: Final = (submit_answer, read_ranking, clear_ranking, list_rankings)
