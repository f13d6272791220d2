"""Trivia questions: who edits them, and what viewers see and do in each state."""

from __future__ import annotations

from typing import Any

from extcli.conform.calls import Caller
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, reads, writes

SOURCE = "gaps: Trivia"
INACTIVE, UNLOCKED, LOCKED, RESULTS = (f"state-{name}" for name in ("inactive", "unlocked", "locked", "results"))


class Question:
    """A new question with the options o1 and o2, as callers use it."""

    def __init__(self, at: Deployment, state: str = INACTIVE) -> None:
        """Add the question, and move it to a state."""
        self._at = at
        self.id = at.fresh("question")
        at.admin.post("curated_poll_edit", {"id": self.id, "name": "Which?"})
        for option in ("o1", "o2"):
            at.admin.post("curated_poll_edit_option", {"id": self.id, "option": {"id": option}})
        if state != INACTIVE:
            self.move(state)

    def move(self, state: str) -> None:
        """Move the question to a state; its winner is o1."""
        winner = {"winner": "o1"} if state == RESULTS else {}
        self._at.admin.post("curated_poll_state", {"transition": state, **winner}, id=self.id).returns({"state": state})

    def vote(self, status: int, option: str = "o1") -> None:
        """Vote as the probe's viewer, and check the status of the response."""
        self._at.viewer.post("curated_poll", {"question_id": self.id, "vote": option}, status=status)

    def read(self, by: Caller) -> Any:
        """Return the question as this caller reads it."""
        return by.get("curated_poll", id=self.id).json

    def is_listed(self, expected: bool) -> None:
        """Raise `Differs` unless a viewer's list has the question, or has it not."""
        listed = [each.get("id") for each in self._at.viewer.get("curated_poll").json["questions"]]
        expect("whether a viewer's list has the question", expected, self.id in listed)


@reads(SOURCE)
def leaderboard_by_role(at: Deployment) -> None:
    """Only admins and backends read the leaderboard."""
    at.check_readers(("admin", "backend"), "curated_poll_leaderboard")


@reads(SOURCE)
def absent_question(at: Deployment) -> None:
    """An absent question gets 404."""
    for caller in (at.viewer, at.admin):
        caller.get("curated_poll", id=at.fresh("question"), status=404)


@writes(SOURCE)
def editors_of_questions(at: Deployment) -> None:
    """Viewers and broadcasters may not add, move or remove a question: 403."""
    id = at.fresh("question")
    for caller in (at.viewer, at.broadcaster):
        caller.post("curated_poll_edit", {"id": id}, status=403)
        caller.post("curated_poll_edit_option", {"id": id, "option": {"id": "o1"}}, status=403)
        caller.post("curated_poll_state", {"transition": UNLOCKED}, id=id, status=403)
        caller.delete("curated_poll_edit", {"id": id}, status=403)


@writes(SOURCE)
def new_question(at: Deployment) -> None:
    """A new question is inactive: admins see it, viewers do not."""
    question = Question(at)
    expect("the state that an admin reads", INACTIVE, question.read(at.admin)["state"])
    at.viewer.get("curated_poll", id=question.id, status=404)
    question.is_listed(False)
    question.move(UNLOCKED)
    question.is_listed(True)


@writes(SOURCE)
def votes_on_questions(at: Deployment) -> None:
    """A question takes votes only while it is unlocked; the voter sees their vote."""
    for state, status in ((INACTIVE, 404), (LOCKED, 400), (RESULTS, 400), (UNLOCKED, 200)):
        question = Question(at, state)
        question.vote(status)
    question.vote(404, "o9")
    expect("the results that the voter sees", {"you": "o1"}, question.read(at.viewer)["results"])


@writes(SOURCE)
def winner_of_a_question(at: Deployment) -> None:
    """The winner is shown in state-results only."""
    question = Question(at)
    for state, results in ((RESULTS, {"winner": "o1"}), (LOCKED, {}), (UNLOCKED, {})):
        question.move(state)
        expect(f"the results in {state}", results, question.read(at.viewer)["results"])


@writes(SOURCE)
def edited_question(at: Deployment) -> None:
    """An edit replaces the texts and keeps options and state."""
    question = Question(at, LOCKED)
    edited = at.admin.post("curated_poll_edit", {"id": question.id, "short_name": "W"})
    edited.has(name="", short_name="W", state=LOCKED)
    expect("the options", ["o1", "o2"], [option["id"] for option in edited.json["options"]])


@writes(SOURCE)
def removed_question(at: Deployment) -> None:
    """A removed question is gone, and removing an absent one gets 404."""
    id = Question(at).id
    at.admin.delete("curated_poll_edit", {"id": id}).returns({})
    at.admin.get("curated_poll", id=id, status=404)
    at.admin.delete("curated_poll_edit", {"id": id}, status=404)
