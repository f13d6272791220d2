"""Requests: search, one entry, send again."""

from __future__ import annotations

import re
import zlib
from contextlib import ExitStack
from html import unescape
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import expect

from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from emulator.dashboard.stream import INTERVAL
from support.broadcasts import subscribed_game
from support.pages import chromium, fetched, main_of
from support.service import CLIENT_ID, SECRET, LiveServer, live_server


@pytest.fixture
def requests(live: LiveServer) -> str:
    """The URL of the screen, after a vote, a refused vote and a refused deletion."""
    viewer = live.client("viewer", user="1", channel="777")
    viewer.post("vote", params={"id": "rps"}, json={"value": 1})
    viewer.post("vote", json={"value": 900})
    viewer.delete("vote")
    return f"{live.url}/_emulator/ui/requests"


def latest(live: LiveServer) -> int:
    return int(httpx.get(f"{live.url}/_emulator/journal").json()["mark"])


def test_the_screen_lists_requests_with_why_they_were_refused(requests: str):
    main = main_of(requests)

    assert "POST /v1/e/vote?id=rps" in main
    assert "value: 900 is not within -99 to 99" in main
    assert "viewer <bdi>1</bdi> @ <bdi>777</bdi>" in main


@pytest.mark.parametrize(
    ("query", "found"),
    [("status=403", 1), ("status=4xx", 2), ("search=rps", 1), ("method=POST&path=vote", 2), ("role=admin", 0),
     ("path=vote&status=200", 1)],
)  # fmt: skip
def test_the_screen_filters_as_the_journal_does(requests: str, query: str, found: int):
    assert found == main_of(f"{requests}?{query}").count('<tr data-entry="')


def test_a_wrong_filter_is_a_page_that_names_it(requests: str):
    answer = fetched(f"{requests}?status=many")

    assert 400 == answer.status_code
    assert "status: &#39;many&#39; is not a status" in answer.text


def test_the_screen_shows_at_most_a_page_and_links_to_the_next(live: LiveServer):
    viewer = live.client("viewer", user="1", channel="777")
    for _ in range(101):
        viewer.get("vote")
    screen = f"{live.url}/_emulator/ui/requests?method=GET"
    main = main_of(screen)

    assert 100 == main.count('<tr data-entry="')
    (before,) = re.findall('before=([0-9]+)[^"]*">Earlier', main)
    assert 1 == main_of(f"{screen}&before={before}").count('<tr data-entry="')


def test_an_entry_shows_bodies_caller_and_refusal(live: LiveServer, requests: str):
    main = main_of(f"{requests}?entry={latest(live) - 1}")

    assert "<b><bdi>Value out of bounds</bdi></b>" in main
    assert "&#34;value&#34;: 900" in main
    assert "viewer of my-extension" in main
    assert "extcli explain" in main


def test_an_entry_that_is_gone_gets_404(requests: str):
    assert 404 == fetched(f"{requests}?entry=999999").status_code


@pytest.mark.long
def test_an_entry_can_be_changed_and_sent_again(live: LiveServer, requests: str):
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{requests}?entry={latest(live) - 1}")
        page.click("#replay .submit > button")
        page.wait_for_selector("#result:has-text('value: 900 is not within')")
        page.fill("#replay-body", '{"value": 2}')
        page.click("#replay .submit > button")
        page.wait_for_selector("#result:has-text('The service accepts it.')")

    assert 2 == live.client("viewer", user="1", channel="777").get("vote").json()["vote"]


def test_the_screen_says_that_there_is_no_journal():
    with live_server(Settings(journal=0)) as live:
        assert "The journal is off" in main_of(f"{live.url}/_emulator/ui/requests")


def test_an_entry_can_be_copied_for_curl_extcli_and_pytest(live: LiveServer, requests: str):
    main = main_of(f"{requests}?entry={latest(live) - 1}")

    assert all(f"<summary>As {form}</summary>" in main for form in ("curl", "extcli", "pytest"))
    assert f"{live.url}/v1/e/vote" in main


def test_without_extensions_no_entry_says_that_a_token_is_of_the_sandbox(live: LiveServer):
    vote_with_a_token_of(live)

    assert "production refuses" not in main_of(f"{live.url}/_emulator/ui/requests?path=/v1/e/vote")
    assert "production refuses" not in main_of(f"{live.url}/_emulator/ui/requests?entry={latest(live)}")


