"""The screen of polls, read as plain HTML."""

from __future__ import annotations

import json
import re

import httpx
import pytest
from playwright.sync_api import expect

from support.html_pages import HtmlPage, read_page
from support.pages import chromium, fetched, main_of
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, Client, LiveServer

POLL = {"id": "lunch", "client_id": CLIENT_ID, "channel_id": CHANNEL}
DAY = 86_400_000


def polls(live: LiveServer, **query: str) -> HtmlPage:
    address = f"{live.url}/_emulator/ui/polls"
    return read_page(address + ("?" + "&".join(f"{name}={value}" for name, value in query.items()) if query else ""))


def vote(live: LiveServer, user: str, value: int, poll: str = "lunch", **caller: str) -> None:
    voter = live.client("viewer", user=user, **{"channel": CHANNEL, **caller})
    voter.post(f"vote?id={poll}", json={"value": value}).raise_for_status()


def define(broadcaster: Client, **config: object) -> None:
    broadcaster.post("vote_config?id=lunch", json={"config": config}).raise_for_status()


def bars(page: HtmlPage) -> list[tuple[str, str]]:
    return [(label, votes) for label, votes, *_ in page.tables[0]]


def voters(page: HtmlPage) -> list[list[str]]:
    return [row[:4] for row in page.tables[-1]]


def test_the_overview_says_how_to_create_a_first_poll(live: LiveServer):
    assert "The first vote creates one." in polls(live).text


def test_polls_of_all_extensions_and_channels_are_listed(live: LiveServer):
    live.freeze()
    vote(live, "1", 3)
    vote(live, "2", 3)
    vote(live, "1", 3, "dinner", channel="888", client_id=OTHER_ID)

    assert [
        ["lunch", CLIENT_ID, CHANNEL, "2", "active", "0 s ago", "in 7 d"],
        ["dinner", OTHER_ID, "888", "1", "active", "0 s ago", "in 7 d"],
    ] == polls(live).tables[0]


def test_the_list_is_limited_by_its_form(live: LiveServer):
    vote(live, "1", 3)
    vote(live, "1", 3, "dinner")

    found = polls(live).submit("filters", search="inn")
    assert ["dinner"] == [row[0] for row in found.tables[0]]
    assert "No polls match." in polls(live).submit("filters", client_id="absent").text


def test_a_long_list_has_pages_of_100_polls(live: LiveServer):
    for number in range(105):
        vote(live, "1", 3, f"p{number:03}")

    first = polls(live)
    second = first.follow("Next page")
    assert (100, 5) == (len(first.tables[0]), len(second.tables[0]))
    assert "Next page" not in second.links
    assert first.tables[0][0][0] == second.follow("First page").tables[0][0][0] == "p000"


def test_a_poll_has_bars_of_the_values_with_votes(live: LiveServer):
    for user, value in (("1", 3), ("2", 3), ("3", 7)):
        vote(live, user, value)

    page = polls(live).follow("lunch")
    assert "Poll lunch" == page.heading
    assert [("3", "2"), ("7", "1")] == bars(page)
    assert 64 == len(bars(page.follow("All values 0 to 63")))
    assert bars(page) == bars(page.follow("All values 0 to 63").follow("Only values with votes"))


def test_a_poll_has_its_statistics(live: LiveServer):
    for user, value in (("1", 1), ("2", 4)):
        vote(live, user, value)

    text = polls(live, **POLL).text
    for line in ("Votes2", "Mean2.500", "Standard deviation1.500", "Sum5"):
        assert line in text


def test_bars_have_the_names_of_options_with_and_without_votes(live: LiveServer, broadcaster: Client):
    define(broadcaster, prompt="Which?", options=["Rock", "Paper"])
    vote(live, "1", 1)

    page = polls(live, **POLL)
    assert [("0 Rock", "0"), ("1 Paper", "1")] == bars(page)
    assert "Which?" in page.text


