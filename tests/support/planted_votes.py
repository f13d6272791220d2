"""Planted faults in polls and rankings."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from emulator.callers import ANYONE, CHANNEL_WRITERS
from emulator.engines.shapes import CastRequest
from emulator.features.ranking import http as ranking_http
from emulator.features.ranking import service as ranking
from emulator.features.votes import definitions, rules
from emulator.features.votes import http as votes_http
from emulator.features.votes import service as votes
from support.planted_faults import Patch, allow, planted, wrap


@planted("limits.vote-within-bounds")
def the_highest_vote_is_98(patch: Patch) -> None:
    patch.setattr(rules, "HIGHEST", 98)


@planted("limits.vote-within-bounds")
def the_lowest_vote_is_minus_98(patch: Patch) -> None:
    patch.setattr(rules, "LOWEST", -98)


@planted("limits.vote-out-of-bounds")
def the_highest_vote_is_100(patch: Patch) -> None:
    patch.setattr(rules, "HIGHEST", 100)
    patch.setattr(rules, "_VALUES", {**rules._VALUES, "100": 100})


@planted("P2.vote-not-an-integer")
def a_vote_may_be_true_or_a_float(patch: Patch) -> None:
    class Body(Struct):
        value: int | float | bool
        count: int = 1

    patch.setattr(votes_http, "VoteBody", Body)
    wrap(patch, votes, "checked_value", lambda checked, value: checked(int(value)))


@planted("P1.population-deviation", "voting.answer-to-a-vote")
def the_deviation_is_of_a_sample(patch: Patch) -> None:
    def of_a_sample(stats_of: Any, counts: Any) -> rules.Stats:
        stats: rules.Stats = stats_of(counts)
        if stats.count > 1:
            stats.stddev *= math.sqrt(stats.count / (stats.count - 1))
        return stats

    wrap(patch, rules, "stats_of", of_a_sample)


@planted("resources.specific-values")
def a_vote_for_63_is_missing_in_specific(patch: Patch) -> None:
    def without_63(stats_of: Any, counts: Any) -> rules.Stats:
        stats: rules.Stats = stats_of(counts)
        stats.specific[63] = 0
        return stats

    wrap(patch, rules, "stats_of", without_63)


@planted(
    "voting.second-vote",
    "A3.one-person",
    "A3.votes-by-opaque-id",
    "P3.order-of-the-log",
    "P4.additive-votes",
    "P4.count-of-a-single-vote",
    "resources.global-poll",
)
def a_second_vote_is_counted_twice(patch: Patch) -> None:
    async def twice(cast: Any, self: Any, caller: Any, *args: Any) -> Any:
        has_voted = (await self.read(caller, *args[:2])).vote is not UNSET
        await cast(self, caller, *args)
        if has_voted:
            await cast(self, replace(caller, opaque_id=f"{caller.opaque_id}/2", user_id=None), *args)
        return await self.read(caller, *args[:2])

    wrap(patch, votes.Polls, "cast", twice)


@planted("A3.votes-by-opaque-id", "A3.one-person", "resources.log-entries")
def all_viewers_without_a_shared_id_are_one_voter(patch: Patch) -> None:
    def as_one(voter: str, choice: str, note: bytes, is_known: bool, *rest: Any) -> CastRequest:
        return CastRequest(voter if is_known else "A", choice, note, is_known, *rest)

    patch.setattr(votes, "CastRequest", as_one)


def allow_poll_ids(patch: Patch, pattern: str) -> None:
    """Allow these ids of polls."""
    patch.setattr(rules, "_POLL_ID", re.compile(pattern))
    patch.setattr(votes, "checked_poll_id", rules.checked_poll_id.__wrapped__)  # without its cache


@planted("W8.poll-ids", "W8.length-of-an-id")
def a_poll_id_may_have_65_characters(patch: Patch) -> None:
    allow_poll_ids(patch, r"[A-Za-z0-9$_-]{1,65}")


@planted("W8.poll-ids", "W8.length-of-an-id")
def a_poll_id_has_at_most_63_characters(patch: Patch) -> None:
    allow_poll_ids(patch, r"[A-Za-z0-9$_-]{1,63}")


@planted("resources.poll-of-a-channel", "A4.poll-in-all-channels", "A4.foreign-channel", "X6.entry-of-a-poll")
def votes_leak_into_other_channels(patch: Patch) -> None:
    wrap(patch, votes, "_key", lambda key_of, caller, channel, poll: key_of(caller, channel and "", poll))


@planted("resources.global-poll", "A4.deletion-of-a-global-poll", "P4.definition-by-role")
def a_global_poll_belongs_to_a_channel(patch: Patch) -> None:
    patch.setattr(votes, "is_global", lambda poll: False)


@planted("A4.deletion-of-a-global-poll", "P4.definition-by-role")
def a_broadcaster_may_change_a_global_poll(patch: Patch) -> None:
    patch.setattr(votes, "check_extension_wide", lambda caller, name: None)


@planted("authentication.deletion-by-role", "W4.body-of-a-refused-write")
def a_viewer_may_delete_a_poll(patch: Patch) -> None:
    allow(patch, votes_http.clear_poll, ANYONE)


@planted("authentication.log-by-role")
def a_broadcaster_may_read_the_vote_log(patch: Patch) -> None:
    allow(patch, votes_http.read_vote_log, CHANNEL_WRITERS)


@planted("voting.log-without-votes", "voting.deletion", "P3.part-of-the-log", "W3.empty-list")
def an_empty_log_is_null(patch: Patch) -> None:
    async def null_if_empty(stream_array: Any, start: bytes, pages: Any, end: bytes) -> Any:
        text = b"".join([chunk async for chunk in stream_array(start, pages, end)])
        yield text.replace(b"[]", b"null")

    wrap(patch, votes_http, "stream_array", null_if_empty)


@planted("P3.order-of-the-log", "resources.log-entries")
def a_log_entry_has_the_opaque_id_as_identifier(patch: Patch) -> None:
    wrap(patch, votes, "Vote", lambda vote, shared, opaque, *rest: vote(opaque, opaque, *rest))


@planted("P4.votes-with-shared-ids")
def user_id_voting_admits_everyone(patch: Patch) -> None:
    def terms(terms_of: Any, definition: definitions.Definition) -> Any:
        return terms_of(definition)._replace(known_voters_only=False)

    wrap(patch, votes, "terms_of", terms)


@planted("P4.open-polls")
def a_poll_that_has_ended_takes_votes(patch: Patch) -> None:
    def terms(terms_of: Any, definition: definitions.Definition) -> Any:
        return terms_of(definition)._replace(closes_at=definitions.NEVER)

    wrap(patch, votes, "terms_of", terms)


@planted("P4.options-of-another-type")
def empty_options_of_another_type_remove_those_of_a_poll(patch: Patch) -> None:
    def without(reconfigured: Any, definition: Any, config: dict[str, Any], **now: int) -> Any:
        return reconfigured(definition, {name: value or [] for name, value in config.items()}, **now)

    wrap(patch, votes, "reconfigured", without)


@planted("R1.order-of-ties", "ranking.unaltered-answers", "limits.top-100")
def ties_of_a_ranking_are_in_alphabetical_order(patch: Patch) -> None:
    async def sorted_by_text(read: Any, *args: Any) -> Any:
        return sorted(await read(*args), key=lambda each: (-each.score, each.key))

    wrap(patch, ranking.Rankings, "read", sorted_by_text)


@planted("limits.top-100")
def a_ranking_has_101_answers(patch: Patch) -> None:
    patch.setattr(ranking, "TOP", 101)


@planted("R1.ranking-of-channels")
def a_global_ranking_belongs_to_a_channel(patch: Patch) -> None:
    patch.setattr(ranking, "is_global", lambda ranking: False)


@planted("ranking.unaltered-answers")
def answers_lose_their_spaces(patch: Patch) -> None:
    wrap(
        patch,
        ranking.Rankings,
        "submit",
        lambda submit, self, caller, channel, name, text: submit(self, caller, channel, name, text.strip()),
    )


@planted("authentication.ranking-by-role")
def a_viewer_may_read_rankings(patch: Patch) -> None:
    allow(patch, ranking_http.read_ranking, ANYONE)
