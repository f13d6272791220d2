"""The screen of polls, read as plain HTML."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dashboard.html_pages import HtmlPage, read_page
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, Client, LiveServer

POLL = {"id": "lunch", "client_id": CLIENT_ID, "channel_id": CHANNEL}


def polls(live: LiveServer, **query: str) -> HtmlPage:
    address = f"{live.url}/_emulator/ui/polls"
    return read_page(address + ("?" + "&".join(f"{name}={value}" for name, value in query.items()) if query else ""))


def vote(live: LiveServer, user: str, value: int, poll: str = "lunch", **caller: str) -> None:
    voter = live.client("viewer", user=user, **{"channel": CHANNEL, **caller})
    voter.post(f"vote?id={poll}", json={"value": value}).raise_for_status()


def define(broadcaster: Client, **config: object) -> None:
    broadcaster.post("vote_config?id=lunch", json={"config": config}).raise_for_status()


def bars(page: HtmlPage) -> list[tuple[str, str]]:
    return [(label.replace("\xa0", " "), votes) for label, _, votes, *_ in page.tables[0]]


VOTERS = {**POLL, "voters": "1"}


def voters(page: HtmlPage) -> list[list[str]]:
    return [row[:4] for row in page.tables[-1]]


def test_polls_of_all_extensions_and_channels_are_listed(live: LiveServer, broadcaster: Client):
    live.freeze()
    define(broadcaster, prompt="Which?", options=["Rock"])
    vote(live, "1", 3)
    vote(live, "2", 3)
    vote(live, "1", 3, "dinner", channel="888", client_id=OTHER_ID)

    assert [
        ["lunch Which?", CLIENT_ID, CHANNEL, "2", "", "open", "0 s ago", "in 7 d"],
        ["dinner", OTHER_ID, "888", "1", "", "open", "0 s ago", "in 7 d"],
    ] == polls(live).tables[0]


def test_a_long_list_has_pages_of_100_polls(live: LiveServer):
    for number in range(105):
        vote(live, "1", 3, f"p{number:03}")

    first = polls(live)
    second = first.follow("Next page")
    assert (100, 5) == (len(first.tables[0]), len(second.tables[0]))
    assert "Next page" not in second.links
    assert first.tables[0][0][0] == second.follow("First page").tables[0][0][0] == "p000"


def test_bars_have_the_names_of_options_with_and_without_votes(live: LiveServer, broadcaster: Client):
    define(broadcaster, prompt="Which?", options=["Rock", "Paper"])
    vote(live, "1", 1)
    vote(live, "2", 7)
    vote(live, "3", -2)

    page = polls(live, **POLL)
    assert [("Rock 0", "0"), ("Paper 1", "1")] == bars(page)
    assert "Votes for values without an option: 7 (1), -2 (1)." in page.text
    assert "Which?" == page.heading


def test_a_poll_without_options_has_a_histogram_from_its_lowest_to_its_highest_value(live: LiveServer):
    for user, value in enumerate((-3, 3, 3, 9)):
        vote(live, f"{user}", value)
    live.client("viewer", user="1", channel=CHANNEL).post("vote?id=lunch", json={"value": 100})

    page = polls(live).follow("lunch")
    assert "Poll lunch" == page.heading, "without a question"
    assert "1 Value out of bounds" in page.text
    assert ["-3: 1 vote, 3: 2 votes, 9: 1 vote"] == [
        given["aria-label"] for tag, given in page.elements if tag == "svg" and "aria-label" in given
    ]
    assert "3.00 ± 4.24, sum 12" in page.text
    assert "Paler bars: 1 vote outside 0 to 63" in page.text
    assert 1 == sum(given.get("class") == "outside" for tag, given in page.elements if tag == "rect")


@pytest.mark.parametrize(
    ("passed", "config", "state"),
    [
        (0, {}, "pending · opens in 00:10"), (11, {}, "open · closes in 01:09"), (90, {}, "closed"),
        (11, {"disabled": True}, "disabled"), (11, {"endsIn": 0}, "open"),
    ],
)  # fmt: skip
def test_a_poll_says_whether_it_is_open(live: LiveServer, broadcaster: Client, passed: int, config: Any, state: str):
    live.freeze()
    define(broadcaster, **{"startsIn": 10, "endsIn": 80, "options": ["Yes"], **config})
    live.advance(passed * 1000)

    page = polls(live, **POLL)
    assert f"Poll lunch {state}\n" in page.text
    assert ("vote-0" in page.forms) is state.startswith("open"), "only an open poll has buttons to vote"


def test_a_poll_is_closed_opened_and_restarted(live: LiveServer, broadcaster: Client):
    define(broadcaster, prompt="Which?", options=["Rock", "Paper"], endsIn=90)
    vote(live, "1", 1)

    assert 200 == polls(live, **POLL).submit("switch")["status"]
    assert "expired" == broadcaster.get("vote_config?id=lunch").json()["status"]
    assert 200 == polls(live, **POLL).submit("switch")["status"]
    assert "active" == broadcaster.get("vote_config?id=lunch").json()["status"]
    assert [("Rock 0", "0"), ("Paper 1", "1")] == bars(polls(live, **POLL))
    assert 200 == polls(live, **POLL).submit("restart")["status"]
    assert [("Rock 0", "0"), ("Paper 1", "0")] == bars(polls(live, **POLL))
    assert 200 == polls(live, **POLL).forms["crowd"].send().status_code
    assert "Votes200" in polls(live, **POLL).text
    polls(live, **POLL).submit("switch")
    assert 409 == polls(live, **POLL).forms["crowd"].send().status_code


def test_voters_are_listed_and_found_and_anyone_can_be_made_to_vote(live: LiveServer):
    # Voters are listed with their votes
    vote(live, "5", 3)
    live.client("viewer", opaque="Uhidden", channel=CHANNEL).post("vote?id=lunch", json={"value": 4})
    vote(live, "5", 2)

    assert [["Uhidden", "not shared", "4", "1"], ["U5", "5", "2", "1"]] == voters(polls(live, **VOTERS))

    # Anyone can be made to vote
    vote(live, "1", 3)

    answer = polls(live, **POLL).submit("cast", user_id="7", body__value="9")

    assert (200, 9) == (answer["status"], answer["body"]["vote"])
    assert ["U7", "7", "9", "1"] == voters(polls(live, **VOTERS))[-1]

    # A voter is found by either id
    for name in ["5", "U5"]:
        vote(live, "5", 3)

        assert "U5 has voted 3." in polls(live, **VOTERS).submit("filters", voter=name).text
        assert "U6 has not voted here." in polls(live, **VOTERS).submit("filters", voter="U6").text


@pytest.mark.parametrize("is_remembered", [True, False], ids=["remembered", "read after a restart"])
def test_a_poll_shows_its_latest_ten_votes(live: LiveServer, broadcaster: Client, is_remembered: bool):
    define(broadcaster, options=["Rock", "Paper"])
    for user in range(12):
        vote(live, f"{user}", user % 3)
    if not is_remembered:
        live.service.changes.forget()

    found = re.findall(r"^\d\d:\d\d:\d\d (\S+) (\S+)$", polls(live, **POLL).text, re.MULTILINE)
    assert [("2", "U11"), ("Paper", "U10"), ("Rock", "U9")] == found[:3]
    assert 10 == len(found)


def test_more_than_100_voters_have_pages_even_at_one_instant(live: LiveServer):
    live.freeze()
    for user in range(150):
        vote(live, f"{user}", 3)
    live.advance(5)
    vote(live, "last", 3)

    page = polls(live, **POLL).follow("All voters")
    found = voters(page)
    while "Next page" in page.links:
        page = page.follow("Next page")
        found += voters(page)
    assert [*(f"U{user}" for user in range(150)), "Ulast"] == [row[0] for row in found]
    assert 100 == len(voters(page.follow("First page")))


def test_a_poll_is_deleted_in_its_channel_only(live: LiveServer):
    vote(live, "1", 3)
    vote(live, "1", 3, channel="888")
    vote(live, "1", 3, channel="")

    assert 200 == polls(live, **POLL).submit("delete")["status"]
    assert ["none", "888"] == [row[2] for row in polls(live).tables[0]]
    assert 200 == polls(live, id="lunch", client_id=CLIENT_ID).submit("delete")["status"]
    assert ["888"] == [row[2] for row in polls(live).tables[0]]


def test_the_form_defines_a_poll_and_replaces_no_definition_that_it_has_not_shown(
    live: LiveServer, broadcaster: Client
):
    # A poll is defined by its form
    fields = {"body__id": "rps", "body__config__prompt": "Which?", "body__config__options": "Rock\r\nPaper, thin\r\n"}
    answer = polls(live).submit("define", channel_id=CHANNEL, body__config__endsIn="90", **fields)

    assert 200 == answer["status"]
    definition = broadcaster.get("vote_config?id=rps").json()
    assert ("Which?", ["Rock", "Paper, thin"]) == (definition["prompt"], definition["options"])
    assert 0 < definition["endsAt"] - live.now() // 1000 <= 91

    # The form replaces no definition that it has not shown
    define(broadcaster, prompt="Which?", options=["Rock", "Paper"])

    answer = polls(live).submit("define", channel_id=CHANNEL, body__id="lunch", body__config__prompt="Mine")

    assert 409 == answer["status"]
    assert "Which?" == broadcaster.get("vote_config?id=lunch").json()["prompt"]


def test_the_editor_of_a_definition_keeps_the_rest_and_overwrites_no_later_change(
    live: LiveServer, broadcaster: Client
):
    # The editor of a definition keeps what it does not change
    define(broadcaster, prompt="Which?", options=["Rock"], totalVotesPerUser=5, userData={"a": [1]}, endsIn=90)
    before = broadcaster.get("vote_config?id=lunch").json()
    page = polls(live, **POLL).follow("Edit")

    answer = page.submit("redefine", body__config__prompt="Who?", body__config__startsAt="2026-01-31T18:00")

    assert 200 == answer["status"]
    assert before | {"prompt": "Who?", "startsAt": 1769882400} == broadcaster.get("vote_config?id=lunch").json()

    # The editor of a definition overwrites no later change
    define(broadcaster, prompt="Which?")
    page = polls(live, **POLL).follow("Edit")
    define(broadcaster, prompt="Theirs")

    answer = page.submit("redefine")

    assert 409 == answer["status"]
    assert "Theirs" == broadcaster.get("vote_config?id=lunch").json()["prompt"]
