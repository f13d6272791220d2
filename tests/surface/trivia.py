"""The model of trivia: questions, votes, teams and the leaderboard (gaps: Trivia)."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from surface.calls import DAY, EXTENSION_WRITERS, Call, Clock, Refused

INACTIVE, UNLOCKED, LOCKED, RESULTS = (f"state-{name}" for name in ("inactive", "unlocked", "locked", "results"))
TEXTS = {"name": "", "short_name": "", "description": ""}


@dataclass
class Question:
    """A question. Votes name its serial, so that none counts for a later question with its id."""

    texts: dict[str, Any]
    serial: int = field(default_factory=count().__next__)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By id, oldest first."""
    state: str = INACTIVE
    winner: str = ""

    def option(self, id: str) -> str:
        if id not in self.options:
            raise Refused(404, "Not Found")
        return id


@dataclass
class Voter:
    """A user's team, and their votes by the serial of the question."""

    expires_at: int = 0
    team: str = ""
    owns_team: bool = False
    votes: dict[int, str] = field(default_factory=dict)

    def vote(self, question: Question) -> str:
        vote = self.votes.get(question.serial, "")
        return vote if vote in question.options else ""

    def join(self, call: Call) -> None:
        if call.caller.role == "broadcaster" and call.channel:
            self.team, self.owns_team = call.channel, True
        if not self.team:
            if not call.channel:
                raise Refused(400, "Invalid channel")
            self.team = call.channel


def _texts(body: dict[str, Any]) -> dict[str, Any]:
    if len(body.get("short_name", "")) > 64 or abs(body.get("order", 0)) > 10**9:
        raise Refused(400, "Invalid body")
    return TEXTS | body


def _by_order(texts: dict[str, Any]) -> float:
    return float(texts.get("order", 0))


class Trivia:
    """The questions and voters of all extensions."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.contests: dict[str, dict[str, Question]] = defaultdict(dict)
        """By client id and id, oldest first."""
        self.ends: dict[str, int] = {}
        """By client id: when all its questions expire."""
        self.voters: dict[tuple[str, str], Voter] = {}
        """By client id and opaque id."""

    def expire(self) -> None:
        for client_id in [each for each, end in self.ends.items() if end <= self.clock.now]:
            del self.contests[client_id], self.ends[client_id]
        self.voters = {key: voter for key, voter in self.voters.items() if self.clock.now < voter.expires_at}

    def expiries(self) -> list[int]:
        return [*self.ends.values(), *(voter.expires_at for voter in self.voters.values())]

    def post_curated_poll_edit(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        texts, contest = _texts(call.body), self.contests[call.caller.client_id]
        contest.setdefault(texts["id"], Question(texts)).texts = texts
        return self._edited(call, texts["id"])

    def delete_curated_poll_edit(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        self._question(call, call.body["id"])
        del self.contests[call.caller.client_id][call.body["id"]]
        self._edited(call)
        return {}

    def post_curated_poll_edit_option(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        option = _texts(call.body["option"])
        self._question(call, call.body["id"]).options[option["id"]] = option
        return self._edited(call, call.body["id"])

    def delete_curated_poll_edit_option(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        question = self._question(call, call.body["question"])
        if question.option(call.body["option"]) == question.winner:
            raise Refused(400, "Option is the winner")
        del question.options[call.body["option"]]
        return self._edited(call, call.body["question"])

    def post_curated_poll_state(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        state, winner = call.body["transition"], call.body.get("winner", "")
        if state not in (INACTIVE, UNLOCKED, LOCKED, RESULTS):
            raise Refused(400, "Invalid transition")
        question = self._question(call, call.id)
        if state == RESULTS and not winner:
            raise Refused(400, "Invalid winner")
        question.winner = question.option(winner) if state == RESULTS else ""
        question.state = state
        self._edited(call)
        return {"state": state}

    def get_curated_poll(self, call: Call) -> dict[str, Any]:
        if id := call.query.get("id"):
            return self._view(call, self._visible(call, id))
        contest = self.contests[call.caller.client_id].values()
        seen = [each for each in contest if each.state != INACTIVE or call.caller.role in EXTENSION_WRITERS]
        return {"questions": [self._view(call, each) for each in sorted(seen, key=lambda each: _by_order(each.texts))]}

    def post_curated_poll(self, call: Call) -> dict[str, Any]:
        question = self._visible(call, call.body["question_id"])
        if question.state != UNLOCKED:
            raise Refused(400, "question is not unlocked")
        option = question.option(call.body["vote"])
        self._join(call).votes[question.serial] = option
        return {}

    def post_team_membership(self, call: Call) -> dict[str, Any]:
        return {"id": self._join(call).team}

    def get_team_membership(self, call: Call) -> dict[str, Any]:
        return {"id": self._voter(call).team}

    def get_curated_poll_leaderboard(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        teams: dict[str, list[Voter]] = defaultdict(list)
        for (client_id, _), voter in self.voters.items():
            if client_id == call.caller.client_id:
                teams[voter.team].append(voter)
        ended = [each for each in self.contests[call.caller.client_id].values() if each.state == RESULTS]
        rows = []
        for team, members in teams.items():
            scores = {question.texts["id"]: _score(question, members) for question in ended}
            points = sum(sum(score["score_values"]) for score in scores.values())
            rows.append({"team_id": team, "combined_score": points, "questions": scores})
        return {"leaderboard": sorted(rows, key=lambda row: (-row["combined_score"], row["team_id"]))}

    def _question(self, call: Call, id: str) -> Question:
        if id not in self.contests[call.caller.client_id]:
            raise Refused(404, "Not Found")
        return self.contests[call.caller.client_id][id]

    def _visible(self, call: Call, id: str) -> Question:
        question = self._question(call, id)
        if question.state == INACTIVE and call.caller.role not in EXTENSION_WRITERS:
            raise Refused(404, "Not Found")
        return question

    def _edited(self, call: Call, id: str = "") -> dict[str, Any]:
        client_id = call.caller.client_id
        self.ends[client_id] = max(self.clock.now + DAY, self.ends.get(client_id, 0))
        return self._view(call, self.contests[client_id][id]) if id else {}

    def _voter(self, call: Call) -> Voter:
        return self.voters.get((call.caller.client_id, call.caller.opaque_id)) or Voter()

    def _join(self, call: Call) -> Voter:
        voter = self._voter(call)
        voter.join(call)
        voter.expires_at = max(voter.expires_at, self.clock.now + DAY)
        self.voters[call.caller.client_id, call.caller.opaque_id] = voter
        return voter

    def _view(self, call: Call, question: Question) -> dict[str, Any]:
        results = {"you": self._voter(call).vote(question), "winner": question.winner}
        return question.texts | {
            "state": question.state,
            "options": sorted(question.options.values(), key=_by_order),
            "results": {name: option for name, option in results.items() if option},
        }


def _score(question: Question, members: list[Voter]) -> dict[str, Any]:
    votes = [vote for voter in members if (vote := voter.vote(question))]
    share = votes.count(question.winner) / len(votes) if votes else 0.0
    is_right = any(voter.owns_team and voter.vote(question) == question.winner for voter in members)
    return {
        "question_id": question.texts["id"],
        "broadcaster_correct": is_right,
        "team_participation": len(votes) / len(members),
        "team_participants": len(votes),
        "percent_correct": share,
        "team_votes": len(votes),
        "score_values": [50 * is_right, math.floor(50 * share + 0.5)],
    }