def test_a_call_of_the_control_api_has_no_verdict_in_the_list(live: LiveServer):
    live.advance(1_000)

    assert "production refuses" not in main_of(f"{live.url}/_emulator/ui/requests")
    assert "production refuses this: endpoint" in main_of(f"{live.url}/_emulator/ui/requests?entry={latest(live)}")


def test_with_extensions_each_entry_says_that_a_token_is_of_the_sandbox():
    with live_server(Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as known:
        vote_with_a_token_of(known)

        assert "production refuses this: stage" in main_of(f"{known.url}/_emulator/ui/requests?path=/v1/e/vote")
        assert "production refuses this: stage" in main_of(f"{known.url}/_emulator/ui/requests?entry={latest(known)}")


def vote_with_a_token_of(live: LiveServer) -> None:
    wanted = {"role": "viewer", "extension_id": CLIENT_ID}
    token = httpx.post(f"{live.url}/v1/e/authtoken", json=wanted).json()["token"]
    httpx.get(f"{live.url}/v1/e/vote", headers={"authorization": f"{CLIENT_ID} {token}"})


def test_an_entry_says_what_was_held_and_needed_and_what_production_does(live: LiveServer, requests: str):
    main = main_of(f"{requests}?entry={latest(live)}")

    assert "<dt>Had</dt><dd>role viewer</dd>" in main
    assert "<dt>Needed</dt><dd>role broadcaster, admin or backend</dd>" in main
    assert "production refuses this: exp" in main


@pytest.mark.parametrize(
    ("path", "body"),
    [("vote", {"value": "eyJhbGciOiJIUzI1NiJ9.e30.x"}), ("vote?t=eyJhbGciOiJIUzI1NiJ9.e30.x", {"value": 1}),
     ("json_store", {"a": "b" * 5_000})],
)  # fmt: skip
def test_an_incomplete_entry_cannot_be_sent_again(live: LiveServer, path: str, body: dict[str, object]):
    live.client("viewer", user="1", channel="777").post(path, json=body)
    main = main_of(f"{live.url}/_emulator/ui/requests?entry={latest(live)}")

    assert "The journal has only a part of the request" in main
    assert 'id="replay"' not in main


def test_an_entry_without_a_caller_has_a_page(live: LiveServer):
    with live.bearer("no-token") as stranger:
        stranger.post("vote", json={"value": 1})
    main = main_of(f"{live.url}/_emulator/ui/requests?entry={latest(live)}")

    assert "POST /v1/e/vote" in main
    assert "As curl" in main
    assert "As extcli" in main
    assert "As pytest" not in main


def test_the_facts_of_an_explanation_show_reordering_characters_escaped(live: LiveServer, requests: str):
    refused = httpx.get(f"{live.url}/_emulator/wait", params={"for": "\u202e\u2066drow"})
    assert 400 == refused.status_code

    main = main_of(f"{requests}?entry={latest(live)}")

    facts = main.partition("<h2>Why it was refused</h2>")[2]
    assert "\\u202e\\u2066drow" in re.sub("<bdi>.*?</bdi>", "", facts)
    assert not re.search("[\u202e\u2066]", re.sub("<bdi>.*?</bdi>", "", main))


def test_a_user_whose_ids_are_equal_is_named_once(live: LiveServer):
    live.client("viewer", user="U1", opaque="U1", channel="777").get("vote")

    assert "<dt>User</dt><dd><bdi>U1</bdi></dd>" in main_of(f"{live.url}/_emulator/ui/requests?entry={latest(live)}")


def test_a_long_body_is_folded_and_a_short_one_open(live: LiveServer):
    viewer = live.client("viewer", user="1", channel="777")
    viewer.post("viewer_state", json={f"key{number}": "x" * 20 for number in range(90)})
    main = main_of(f"{live.url}/_emulator/ui/requests?entry={latest(live)}")

    assert '<details id="body-request-body">' in main
    assert '<details id="body-answer" open>' in main


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("status:4xx", 2), ("status:4xx rps", 0), ("rps", 1), ("user:1 method:POST status:200", 1),
        ("status:200 status:4xx", 3), ("status:4xx status:5xx", 2), ("search:nothing rps", 0), ("search:rps", 1),
        ("user:1 user:1 rps", 1),
    ],
)  # fmt: skip
def test_words_of_the_search_are_filters(requests: str, search: str, found: int):
    main = main_of(f"{requests}?{urlencode({'search': search})}")

    assert found == main.count('<tr data-entry="')