def test_votes_outside_the_bars_are_counted(live: LiveServer):
    for user, value in (("1", -5), ("2", 99), ("3", -5), ("4", 1)):
        vote(live, user, value)

    page = polls(live, **POLL)
    assert [("1", "1")] == bars(page)
    assert "3 votes for values outside 0 to 63, which specific leaves out:\n-5 (2), 99 (1)." in page.text


def test_at_most_20_values_outside_the_bars_are_named(live: LiveServer):
    for user in range(25):
        vote(live, f"{user}", 70 + user)

    assert "and 5 other values." in polls(live, **POLL).text


@pytest.mark.parametrize(("passed", "status"), [(0, "pending"), (11, "active"), (30, "expired")])
def test_a_poll_says_whether_it_is_open(live: LiveServer, broadcaster: Client, passed: int, status: str):
    live.freeze()
    define(broadcaster, startsIn=10, endsIn=20)
    live.advance(passed * 1000)

    assert f"Status{status}" in polls(live, **POLL).text
    assert status == polls(live).tables[0][0][4]


def test_voters_are_listed_with_their_votes(live: LiveServer):
    vote(live, "5", 3)
    live.client("viewer", opaque="Uhidden", channel=CHANNEL).post("vote?id=lunch", json={"value": 4})
    vote(live, "5", 2)

    assert [["Uhidden", "not shared", "4", "1"], ["U5", "5", "2", "1"]] == voters(polls(live, **POLL))


def test_more_than_100_voters_have_pages_even_at_one_instant(live: LiveServer):
    live.freeze()
    for user in range(250):
        vote(live, f"{user}", 3)
    live.advance(5)
    vote(live, "last", 3)

    page = polls(live, **POLL)
    found = voters(page)
    while "Next page" in page.links:
        page = page.follow("Next page")
        found += voters(page)
    assert [*(f"U{user}" for user in range(250)), "Ulast"] == [row[0] for row in found]
    assert 100 == len(voters(page.follow("First page")))


def test_no_page_has_over_200_rows(live: LiveServer):
    for user in range(150):
        vote(live, f"{user}", user % 150 - 75)

    page = polls(live, **POLL, all="1")
    assert (64, 100) == tuple(map(len, page.tables))


@pytest.mark.parametrize("name", ["5", "U5"])
def test_a_voter_is_found_by_either_id(live: LiveServer, name: str):
    vote(live, "5", 3)

    assert "U5 has voted 3." in polls(live, **POLL).submit("filters", voter=name).text
    assert "U6 has not voted here." in polls(live, **POLL).submit("filters", voter="U6").text


def test_anyone_can_be_made_to_vote(live: LiveServer):
    vote(live, "1", 3)

    answer = polls(live, **POLL).submit("cast", user_id="7", body__value="9")

    assert (200, 9) == (answer["status"], answer["body"]["vote"])
    assert ["U7", "7", "9", "1"] == voters(polls(live, **POLL))[-1]


def test_votes_that_add_up_can_be_cast_at_once(live: LiveServer, broadcaster: Client):
    define(broadcaster, totalVotesPerUser=5, votesPerOption=5)

    assert 200 == polls(live, **POLL).submit("cast", user_id="7", body__count="3")["status"]
    assert ["U7", "7", "0", "3"] == voters(polls(live, **POLL))[-1]


def test_a_poll_is_deleted_in_its_channel_only(live: LiveServer):
    vote(live, "1", 3)
    vote(live, "1", 3, channel="888")
    vote(live, "1", 3, channel="")

    assert 200 == polls(live, **POLL).submit("delete")["status"]
    assert ["none", "888"] == [row[2] for row in polls(live).tables[0]]
    assert 200 == polls(live, id="lunch", client_id=CLIENT_ID).submit("delete")["status"]
    assert ["888"] == [row[2] for row in polls(live).tables[0]]


def test_a_poll_of_all_channels_is_shown_and_deleted(live: LiveServer):
    vote(live, "1", 3, "global-final")

    page = polls(live).follow("global-final")
    assert [("3", "1")] == bars(page)
    assert 200 == page.submit("delete")["status"]
    assert [] == polls(live).tables


