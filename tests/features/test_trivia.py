"""Trivia: its limits, and votes that race. `tests/surface/trivia.py` models the rest."""

from __future__ import annotations

import asyncio

import pytest

from support.connection import Connection
from support.trivia import create_question


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
    teams = admin.get("curated_poll_leaderboard").json()["leaderboard"]
    assert (200, {200, 400}) == (statuses[60], {200, 400} | set(votes))
    assert votes.count(200) == sum(row["questions"]["q1"]["team_votes"] for row in teams)


@pytest.mark.slow
def test_an_extension_has_at_most_64_questions_of_64_options(admin):
    def add_question(number: int) -> int:
        return admin.post("curated_poll_edit", json={"id": f"q{number}"}).status_code

    def add_option(number: int) -> int:
        body = {"id": "q0", "option": {"id": f"o{number}"}}
        return admin.post("curated_poll_edit_option", json=body).status_code

    for add in (add_question, add_option):
        assert [200] * 64 + [400, 200] == [add(number) for number in (*range(65), 63)]
    admin.request("DELETE", "curated_poll_edit", json={"id": "q5"})
    assert 200 == add_question(64)


def test_all_questions_together_have_at_most_512_kib(admin):
    admin.post("curated_poll_edit", json={"id": "q1"})
    texts = {"description": "\x01" * 1024, "image": "\x01" * 1024}  # each six bytes of JSON
    options = [{"id": "q1", "option": {"id": f"o{number}", **texts}} for number in range(43)]
    answers = [admin.post("curated_poll_edit_option", json=each) for each in options]

    assert [200] * 42 + [400] == [each.status_code for each in answers]
    assert "Contest too large" == answers[42].json()["reason"]