def test_a_search_for_two_users_at_once_is_refused(requests: str):
    answer = fetched(f"{requests}?search=user:1+user:2")

    assert 400 == answer.status_code
    assert "user:2" in answer.text


def test_each_filter_has_a_link_that_removes_it(requests: str):
    main = main_of(f"{requests}?search=status:4xx+method:DELETE")
    links = re.findall('<a class="chip" href="[^"]*[?]([^"]*)" title="([^"]*)"', main)

    assert [("method=DELETE", "Remove the filter status"), ("status=4xx", "Remove the filter method")] == links


def test_an_entry_stands_next_to_the_list_and_is_marked_there(live: LiveServer, requests: str):
    mark = latest(live)
    main = main_of(f"{requests}?entry={mark - 1}")

    assert 3 == main.count('<tr data-entry="')
    assert [str(mark - 1)] == re.findall('entry=([0-9]+)" aria-current="true"', main)


def test_a_broadcast_shows_what_it_caused(live: LiveServer):
    live.client("broadcaster", user="777", channel="777").post("broadcast", json={"event": "round", "data": {}})
    numbers = range(1, latest(live) + 1)
    (main,) = [
        each for each in (fetched(f"{live.url}/_emulator/ui/requests?entry={n}").text for n in numbers)
        if "<h1>200 <bdi>POST /v1/e/broadcast" in each
    ]  # fmt: skip
    chain = re.findall("<li>(.*)</li>", main.partition('<ol class="chain">')[2].partition("</ol>")[0])

    assert any("POST /v1/e/broadcast" in each for each in chain)
    assert any("event:round" in each and "0 delivered" in each for each in chain)


def test_a_broadcast_begins_with_the_three_sockets_that_it_reached(live: LiveServer):
    with ExitStack() as stack:
        for user in ("1", "2", "3"):
            stack.enter_context(subscribed_game(live, "viewer", user=user))
        live.client("broadcaster", user="777", channel="777").post("broadcast", json={"event": "round", "data": {}})
    (cause,) = httpx.get(f"{live.url}/_emulator/journal?path=broadcast&kind=request").json()["entries"]
    main = main_of(f"{live.url}/_emulator/ui/requests?entry={cause['number']}")
    (chain,) = re.findall('</h1>\\s*<h2>Cause and effect</h2>\\s*<ol class="chain">(.*?)</ol>', main, re.DOTALL)

    assert 3 == len(re.findall(r'<li><a href="[^"]*/ui/sockets[?]socket=([0-9]+)"><bdi>socket \1 ', chain))


@pytest.mark.slow
@pytest.mark.long
def test_keys_move_between_rows_and_a_pause_holds_them(live: LiveServer, requests: str):
    with chromium() as browser:
        page = browser.new_page()
        page.goto(requests)
        page.wait_for_selector("#reload", state="hidden")
        rows = page.locator("#rows tbody th a")
        page.keyboard.press("j")
        expect(rows.nth(0)).to_be_focused()
        page.keyboard.press("j")
        expect(rows.nth(1)).to_be_focused()
        page.keyboard.press("k")
        expect(rows.nth(0)).to_be_focused()
        page.keyboard.press("p")
        expect(page.locator("#result")).to_contain_text("Paused")
        live.client("viewer", user="2", channel="777").get("vote?id=later")
        expect(page.locator("nav")).to_contain_text("Requests4")
        assert 3 == rows.count(), "the header goes on, the rows stay"
        page.keyboard.press("/")
        page.keyboard.type("jkp")
        assert "jkp" == page.input_value("#filter-search")
        page.locator("h1").click()
        expect(page.locator("#newer")).to_have_text("1 new")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#rows")).to_contain_text("id=later")
        expect(page.locator("#newer")).to_be_hidden()
        page.get_by_role("button", name="Pause").click()
        live.client("viewer", user="2", channel="777").get("vote?id=latest")
        expect(page.locator("#newer")).to_have_text("1 new")