def test_a_poll_is_defined_by_its_form(live: LiveServer, broadcaster: Client):
    fields = {"body__id": "rps", "body__config__prompt": "Which?", "body__config__options": "Rock\r\nPaper, thin\r\n"}
    answer = polls(live).submit("define", channel_id=CHANNEL, body__config__endsIn="90", **fields)

    assert 200 == answer["status"]
    definition = broadcaster.get("vote_config?id=rps").json()
    assert ("Which?", ["Rock", "Paper, thin"]) == (definition["prompt"], definition["options"])
    assert 0 < definition["endsAt"] - live.now() // 1000 <= 91


def test_the_form_replaces_no_definition_that_it_has_not_shown(live: LiveServer, broadcaster: Client):
    define(broadcaster, prompt="Which?", options=["Rock", "Paper"])

    answer = polls(live).submit("define", channel_id=CHANNEL, body__id="lunch", body__config__prompt="Mine")

    assert (409, "expected: the poll lunch has a definition; edit that one") == (
        answer["status"],
        answer["body"]["info"],
    )
    assert "Which?" == broadcaster.get("vote_config?id=lunch").json()["prompt"]


def test_the_editor_of_a_definition_keeps_what_it_does_not_change(live: LiveServer, broadcaster: Client):
    define(broadcaster, prompt="Which?", options=["Rock"], totalVotesPerUser=5, userData={"a": [1]}, endsIn=90)
    before = broadcaster.get("vote_config?id=lunch").json()
    page = polls(live, **POLL).follow("Edit the definition")
    config = json.loads(page.forms["redefine"].fields["body.config:json"])

    answer = page.submit("redefine", body__config=json.dumps(config | {"prompt": "Who?"}))

    assert 200 == answer["status"]
    assert before | {"prompt": "Who?"} == broadcaster.get("vote_config?id=lunch").json()


def test_the_editor_of_a_definition_overwrites_no_later_change(live: LiveServer, broadcaster: Client):
    define(broadcaster, prompt="Which?")
    page = polls(live, **POLL).follow("Edit the definition")
    define(broadcaster, prompt="Theirs")

    answer = page.submit("redefine")

    assert (409, "Poll changed") == (answer["status"], answer["body"]["reason"])
    assert "Theirs" == broadcaster.get("vote_config?id=lunch").json()["prompt"]


def test_each_command_of_the_page_has_the_effect_of_its_form(live: LiveServer):
    vote(live, "9", 3)
    page = polls(live, **POLL)
    casting, (reading,), (deleting,) = (
        [command for command in page.commands if f"vote {verb} " in command] for verb in ("cast", "get", "rm")
    )

    page.run(casting[0].replace("VALUE", "0").replace("ROLE:USER", "viewer:U1"))
    assert ["U1", "U9"] == sorted(row[0] for row in voters(polls(live, **POLL)))
    assert "0\t1\n3\t1\n" == page.run(reading)
    page.run(deleting)
    assert [] == polls(live).tables


def test_votes_from_before_the_start_are_pointed_out(live: LiveServer):
    live.set(live.now() - DAY, freeze=True)
    vote(live, "1", 3)
    live.set(live.now() + 2 * DAY)
    assert polls(live).tables[0][0][5].endswith("ago, from an earlier run")
    assert "votes from an earlier run" in polls(live, **POLL).text

    vote(live, "2", 3)
    assert "earlier run" not in polls(live).text
    assert "votes from an earlier run" in polls(live, **POLL).text


@pytest.mark.slow
@pytest.mark.long
def test_typed_values_stay_while_votes_come_in(live: LiveServer):
    vote(live, "1", 3)
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{live.url}/_emulator/ui/polls?id=lunch&client_id={CLIENT_ID}&channel_id={CHANNEL}")
        page.wait_for_selector("#reload", state="hidden")
        page.fill("#cast [name=user_id]", "42")
        vote(live, "2", 5)
        expect(page.locator("table.bars tr")).to_have_count(2)
        assert "42" == page.input_value("#cast [name=user_id]")

        page.get_by_role("button", name="Vote", exact=True).click()
        expect(page.locator("#result")).to_have_text("Voted.")
        expect(page.locator("table.bars tr")).to_have_count(3)
        page.fill("#cast [name='body.value:json']", "100")
        page.get_by_role("button", name="Vote", exact=True).click()
        expect(page.locator("#result")).to_contain_text("value: 100 is not within -99 to 99")


