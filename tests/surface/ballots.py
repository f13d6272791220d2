"""The model of polls, rankings and accumulation (rulings P1 to P5, R1 to R3)."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from typing import Any

from surface.calls import (
    CHANNEL_WRITERS,
    DAY,
    EXTENSION_WRITERS,
    SECOND,
    WEEK,
    ByChannel,
    Call,
    Clock,
    Refused,
    only_servers_if,
)
from surface.people import People

DEFINITION = {
    "prompt": "", "options": [], "userData": None, "startsAt": 0, "endsAt": 0, "userIDVoting": False,
    "distinctOptionsPerUser": 1, "totalVotesPerUser": 1, "votesPerOption": 1, "disabled": False,
}  # fmt: skip


@dataclass
class Vote:
    """One log entry: `times` votes of one user for one value."""

    voter: str
    shared: str
    """The shared id in the token; empty if there was none."""
    value: int
    times: int
    at: int
    sequence: int


@dataclass
class Poll:
    """A poll has a definition, votes, or both."""

    expires_at: int
    definition: dict[str, Any] | None = None
    votes: list[Vote] = field(default_factory=list)
    """In the order of casting."""

    @property
    def adds_up(self) -> bool:
        return self.rule("totalVotesPerUser") > 1

    def rule(self, name: str) -> Any:
        return (self.definition or DEFINITION)[name]


def integer(value: object, error: str = "Invalid body") -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refused(400, error)
    return value


class Polls:
    """Polls of all extensions (Poll; Voting)."""

    def __init__(self, clock: Clock, people: People) -> None:
        self.clock, self.people, self.polls, self._sequence = clock, people, ByChannel(), 0

    def expire(self) -> None:
        self.polls.expire(self.clock.now)

    def expiries(self) -> list[int]:
        windows = [poll.rule(end) * SECOND for poll in self.polls.items.values() for end in ("startsAt", "endsAt")]
        return self.polls.expiries() + windows

    def votes(self, call: Call) -> list[Vote]:
        """All votes that a read covers, oldest first; ties in order of arrival (P3)."""
        votes = [vote for _, poll in self.polls.covered(call) for vote in poll.votes]
        return sorted(votes, key=lambda vote: (vote.at, vote.sequence))

    def get_vote(self, call: Call) -> dict[str, Any]:
        votes = self.votes(call)
        values = [vote.value for vote in votes for _ in range(vote.times)]
        stats: dict[str, Any] = {
            "stddev": float(statistics.pstdev(values)) if values else 0.0,
            "mean": sum(values) / len(values) if values else 0.0,
            "sum": sum(values),
            "count": len(values),
            "specific": [values.count(value) for value in range(64)],
        }
        mine = [vote for vote in votes if vote.voter == call.caller.opaque_id]
        own = {"vote": max(mine, key=lambda vote: vote.sequence).value} if mine else {}
        return {"stats": stats, **stats, **own}

    def post_vote(self, call: Call) -> dict[str, Any]:
        value = integer(call.body.get("value"))
        if not -99 <= value <= 99:
            raise Refused(400, "Value out of bounds")
        key, now, voter = self.polls.key(call), self.clock.now, call.caller.opaque_id
        poll = self.polls.items.get(key) or Poll(now + WEEK)
        times = call.body.get("count", 1) if poll.adds_up else 1
        mine = [vote for vote in poll.votes if vote.voter == voter]
        if not 1 <= times <= 30:
            raise Refused(400, "unacceptable vote")
        if poll.rule("disabled") or now < poll.rule("startsAt") * SECOND or 0 < poll.rule("endsAt") * SECOND <= now:
            raise Refused(400, "poll is closed")
        if poll.rule("userIDVoting") and not call.caller.user:
            raise Refused(400, "unacceptable vote")
        same = [vote for vote in mine if vote.value == value]
        replaced = mine
        if poll.adds_up:
            times, replaced, added = times + sum(vote.times for vote in same), same, times
            if (
                sum(vote.times for vote in mine) + added > poll.rule("totalVotesPerUser")
                or times > poll.rule("votesPerOption")
                or len({vote.value for vote in mine} | {value}) > poll.rule("distinctOptionsPerUser")
            ):
                raise Refused(400, "unacceptable vote")
        self._sequence += 1
        poll.votes = [vote for vote in poll.votes if vote not in replaced]
        poll.votes.append(Vote(voter, call.caller.user or "", value, times, now, self._sequence))
        poll.expires_at, self.polls.items[key] = max(poll.expires_at, now + WEEK), poll
        return self.get_vote(call)

    def delete_vote(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        only_servers_if(call.id.startswith("global-"), call)
        for key, _ in self.polls.covered(call):
            del self.polls.items[key]
        return {}

    def get_vote_logs(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        since, limit = int(call.query.get("since", 0)), int(call.query.get("limit", 10**9))
        is_one_poll = call.channel is not None or call.id.startswith("global-")
        counted = is_one_poll and any(poll.adds_up for _, poll in self.polls.covered(call))
        shared, client_id = self.people.shared, call.caller.client_id
        lines = [
            {
                "identifier": vote.shared or shared.get((client_id, vote.voter), vote.voter),
                "opaque": vote.voter,
                "value": vote.value,
                "timestamp": vote.at,
            }
            | ({"count": vote.times} if counted or vote.times > 1 else {})
            for vote in self.votes(call)
            if vote.at >= since
        ]
        return {"result": lines[:limit]}

    def post_vote_config(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        config, poll_id = call.body["config"], call.body.get("id") or call.id
        only_servers_if(poll_id.startswith("global-"), call)
        definition = {**DEFINITION, **config, "id": poll_id, "global": poll_id.startswith("global-")}
        if (
            ("options" in config and not 1 <= len(config["options"]) <= 64)
            or (config.get("global") and not definition["global"])
            or not 1 <= definition["totalVotesPerUser"] <= 1_024
            or 0 < definition["endsAt"] < definition["startsAt"]
        ):
            raise Refused(400, "Invalid body")
        poll = self.polls.items.setdefault(self.polls.key(call, poll_id), Poll(0))
        poll.definition = definition
        if not poll.votes:
            poll.expires_at = max(poll.expires_at, self.clock.now + WEEK)
        return {}

    def get_vote_config(self, call: Call) -> dict[str, Any]:
        poll = self.polls.items.get(self.polls.key(call))
        if poll is None or poll.definition is None:
            raise Refused(404, "Not Found")
        return {**poll.definition, "status": self._status(poll)}

    def get_polls(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        polls = [
            {
                **place,
                "count": sum(vote.times for vote in poll.votes),
                "status": self._status(poll),
                "latest": poll.expires_at - WEEK if poll.votes else 0,
                **({"disabled": True} if poll.definition is not None and poll.definition["disabled"] else {}),
            }
            for place, poll in self.polls.listed(call)
        ]
        return {"polls": polls, "next": "0"}

    def _status(self, poll: Poll) -> str:
        now, starts, ends = self.clock.now, poll.rule("startsAt") * SECOND, poll.rule("endsAt") * SECOND
        return "expired" if 0 < ends <= now else "pending" if now < starts else "active"


@dataclass
class Ranking:
    """One answer per user, and the sequence number at which each text was first submitted."""

    expires_at: int
    answers: dict[str, str] = field(default_factory=dict)
    first_submitted: dict[str, int] = field(default_factory=dict)


class Rankings:
    """Rankings of all extensions (Ranking; R1)."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.buffers, self._sequence = clock, ByChannel(), 0

    def expire(self) -> None:
        self.buffers.expire(self.clock.now)

    def expiries(self) -> list[int]:
        return self.buffers.expiries()

    def post_rank(self, call: Call) -> dict[str, Any]:
        if not isinstance(call.body.get("key"), str):
            raise Refused(400, "Invalid body")
        answer, caller = call.body["key"], call.caller.opaque_id
        buffer = self.buffers.items.setdefault(self.buffers.key(call), Ranking(0))
        original = {"original": buffer.answers[caller]} if caller in buffer.answers else {}
        buffer.answers[caller], buffer.expires_at = answer, max(buffer.expires_at, self.clock.now + DAY)
        self._sequence += 1
        held = set(buffer.answers.values())
        buffer.first_submitted = {text: sequence for text, sequence in buffer.first_submitted.items() if text in held}
        buffer.first_submitted.setdefault(answer, self._sequence)
        return {"accepted": True, **original}

    def get_rank(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        buffers = [buffer for _, buffer in self.buffers.covered(call)]
        texts = [text for buffer in buffers for text in buffer.answers.values()]
        first_submitted = {
            text: min(each.first_submitted[text] for each in buffers if text in each.first_submitted) for text in texts
        }
        ranked = sorted(first_submitted, key=lambda text: (-texts.count(text), first_submitted[text]))
        return {"data": [{"key": text, "score": texts.count(text)} for text in ranked[:100]]}

    def delete_rank(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        only_servers_if(call.id.startswith("global-"), call)
        for key, _ in self.buffers.covered(call):
            del self.buffers.items[key]
        return {}

    def get_rankings(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        rankings = [
            {**place, "count": len(buffer.answers), "latest": buffer.expires_at - DAY}
            for place, buffer in self.buffers.listed(call)
        ]
        return {"rankings": rankings, "next": "0"}


class Accumulation:
    """Buffers of all extensions (Accumulation; R2, R3). No id is global; each entry has its own expiry."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.entries = clock, []
        self.entries: list[tuple[str, str, dict[str, Any]]]

    def expire(self) -> None:
        self.entries = [entry for entry in self.entries if self.clock.now < entry[2]["observed"] + DAY]

    def expiries(self) -> list[int]:
        return [entry["observed"] + DAY for _, _, entry in self.entries]

    def post_accumulate(self, call: Call) -> dict[str, Any]:
        if len(json.dumps(call.body, separators=(",", ":"), ensure_ascii=False).encode()) >= 256:
            raise Refused(400, "Body too large")
        entry = {
            "observed": self.clock.now,
            "channel_id": call.channel or "",
            "opaque_id": "" if call.caller.user else call.caller.opaque_id,
            "opaque_user_id": call.caller.opaque_id,
            "user_id": call.caller.user or "",
            "data": call.body,
        }
        self.entries.append((call.caller.client_id, call.id, entry))
        return {}

    def get_accumulate(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        start = call.query.get("start") or "0"
        if not start.lstrip("-").isdigit():
            raise Refused(400, "Malformed start parameter")
        mine = [
            entry
            for client_id, name, entry in reversed(self.entries)
            if (client_id, name) == (call.caller.client_id, call.id) and call.channel in (None, entry["channel_id"])
        ]
        mine.sort(key=lambda entry: -entry["observed"])
        latest = max((entry["observed"] for entry in mine), default=0)
        return {"data": [entry for entry in mine if entry["observed"] >= int(start)], "latest": latest}

    def get_buffers(self, call: Call) -> dict[str, Any]:
        call.only(*CHANNEL_WRITERS)
        times: dict[tuple[str, str], list[int]] = {}
        for client_id, name, entry in self.entries:
            if client_id == call.caller.client_id and call.channel in (None, entry["channel_id"]):
                times.setdefault((entry["channel_id"], name), []).append(entry["observed"])
        buffers = [
            {"id": name, "channel_id": channel, "count": len(times[channel, name]), "latest": max(times[channel, name])}
            for channel, name in sorted(times)
        ]
        return {"buffers": buffers, "next": "0"}