@pytest.mark.slow
@pytest.mark.long
def test_rows_stand_still_under_the_pointer_and_a_button_shows_the_new_ones(live: LiveServer, requests: str):
    viewer = live.client("viewer", user="2", channel="777")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 700})
        page.goto(requests)
        page.wait_for_selector("#reload", state="hidden")
        rows = page.locator("#rows tbody tr")
        rows.nth(1).hover()
        for poll in ("one", "two"):
            viewer.get(f"vote?id={poll}")
        expect(page.locator("#newer")).to_have_text("2 new")
        assert 3 == rows.count()
        page.locator("#newer").click()
        expect(rows).to_have_count(5)
        page.locator("h1").hover()
        viewer.get("vote?id=three")
        expect(rows).to_have_count(6)
        rows.nth(1).hover()
        viewer.get("vote?id=four")
        expect(page.locator("#newer")).to_have_text("1 new")
        page.locator("h1").hover()
        expect(rows).to_have_count(7)
        expect(page.locator("#newer")).to_be_hidden()


def test_a_strip_counts_the_latest_five_minutes_and_leads_to_their_entries(live: LiveServer, requests: str):
    later = main_of(requests)
    (bar,) = re.findall(r'<a href="([^"]*)" tabindex="-1"><title>[\d:]* ?[^<]*3 requests, 2 refused', later)
    live.advance(60_000)
    live.client("viewer", user="1", channel="777").get("vote?id=later")

    assert "5 requests and frames, 2 of them refused" in main_of(requests), "the clock was moved by one of them"
    shown = main_of(f"{live.url}{unescape(bar)}")
    assert 3 == shown.count('<tr data-entry="')
    assert "later" not in shown
    live.advance(5 * 60_000)
    assert "The latest five minutes: 1 requests and frames, 0 of them refused" in main_of(requests)


def test_rows_are_sorted_by_their_duration(live: LiveServer, requests: str):
    viewer = live.client("viewer", user="1", channel="777")
    viewer.get("rank")
    main = main_of(requests)
    (address,) = re.findall('<a href="([^"]*)">Duration</a>', main)
    shown = main_of(f"{live.url}{unescape(address)}")
    durations = [float(each) for each in re.findall(r'data-head="Duration" class="number">([0-9.]+) ms', shown)]

    assert 4 == len(durations)
    assert sorted(durations, reverse=True) == durations
    assert re.findall('<a href="[^"]*">Time</a>', shown)


def test_pages_lead_to_newer_and_earlier_entries(live: LiveServer):
    viewer = live.client("viewer", user="1", channel="777")
    for number in range(250):
        viewer.get(f"vote?id=n{number}")
    address = f"{live.url}/_emulator/ui/requests?path=vote"

    def polls(link: str, page: str) -> tuple[str, str, str]:
        (target,) = re.findall(f'<a href="([^"]*)">{link}</a>', page)
        main = main_of(f"{live.url}{unescape(target)}")
        ids = re.findall("id=n([0-9]+)", main)
        return main, ids[0], ids[-1]

    second, *seconds = polls("Earlier", main_of(address))
    third, *thirds = polls("Earlier", second)
    back, *backs = polls("Newer", third)
    first, *firsts = polls("Newer", back)

    assert [["149", "50"], ["49", "0"], ["149", "50"], ["249", "150"]] == [seconds, thirds, backs, firsts]
    assert ">Newer</a>" not in first
    assert ">Earlier</a>" not in third
    shown = re.findall('<tr data-entry="([0-9]+)"', main_of(f"{address}&sort=slowest&after=1"))
    assert 100 == len(shown)
    assert max(map(int, shown)) > 101  # not only the first page, sorted


def test_the_search_suggests_words(requests: str):
    main = main_of(requests)

    assert '<option value="status:4xx"></option>' in main
    assert '<option value="kind:delivery"></option>' in main


def test_a_full_page_of_rows_takes_less_than_20_kb_a_second(live: LiveServer):
    viewer = live.client("viewer", user="1", channel="777")
    address = f"{live.url}/_emulator/ui/requests/events"
    with httpx.stream("GET", address, headers={"Accept-Encoding": "gzip"}, timeout=20) as stream:
        assert "gzip" == stream.headers["content-encoding"]
        for number in range(120):
            viewer.post("vote?id=poll", json={"value": number % 60})
        chunks, unpacking, text = stream.iter_raw(), zlib.decompressobj(wbits=31), ""
        while 100 != text.count('<tr data-entry="'):
            chunk = next(chunks)
            text = unpacking.decompress(chunk).decode()

    assert len(chunk) < 20_000 * INTERVAL, "the stream waits this many seconds between two updates"