def test_text_of_others_is_shown_as_text(live: LiveServer, broadcaster: Client):
    hostile = "<script>alert(1)</script>\"' \u202egnp"
    define(broadcaster, prompt=hostile, options=[hostile])
    live.client("viewer", opaque=hostile, channel=CHANNEL).post("vote?id=lunch", json={"value": 0})

    page = polls(live, **POLL)
    assert 3 <= page.text.count(hostile)
    assert 3 == len([tag for tag, given in page.elements if tag == "script" and given.get("src")])
    assert 3 == len([tag for tag, _ in page.elements if tag == "script"])
    assert [hostile] == [row[0] for row in voters(page)]


def test_an_id_that_no_poll_can_have_is_an_error_on_the_page(live: LiveServer):
    answer = fetched(f"{live.url}/_emulator/ui/polls?id=a%20b&client_id=x")
    assert 400 == answer.status_code
    assert "Invalid poll id" in answer.text
    assert 400 == fetched(f"{live.url}/_emulator/ui/polls?id=a&client_id=x&from=1.x").status_code
    assert 400 == fetched(f"{live.url}/_emulator/ui/polls?cursor=x").status_code


def test_a_poll_is_defined_in_channel_1001_unless_the_form_says_otherwise(live: LiveServer):
    assert "1001" == polls(live).forms["define"].fields["channel_id"]
    assert "888" == polls(live, channel_id="888").forms["define"].fields["channel_id"]


def test_a_disabled_poll_is_not_listed_as_active(live: LiveServer, broadcaster: Client):
    define(broadcaster, disabled=True)

    assert "active, disabled" == polls(live).tables[0][0][4]
    assert [True] == [each["disabled"] for each in broadcaster.get("polls").json()["polls"]]


def test_a_poll_that_never_existed_has_a_page_that_says_so(live: LiveServer):
    answer = fetched(f"{live.url}/_emulator/ui/polls?id=nope&client_id={CLIENT_ID}&channel_id={CHANNEL}")

    assert 404 == answer.status_code
    text = HtmlPage(str(answer.url), answer.text).text
    assert f"There is no poll nope of {CLIENT_ID} in channel {CHANNEL}." in text
    assert "active" not in text


@pytest.mark.slow
def test_the_page_of_a_poll_says_when_the_poll_is_deleted(live: LiveServer, broadcaster: Client):
    vote(live, "1", 3)
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{live.url}/_emulator/ui/polls?id=lunch&client_id={CLIENT_ID}&channel_id={CHANNEL}")
        page.wait_for_selector("#reload", state="hidden")
        broadcaster.delete("vote?id=lunch")

        expect(page.locator("main")).to_contain_text("There is no poll lunch")


@pytest.mark.parametrize("screen", ["rankings", "buffers"])
def test_the_page_of_a_record_that_never_existed_says_that_it_does_not_exist(live: LiveServer, screen: str):
    answer = fetched(f"{live.url}/_emulator/ui/{screen}?id=nope&client_id={CLIENT_ID}&channel_id={CHANNEL}")

    assert 404 == answer.status_code
    assert f"There is no {screen.removesuffix('s')} nope" in HtmlPage(str(answer.url), answer.text).text


def test_a_vote_before_the_clock_was_set_back_is_ahead_of_the_clock(live: LiveServer):
    httpx.post(f"{live.url}/_emulator/clock", json={"advance": 7 * 86_400_000}).raise_for_status()
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
    httpx.post(f"{live.url}/_emulator/clock", json={"set": "system"}).raise_for_status()

    assert re.search(
        '<td data-head="Latest vote">[67] d.* ahead of the clock</td>', main_of(f"{live.url}/_emulator/ui/polls")
    )
