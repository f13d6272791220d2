"""Trivia questions: edits, visibility and votes (rest-clients 2.12, 7.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.service import OTHER_ID, Client, LiveServer
from support.trivia import create_question, ids, results, set_state, vote

STATES = ["state-inactive", "state-unlocked", "state-locked", "state-results"]
FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}


def test_every_call_of_the_published_sdk_returns_what_the_sdk_reads(admin, viewer):
    def call(method: str, path: str, body: str | None = None, client: Client = admin) -> Any:
        headers = FORM if body else {"Content-Length": "0"}
        return client.request(method, path, content=body or b"", headers=headers).raise_for_status().json()

    question = {"id": "q1", "name": "Which boss?", "short_name": "Boss", "description": "The last.", "image": "b.png"}
    option = {"id": "o1", "name": "Dragon", "short_name": "D", "description": "Of fire.", "order": 2}
    added = call("POST", "curated_poll_edit", json.dumps(question))
    with_option = call("POST", "curated_poll_edit_option", json.dumps({"id": "q1", "option": option}))
    unlocked = call("POST", "curated_poll_state?id=q1", '{"transition":"state-unlocked"}')
    voted = call("POST", "curated_poll", '{"question_id":"q1","vote":"o1"}', viewer())
    ended = call("POST", "curated_poll_state?id=q1", '{"transition":"state-results","winner":"o1"}')
    seen = call("GET", "curated_poll", client=viewer())
    one = call("GET", "curated_poll?id=q1", client=viewer())
    team = call("POST", "team_membership", client=viewer())
    reopened = call("POST", "curated_poll_state?id=q1", '{"transition":"state-locked"}')
    without_option = call("DELETE", "curated_poll_edit_option", '{"question":"q1","option":"o1"}')
    removed = call("DELETE", "curated_poll_edit", '{"id":"q1"}')

    assert question | {"state": "state-inactive", "options": [], "results": {}} == added
    assert added | {"options": [option]} == with_option
    assert ["state-unlocked", "state-results", "state-locked"] == [
        each["state"] for each in (unlocked, ended, reopened)
    ]
    assert with_option | {"state": "state-results", "results": {"you": "o1", "winner": "o1"}} == one
    assert {"questions": [one]} == seen
    assert [{}, {"id": "777"}, [], {}] == [voted, team, without_option["options"], removed]
    assert {"questions": []} == call("GET", "curated_poll")


def test_an_edit_replaces_the_texts_and_keeps_options_state_and_votes(admin):
    create_question(admin, name="Which boss?", image="b.png")
    vote(admin, "o2")

    answer = admin.post("curated_poll_edit", json={"id": "q1", "name": "Who?"}).json()
    edited = admin.post("curated_poll_edit_option", json={"id": "q1", "option": {"id": "o1", "name": "Golem"}}).json()

    assert ("Who?", "state-unlocked", {"you": "o2"}) == (answer["name"], answer["state"], answer["results"])
    assert [("o1", "Golem"), ("o2", "")] == [(each["id"], each["name"]) for each in edited["options"]]
    assert "image" not in answer


def test_questions_and_options_are_sorted_by_order_then_by_age(admin):
    for question, order in (("late", 7), ("none", None), ("early", -1.5), ("zero", 0)):
        admin.post("curated_poll_edit", json={"id": question} | ({} if order is None else {"order": order}))
    for option, order in (("b", 2), ("a", 2), ("first", 1)):
        admin.post("curated_poll_edit_option", json={"id": "late", "option": {"id": option, "order": order}})

    options = [each["id"] for each in admin.get("curated_poll?id=late").json()["options"]]
    assert (["early", "none", "zero", "late"], ["first", "b", "a"]) == (ids(admin), options)


@pytest.mark.slow
@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_a_question_moves_from_any_state_to_any_other(admin, viewer, before: str, after: str):
    create_question(admin, state=before)

    answer = set_state(admin, after)

    assert (200, {"state": after}) == (answer.status_code, answer.json())
    assert ([] if after == "state-inactive" else ["q1"]) == ids(viewer())
    assert (["q1"], after) == (ids(admin), admin.get("curated_poll?id=q1").json()["state"])
    assert ({"winner": "o1"} if after == "state-results" else {}) == results(admin)


def test_a_user_may_change_the_vote_while_the_question_is_unlocked(admin, viewer):
    create_question(admin)

    statuses = [vote(viewer("1")), vote(viewer("1"), "o2"), vote(viewer(None, opaque="Aabc"), "o1")]
    set_state(admin, "state-locked")
    statuses.append(vote(viewer("1"), "o1"))

    assert [200, 200, 200, 400] == statuses
    voters = (viewer("1"), viewer("1", channel="888"), viewer(None, opaque="Aabc"), viewer("2"))
    assert [{"you": "o2"}, {"you": "o2"}, {"you": "o1"}, {}] == [results(each) for each in voters]


@pytest.mark.parametrize(
    ("transition", "winner", "status"), [("results", "", 400), ("results", "o9", 404), ("open", "o1", 400)]
)
def test_an_unknown_state_and_one_of_results_without_a_winner_are_refused(admin, transition, winner, status):
    create_question(admin)

    answer = admin.post("curated_poll_state?id=q1", json={"transition": f"state-{transition}", "winner": winner})

    assert (status, "state-unlocked") == (answer.status_code, admin.get("curated_poll?id=q1").json()["state"])


def test_the_current_winner_cannot_be_removed(admin, viewer):
    create_question(admin)
    vote(viewer(), "o2")
    set_state(admin, "state-results")

    refused, other = (
        admin.request("DELETE", "curated_poll_edit_option", json={"question": "q1", "option": each})
        for each in ("o1", "o2")
    )

    assert (400, True) == (refused.status_code, refused.json()["info"].startswith("option: "))
    assert ["o1"] == [each["id"] for each in other.json()["options"]]
    assert {"winner": "o1"} == results(viewer())


def test_a_new_question_with_a_removed_id_has_no_options_and_votes(admin, viewer):
    create_question(admin)
    vote(viewer())
    admin.request("DELETE", "curated_poll_edit", json={"id": "q1"})

    fresh = admin.post("curated_poll_edit", json={"id": "q1"}).json()
    create_question(admin)

    assert ("state-inactive", []) == (fresh["state"], fresh["options"])
    assert {} == results(viewer())


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "curated_poll_edit", {"id": "q9"}),
        ("POST", "curated_poll_edit_option", {"id": "q9", "option": {"id": "o1"}}),
        ("DELETE", "curated_poll_edit_option", {"question": "q9", "option": "o1"}),
        ("DELETE", "curated_poll_edit_option", {"question": "q1", "option": "o9"}),
        ("POST", "curated_poll_state?id=q9", {"transition": "state-locked"}),
        ("GET", "curated_poll?id=q9", None),
        ("POST", "curated_poll", {"question_id": "q9", "vote": "o1"}),
        ("POST", "curated_poll", {"question_id": "q1", "vote": "o9"}),
    ],
)
def test_an_unknown_question_or_option_gets_404(admin, method: str, path: str, body: Any):
    create_question(admin)

    answer = admin.request(method, path, json=body)

    kind = "option o9" if "o9" in str(body) else "question q9"
    assert (404, True) == (answer.status_code, answer.json()["info"].endswith(kind))


def test_questions_votes_and_teams_of_different_extensions_are_separate(live: LiveServer, admin, viewer):
    create_question(admin)
    vote(viewer())
    others = {role: live.client(role, user="5551", channel="888", client_id=OTHER_ID) for role in ("admin", "viewer")}

    assert ([], {"id": ""}) == (ids(others["admin"]), others["viewer"].get("team_membership").json())
    create_question(others["admin"])
    assert {} == results(others["viewer"])
    assert {"leaderboard": []} == others["admin"].get("curated_poll_leaderboard").json()
    others["admin"].request("DELETE", "curated_poll_edit", json={"id": "q1"})
    assert (["q1"], {"you": "o1"}) == (ids(admin), results(viewer()))
