"""Trivia questions: edits, visibility and votes (rest-clients 2.12, 7.6)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from support.connection import Connection
from support.service import OTHER_ID, Client, LiveServer
from support.trivia import create_question, ids, results, set_state, team, vote

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


def test_questions_and_options_are_sorted_by_order_then_by_age(admin):
    for question, order in (("late", 7), ("none", None), ("early", -1.5), ("zero", 0)):
        admin.post("curated_poll_edit", json={"id": question} | ({} if order is None else {"order": order}))
    for option, order in (("b", 2), ("a", 2), ("first", 1)):
        admin.post("curated_poll_edit_option", json={"id": "late", "option": {"id": option, "order": order}})

    options = [each["id"] for each in admin.get("curated_poll?id=late").json()["options"]]
    assert (["early", "none", "zero", "late"], ["first", "b", "a"]) == (ids(admin), options)


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


# Teams and the leaderboard


def leaderboard(admin: Client) -> list[dict[str, Any]]:
    return list(admin.get("curated_poll_leaderboard").raise_for_status().json()["leaderboard"])


def scores(admin: Client) -> list[tuple[str, int]]:
    return [(each["team_id"], each["combined_score"]) for each in leaderboard(admin)]


def owner(live: LiveServer, channel: str) -> Client:
    return live.client("broadcaster", user=channel, channel=channel)


@pytest.mark.parametrize("joins", [False, True])
def test_the_first_vote_or_joining_sets_the_team_permanently(admin, viewer, joins: bool):
    create_question(admin)
    before = team(viewer())

    if joins:
        viewer(channel="777").post("team_membership").raise_for_status()
    else:
        vote(viewer(channel="777"))
    vote(viewer(channel="888"))
    joined = viewer(channel="888").post("team_membership").json()

    assert ("", {"id": "777"}, "777") == (before, joined, team(viewer(channel="888")))


@pytest.mark.parametrize(
    ("state", "option"), [("state-locked", "o1"), ("state-inactive", "o1"), ("state-unlocked", "o9")]
)
def test_a_refused_vote_sets_no_team(admin, viewer, state: str, option: str):
    create_question(admin, state=state)

    assert vote(viewer(), option) in (400, 404)
    assert "" == team(viewer())


async def test_a_vote_concurrent_with_a_change_of_state_counts_or_is_refused(live, admin, viewer):
    create_question(admin)

    async def cast(user: int) -> int:
        async with Connection(live, viewer(str(user))) as voter:
            return (await voter.send("curated_poll", {"question_id": "q1", "vote": "o1"}))[0]

    async def lock() -> int:
        async with Connection(live, admin) as editor:
            return (await editor.send("curated_poll_state?id=q1", {"transition": "state-results", "winner": "o1"}))[0]

    before, locked, after = (map(cast, range(60)), lock(), map(cast, range(60, 120)))
    statuses = await asyncio.gather(*before, locked, *after)

    votes = statuses[:60] + statuses[61:]
    taken = sum(row["questions"]["q1"]["team_votes"] for row in leaderboard(admin))
    assert (200, {200, 400}) == (statuses[60], {200, 400} | set(votes))
    assert taken == votes.count(200)


def test_a_broadcasters_team_is_their_own_channel(live: LiveServer, admin):
    create_question(admin)
    watching = live.client("viewer", user="888", channel="777")

    vote(watching, "o2")
    before = team(watching)
    vote(owner(live, "888"))

    assert ("777", "888") == (before, team(watching))
    set_state(admin, "state-results")
    (row,) = leaderboard(admin)
    assert ("888", True, 1) == (row["team_id"], row["questions"]["q1"]["broadcaster_correct"],
                                row["questions"]["q1"]["team_votes"])  # fmt: skip


def test_without_a_channel_a_user_can_neither_join_nor_vote(admin, backend):
    create_question(admin)

    answers = [backend.post("team_membership"), backend.post("curated_poll", json={"question_id": "q1", "vote": "o1"})]

    assert [400, 400] == [each.status_code for each in answers]
    assert {} == results(backend)
    assert {"id": "888"} == backend.post("team_membership?channel_id=888").json()
    assert 200 == vote(backend)


def test_a_leaderboard_entry_explains_its_score(live: LiveServer, admin, viewer):
    create_question(admin)
    vote(owner(live, "777"))
    vote(viewer("1"))
    vote(viewer("2"), "o2")
    for user in "345":
        viewer(user).post("team_membership")

    set_state(admin, "state-results")

    score = {
        "question_id": "q1",
        "broadcaster_correct": True,
        "team_participation": 0.5,
        "team_participants": 3,
        "percent_correct": 2 / 3,
        "team_votes": 3,
        "score_values": [50, 33],
    }
    assert [{"team_id": "777", "combined_score": 83, "questions": {"q1": score}}] == leaderboard(admin)


def test_the_combined_score_adds_the_questions_in_state_results(admin, viewer):
    for question in ("q1", "q2", "q3"):
        create_question(admin, question)
        vote(viewer(), question=question)
    vote(viewer("2"), "o2", "q2")

    seen = [scores(admin)]
    for question in ("q1", "q2"):
        set_state(admin, "state-results", question)
        seen.append(scores(admin))
    set_state(admin, "state-locked", "q1")

    assert [[("777", 0)], [("777", 50)], [("777", 75)], [("777", 25)]] == [*seen, scores(admin)]
    assert ["q2"] == list(leaderboard(admin)[0]["questions"])


def test_votes_for_removed_options_and_questions_do_not_count(admin, viewer):
    create_question(admin)
    create_question(admin, "q2")
    for user, option in (("1", "o1"), ("2", "o2")):
        vote(viewer(user), option)
        vote(viewer(user), option, "q2")
    admin.request("DELETE", "curated_poll_edit_option", json={"question": "q1", "option": "o2"})
    admin.request("DELETE", "curated_poll_edit", json={"id": "q2"})

    set_state(admin, "state-results")

    (row,) = leaderboard(admin)
    assert (50, ["q1"]) == (row["combined_score"], list(row["questions"]))
    assert (1, 0.5) == (row["questions"]["q1"]["team_votes"], row["questions"]["q1"]["team_participation"])
