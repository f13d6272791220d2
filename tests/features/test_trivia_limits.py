"""The limits and lifetimes of trivia."""

from __future__ import annotations

import httpx
import pytest

from emulator.core.clock import DAY
from support.service import LiveServer
from support.trivia import create_question, ids, results, set_state, team, vote


@pytest.mark.parametrize(("member", "longest"), [("name", 256), ("id", 64), ("description", 1024)])
def test_a_text_is_limited_in_characters(admin, member: str, longest: int):
    create_question(admin)

    def edited(text: str) -> list[httpx.Response]:
        body = {"id": "x", member: text}
        return [
            admin.post("curated_poll_edit", json=body),
            admin.post("curated_poll_edit_option", json={"id": "q1", "option": body}),
        ]

    assert [200, 200] == [each.status_code for each in edited("\U0001f600" * longest)]
    over = edited("x" * (longest + 1))
    assert [(400, member), (400, f"option.{member}")] == [
        (each.status_code, each.json()["info"].partition(": ")[0]) for each in over
    ]


@pytest.mark.slow
def test_an_extension_has_at_most_64_questions_of_64_options(admin):
    made = [admin.post("curated_poll_edit", json={"id": f"q{n}"}).status_code for n in range(64)]
    options = [{"id": "q0", "option": {"id": f"o{n}"}} for n in range(65)]
    added = [admin.post("curated_poll_edit_option", json=body).status_code for body in options]
    refused = admin.post("curated_poll_edit", json={"id": "q64"})
    over = admin.post("curated_poll_edit_option", json=options[64])

    assert [200] * 128 + [400] == made + added
    assert [400, 400] == [refused.status_code, over.status_code]
    assert 200 == admin.post("curated_poll_edit", json={"id": "q63", "name": "again"}).status_code
    assert 200 == admin.post("curated_poll_edit_option", json=options[63]).status_code
    admin.request("DELETE", "curated_poll_edit", json={"id": "q5"})
    assert 200 == admin.post("curated_poll_edit", json={"id": "q64"}).status_code


@pytest.mark.slow
def test_all_questions_together_have_at_most_512_kib(admin):
    admin.post("curated_poll_edit", json={"id": "q1"})
    admin.post("curated_poll_edit", json={"id": "q2"})
    texts = {"description": "\x01" * 1024, "image": "\x01" * 1024}  # each six bytes of JSON
    sizes = []
    answers = []
    for number in range(64):
        option = {"id": f"o{number}", **texts}
        answers.append(admin.post("curated_poll_edit_option", json={"id": f"q{1 + number % 2}", "option": option}))
        sizes.append(len(admin.get("curated_poll").content))

    refused = [each for each in answers if each.status_code != 200]
    assert 512 * 1024 - 13_000 < max(sizes) < 512 * 1024 + 100
    assert [400] * (64 - 42) == [each.status_code for each in refused]
    assert "Contest too large" == refused[0].json()["reason"]


def test_questions_expire_together_a_day_after_the_last_edit_or_new_state(live: LiveServer, admin):
    live.freeze()
    create_question(admin)
    live.advance(DAY - 1)
    create_question(admin, "q2", state="state-inactive")
    live.advance(DAY - 1)
    set_state(admin, "state-locked", "q2")
    live.advance(DAY - 1)
    before = ids(admin)

    expired = live.advance(1)

    assert (["q1", "q2"], []) == (before, ids(admin))
    assert [("trivia", "my-extension")] == [(each["kind"], each["client_id"]) for each in expired]


def test_a_voter_expires_a_day_after_the_last_vote_or_joining(live: LiveServer, admin, viewer):
    live.freeze()
    create_question(admin)
    vote(viewer())
    for refresh in (lambda: vote(viewer(), "o2"), lambda: viewer(channel="888").post("team_membership")):
        live.advance(DAY - 1)
        set_state(admin, "state-unlocked")
        refresh()
    live.advance(DAY - 1)
    set_state(admin, "state-unlocked")
    before = (team(viewer()), results(viewer()))

    expired = live.advance(1)

    assert (("777", {"you": "o2"}), ("", {})) == (before, (team(viewer()), results(viewer())))
    assert [("trivia_voter", "U5551")] == [(each["kind"], each["id"]) for each in expired]
    vote(viewer(channel="888"))
    assert "888" == team(viewer())


def test_in_production_trivia_expires_after_30_days(production: LiveServer):
    last = 10**11 - 1  # the greatest exp in seconds
    admin, viewer = (production.client(role, user="1", channel="777", exp=last) for role in ("admin", "viewer"))
    create_question(admin, "lasting")
    vote(viewer, question="lasting")

    production.service.clock.freeze(True)
    start = production.service.clock.now()
    seen = []
    for instant in (start + 29 * DAY, start + 30 * DAY):
        production.service.clock.set(instant)
        seen.append(("lasting" in ids(viewer), team(viewer)))

    assert [(True, "777"), (False, "")] == seen
