"""The rules for polls, rankings and buffers, their lists, and waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from support.service import CLIENT_ID
from surface.callers import (
    ADDS_UP,
    ANSWERED,
    ANYONE,
    BUFFERS,
    CHANNELS,
    IDS_IN_BODIES,
    KINDS,
    MANAGERS,
    OURS,
    POLLS,
    RARELY,
    VOTES,
    WRITERS,
)
from surface.calls import SECOND, Call, Caller
from surface.comparison import START, ComparisonMachine
from surface.generated import BLOBS, DEFINITIONS


class PollMachine(ComparisonMachine):
    """The rules for what viewers send, for a service and its model."""

    # Hypothesis skips most rules in most examples but runs every `initialize`, so every example has data to act on.

    @initialize(
        adds_up=st.booleans(),
        votes=st.lists(st.tuples(POLLS, VOTES), min_size=6, max_size=12),
        answers=st.lists(ANSWERED, min_size=6, max_size=12),
    )
    def start_with_votes(self, adds_up: bool, votes: list[Any], answers: list[Any]) -> None:
        if adds_up:
            self.call(OURS[5], "POST", "vote_config", body={"config": ADDS_UP | {"endsAt": START // SECOND + 3_600}})
        for poll, vote in votes:
            self.cast_votes(poll, [vote])
        self.submit_answers("", answers)
        self.call(OURS[5], "POST", "vote_config", {"id": "empty"}, {"config": {"endsAt": START // SECOND + 60}})
        self.list_by_channel(OURS[5], {})

    @rule(poll=POLLS, votes=st.lists(VOTES, min_size=1, max_size=6))
    def cast_votes(self, poll: str, votes: list[tuple[Caller, dict[str, str], object, int | None]]) -> None:
        for caller, channel, value, times in votes:
            body = {"value": value} | ({"count": times} if times else {})
            self.call(caller, "POST", "vote", {"id": poll} | channel, body)
        self.changed = "vote", {"id": poll}

    @rule(caller=ANYONE, channel=CHANNELS, poll=POLLS)
    def read_poll(self, caller: Caller, channel: dict[str, str], poll: str) -> None:
        self.call(caller, "GET", "vote", {"id": poll} | channel)
        self.call(caller, "GET", "vote_config", {"id": poll} | channel)

    @rule(caller=WRITERS, channel=CHANNELS, poll=POLLS, really=RARELY)
    def clear_poll(self, caller: Caller, channel: dict[str, str], poll: str, really: bool) -> None:
        self.call(caller, "DELETE" if really else "GET", "vote", {"id": poll} | channel)
        self.changed = "vote", {"id": poll}

    @rule(caller=WRITERS, channel=CHANNELS, poll=POLLS, config=DEFINITIONS, starts=st.none() | st.integers(-2, 60),
          lasts=st.none() | st.integers(-1, 600), in_body=IDS_IN_BODIES)  # fmt: skip
    def define_poll(
        self,
        caller: Caller,
        channel: dict[str, str],
        poll: str,
        config: dict[str, Any],
        starts: int | None,
        lasts: int | None,
        in_body: dict[str, str],
    ) -> None:
        seconds = self.model.clock.now // SECOND
        starts_at = {} if starts is None else {"startsAt": seconds + starts}
        ends_at = {} if lasts is None else {"endsAt": seconds + (starts or 0) + lasts}
        body = {"config": config | starts_at | ends_at} | in_body
        self.call(caller, "POST", "vote_config", {"id": poll} | channel, body)
        self.changed = "vote_config", {"id": in_body.get("id") or poll}

    @rule(
        caller=MANAGERS,
        channel=CHANNELS,
        poll=POLLS,
        since=st.none() | st.integers(-5, 2000),
        limit=st.none() | st.integers(0, 3),
    )
    def read_vote_log(
        self, caller: Caller, channel: dict[str, str], poll: str, since: int | None, limit: int | None
    ) -> None:
        from_then = {} if since is None else {"since": str(self.model.clock.now - since)}
        at_most = {} if limit is None else {"limit": str(limit)}
        self.call(caller, "GET", "vote_logs", {"id": poll} | channel | from_then | at_most)

    @rule(buffer=BUFFERS, answers=st.lists(ANSWERED, min_size=1, max_size=6))
    def submit_answers(self, buffer: str, answers: list[tuple[Caller, dict[str, str], object]]) -> None:
        for caller, channel, answer in answers:
            self.call(caller, "POST", "rank", {"id": buffer} | channel, {"key": answer})
        self.changed = "rank", {"id": buffer}

    @rule(caller=WRITERS, channel=CHANNELS, buffer=BUFFERS, clears=RARELY)
    def read_or_clear_ranking(self, caller: Caller, channel: dict[str, str], buffer: str, clears: bool) -> None:
        self.call(caller, "GET", "rank", {"id": buffer} | channel)
        if clears:
            self.call(caller, "DELETE", "rank", {"id": buffer} | channel)
            self.changed = "rank", {"id": buffer}

    @rule(buffer=BUFFERS, blobs=st.lists(st.tuples(ANYONE, CHANNELS, BLOBS), min_size=1, max_size=4))
    def accumulate(self, buffer: str, blobs: list[tuple[Caller, dict[str, str], object]]) -> None:
        for caller, channel, blob in blobs:
            self.call(caller, "POST", "accumulate", {"id": buffer} | channel, blob)
        self.changed = "accumulate", {"id": buffer}

    @rule(caller=WRITERS, channel=CHANNELS, buffer=BUFFERS, start=st.none() | st.integers(-5, 2000) | st.just("soon"))
    def read_buffer(self, caller: Caller, channel: dict[str, str], buffer: str, start: int | str | None) -> None:
        since = str(self.model.clock.now - start) if isinstance(start, int) else start
        self.call(caller, "GET", "accumulate", {"id": buffer} | channel | ({"start": since} if since else {}))

    @rule(caller=WRITERS, channel=CHANNELS)
    def list_by_channel(self, caller: Caller, channel: dict[str, str]) -> None:
        for name in ("polls", "rankings", "buffers"):
            listed = self.call(caller, "GET", name, channel).get(name, [])
            pages = self.pages(lambda page, name=name: self.send(caller, "GET", name, channel | page, ...))
            assert listed == [row for page in pages if listed for row in page.raise_for_status().json()[name]]

    @rule()
    def list_contents(self) -> None:
        counts = self.control("contents", {}).json()
        for kind in KINDS:
            expected = self.model.contents(kind)
            pages = self.pages(lambda page, kind=kind: self.control(f"contents/{kind}", page))
            rows = [row for page in pages for row in page.json()["rows"]]
            names = ("client_id", "channel_id", "id", "count", "expires_at")
            assert expected == sorted((tuple(row.get(name) for name in names) for row in rows), key=str)
            assert len(expected) == counts[kind]

    def teardown(self) -> None:
        if self.agrees:
            self.list_contents()
        super().teardown()

    def pages(self, read: Callable[[dict[str, str]], httpx.Response]) -> Iterator[httpx.Response]:
        """Read the pages of a list, with two rows each."""
        cursor = "0"
        while (page := read({"limit": "2", "cursor": cursor})).is_success:
            yield page
            if (cursor := page.json()["next"]) == "0":
                break

    @rule(channel=CHANNELS, poll=POLLS, buffer=BUFFERS)
    def wait_for_what_is(self, channel: dict[str, str], poll: str, buffer: str) -> None:
        """A condition that holds is met at once. It is not if the last of its comparisons wants one more."""
        votes = self.model.polls.get_vote(Call(OURS[9], "GET", "vote", {"id": poll} | channel))
        ranked = self.model.rankings.get_rank(Call(OURS[9], "GET", "rank", {"id": buffer} | channel))["data"]
        scores = {each["key"]: each["score"] for each in ranked}
        game = replace(OURS[10], channel=channel.get("channel_id"))
        for subject, id, key, found in (
            ("poll", poll, "", {"count": votes["count"], "value 1": votes["specific"][1], "sum": votes["sum"]}),
            ("rank", buffer, "red", {"count": sum(scores.values()), "score of red": scores.get("red", 0)}),
            ("trivia", "", "", {"count": len(self.model.trivia.contests[CLIENT_ID])}),
            *([("purchase", "", "", {"count": len(self.model.games.outstanding(game))})] if channel else []),
        ):
            for more in (0, 1):
                last = [*found][-1]
                numbers = found | {last: found[last] + more}
                wanted = {name.split()[0]: f"{'1=' * (name == 'value 1')}={number}" for name, number in numbers.items()}
                query = {"for": subject, "id": id, "client_id": CLIENT_ID, "timeout": "0"} | channel | wanted
                outcome = self.control("wait", query | ({"key": key} if key else {})).json()
                assert (not more, found) == (outcome["met"], outcome["found"]), (query, outcome)
