"""The screen of trivia: the extensions with questions, and the questions of one."""

from __future__ import annotations

import pytest

from dashboard.html_pages import forms_of
from support.pages import fetched, main_of
from support.service import CLIENT_ID, Client, LiveServer


@pytest.fixture
def backend(live: LiveServer) -> Client:
    return live.client("backend", user=None, channel=None)


@pytest.fixture
def screen(live: LiveServer, backend: Client) -> str:
    """The URL of the questions; there is one, with one option."""
    url = f"{live.url}/_emulator/ui/trivia?id={CLIENT_ID}"
    question = {"id": "q1", "name": "<b>Who?</b>"}
    backend.post("curated_poll_edit", json=question).raise_for_status()
    forms_of(url)["option-1"].send(body__option__id="red", body__option__name="Red team").raise_for_status()
    return url


def test_it_lists_extensions_and_shows_the_state_and_options_of_a_question(screen: str):
    # It lists extensions with questions and links to them
    assert f'href="/_emulator/ui/trivia?id={CLIENT_ID}"' in main_of(screen.partition("?")[0])

    # It shows the state and options of a question
    main = main_of(screen)

    assert "&lt;b&gt;Who?&lt;/b&gt;" in main
    assert ">inactive</span>" in main
    assert '<option value="state-unlocked" selected>' in main, "the next state"
    assert '<td data-head="Text"><bdi>Red team</bdi></td>' in main
    assert "Vote Red team as a new viewer" not in main


def test_a_question_is_defined_and_deleted_by_its_form(live: LiveServer, screen: str, backend: Client):
    form = forms_of(f"{live.url}/_emulator/ui/trivia")["define"]
    form.send(client_id=CLIENT_ID, body__id="q2", body__name="When?").raise_for_status()
    assert ["<b>Who?</b>", "When?"] == [each["name"] for each in backend.get("curated_poll").json()["questions"]]

    for _ in range(2):
        forms_of(screen)["delete-1"].send().raise_for_status()
    assert [] == backend.get("curated_poll").json()["questions"]
    assert 404 == fetched(screen).status_code


def test_each_click_on_an_option_of_an_unlocked_question_is_a_new_voter(screen: str, viewer, backend: Client):
    forms_of(screen)["move-1"].send(body__transition="state-unlocked").raise_for_status()
    for _ in range(2):
        assert 200 == forms_of(screen)["vote-1-1"].send().raise_for_status().json()["status"]
    forms_of(screen)["move-1"].send(body__transition="state-results", body__winner="red").raise_for_status()

    (team,) = backend.get("curated_poll_leaderboard").json()["leaderboard"]
    assert 2 == team["questions"]["q1"]["team_votes"]
    assert "winner <b><bdi>red</bdi></b>" in main_of(screen)
