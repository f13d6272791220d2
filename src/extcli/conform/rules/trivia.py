"""Trivia questions: who edits them, and what viewers see and do in each state."""

from __future__ import annotations

from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, expect, rule

SOURCE = "gaps: Trivia"
INACTIVE, UNLOCKED, LOCKED, RESULTS = (f"state-{name}" for name in ("inactive", "unlocked", "locked", "results"))


def create(at: Deployment, state: str = INACTIVE) -> str:
    """Add a question with the options o1 and o2, move it to a state, and return its id."""
    question = at.fresh("question")
    at.admin.post("curated_poll_edit", {"id": question, "name": "Which?"}).check()
    for option in ("o1", "o2"):
        at.admin.post("curated_poll_edit_option", {"id": question, "option": {"id": option}}).check()
    if state != INACTIVE:
        move(at, question, state)
    return question


def move(at: Deployment, question: str, state: str) -> None:
    """Move a question to a state; its winner is o1."""
    winner = {"winner": "o1"} if state == RESULTS else {}
    reply = at.admin.post("curated_poll_state", {"transition": state, **winner}, id=question)
    expect(f"the response to a move to {state}", {"state": state}, reply.data)


def status_of_vote(at: Deployment, question: str, option: str = "o1") -> int:
    """Vote as the probe's viewer, and return the status."""
    return at.viewer.post("curated_poll", {"question_id": question, "vote": option}).status


def questions(at: Deployment) -> list[Any]:
    """Return the ids of the questions that a viewer sees."""
    return [question.get("id") for question in at.viewer.get("curated_poll").data["questions"]]


@rule(SOURCE, *ROLES)
def leaderboard_by_role(at: Deployment) -> None:
    """Only admins and backends read the leaderboard."""
    for role, status in (("viewer", 403), ("broadcaster", 403), ("admin", 200), ("backend", 200)):
        expect(f"the status for role {role}", status, at.caller(role).get("curated_poll_leaderboard").status)


@rule(SOURCE, "viewer", "admin")
def absent_question(at: Deployment) -> None:
    """An absent question gets 404."""
    for caller in (at.viewer, at.admin):
        expect(f"the status for role {caller.role}", 404, caller.get("curated_poll", id=at.fresh("question")).status)


@rule(SOURCE, "viewer", "broadcaster", writes=True)
def editors_of_questions(at: Deployment) -> None:
    """Viewers and broadcasters may not add, move or remove a question: 403."""
    question = at.fresh("question")
    for caller in (at.viewer, at.broadcaster):
        for reply in (
            caller.post("curated_poll_edit", {"id": question}),
            caller.post("curated_poll_edit_option", {"id": question, "option": {"id": "o1"}}),
            caller.post("curated_poll_state", {"transition": UNLOCKED}, id=question),
            caller.delete("curated_poll_edit", {"id": question}),
        ):
            expect(f"the status of {reply.request} for a {caller.role}", 403, reply.status)


@rule(SOURCE, "viewer", "admin", writes=True)
def new_question(at: Deployment) -> None:
    """A new question is inactive: admins see it, viewers do not."""
    question = create(at)
    expect("the state that an admin reads", INACTIVE, at.admin.get("curated_poll", id=question).data["state"])
    expect("the status for a viewer", 404, at.viewer.get("curated_poll", id=question).status)
    expect("whether a viewer's list has it", False, question in questions(at))
    move(at, question, UNLOCKED)
    expect("whether a viewer's list has it once it is unlocked", True, question in questions(at))


@rule(SOURCE, "viewer", "admin", writes=True)
def votes_on_questions(at: Deployment) -> None:
    """A question takes votes only while it is unlocked; the voter sees their vote."""
    for state, status in ((INACTIVE, 404), (LOCKED, 400), (RESULTS, 400), (UNLOCKED, 200)):
        question = create(at, state)
        expect(f"the status of a vote in {state}", status, status_of_vote(at, question))
    expect("the status of a vote for an absent option", 404, status_of_vote(at, question, "o9"))
    expect("the results that the voter sees", {"you": "o1"}, at.viewer.get("curated_poll", id=question).data["results"])


@rule(SOURCE, "viewer", "admin", writes=True)
def winner_of_a_question(at: Deployment) -> None:
    """The winner is shown in state-results only."""
    question = create(at)
    for state, results in ((RESULTS, {"winner": "o1"}), (LOCKED, {}), (UNLOCKED, {})):
        move(at, question, state)
        seen = at.viewer.get("curated_poll", id=question).data["results"]
        expect(f"the results in {state}", results, seen)


@rule(SOURCE, "admin", writes=True)
def edited_question(at: Deployment) -> None:
    """An edit replaces the texts and keeps options and state."""
    question = create(at, LOCKED)
    edited = at.admin.post("curated_poll_edit", {"id": question, "short_name": "W"}).data
    wanted = {"name": "", "short_name": "W", "state": LOCKED}
    expect("the texts and the state", wanted, {name: edited.get(name) for name in wanted})
    expect("the options", ["o1", "o2"], [option["id"] for option in edited["options"]])


@rule(SOURCE, "admin", writes=True)
def removed_question(at: Deployment) -> None:
    """A removed question is gone, and removing an absent one gets 404."""
    question = create(at)
    expect("the response to DELETE", {}, at.admin.delete("curated_poll_edit", {"id": question}).data)
    for reply in (
        at.admin.get("curated_poll", id=question),
        at.admin.delete("curated_poll_edit", {"id": question}),
    ):
        expect(f"the status of {reply.request} afterwards", 404, reply.status)
