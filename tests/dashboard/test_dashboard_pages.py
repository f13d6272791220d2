"""Pages of the dashboard: who gets them, and with which headers."""

from __future__ import annotations

import pytest

from dashboard.html_pages import read_page
from emulator.core.settings import Settings
from emulator.dashboard.pages import screens
from emulator.dashboard.static_files import FOLDER
from support.filled_service import HOSTILE, filled_service
from support.pages import all_pages, fetched, main_of
from support.service import Client, LiveServer, live_server

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'"
)
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def paths() -> list[str]:
    return ["/_emulator", "/_emulator/", *(f"/_emulator/ui/{name}" for name in screens())]


def test_the_root_sends_a_browser_to_the_dashboard_and_returns_links_to_programs(live: LiveServer, stranger: Client):
    # The root sends a browser to the dashboard
    answer = fetched(f"{live.url}/")

    assert (303, "/_emulator/") == (answer.status_code, answer.headers["location"])

    # The root returns links to programs
    answer = stranger.get("/").json()

    assert {"name", "version", "environment", "documentation", "dashboard"} == set(answer)
    assert ("sandbox", "/_emulator/") == (answer["environment"], answer["dashboard"])


def test_all_links_of_a_page_stay_in_its_namespace(live: LiveServer):
    text = fetched(f"{live.url}/_ns/blue/_emulator/ui/faults").text
    text = text.replace('<a href="/_emulator/ui/faults">default</a>', "")  # the switcher of namespaces

    assert 'href="/_emulator' not in text
    assert 'src="/_emulator' not in text


@pytest.mark.parametrize("start", ["", "/_ns/blue"])
def test_addresses_that_people_guess_lead_to_the_screens(live: LiveServer, start: str):
    led = {path: fetched(f"{live.url}{start}/_emulator/{path}") for path in ("ui", "ui/", *screens())}
    # At these, the control API answers.
    control = {path: each for path, each in led.items() if path in ("sockets", "clock", "faults")}
    screens_found = {path: led[path].headers.get("location") for path in led.keys() - control.keys()}

    assert {200} == {each.status_code for each in control.values()}
    assert {303} == {led[path].status_code for path in screens_found}
    overview = dict.fromkeys(("ui", "ui/", "overview"), f"{start}/_emulator/")
    assert {path: f"{start}/_emulator/ui/{path}" for path in screens_found} | overview == screens_found


@pytest.mark.parametrize("path", paths())
def test_every_page_has_the_same_policy(live: LiveServer, path: str):
    answer = fetched(f"{live.url}{path}")

    assert (200, "text/html; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    assert POLICY == answer.headers["content-security-policy"]
    assert ("no-referrer", "no-store") == (answer.headers["referrer-policy"], answer.headers["cache-control"])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("%3Cscript%3E", 404), ("nothing/events", 404), ("static/nothing.js", 404), ("static/VENDORED.toml", 404),
        ("static/..%2Fhttp.py", 404), ("static/..%2f..%2f..%2fapp.py", 404),
        ("polls?id=a%20b&client_id=x", 400), ("polls?id=a&client_id=x&from=1.x", 400), ("polls?cursor=x", 400),
        ("polls?id=nope&client_id=x&channel_id=1", 404), ("rankings?id=nope&client_id=x&channel_id=1", 404),
        ("buffers?id=nope&client_id=x&channel_id=1", 404), ("buffers?id=a&client_id=x&start=soon", 400),
        ("stores?store=nothing&client_id=x&channel_id=1", 400), ("sockets?cursor=x", 400), ("sockets?socket=x", 200),
        ("stores?store=viewer_state&client_id=x&channel_id=1", 400), ("trivia?id=nope", 404),
        ("requests?status=many", 400), ("requests?search=user:1+user:2", 400), ("requests?entry=999999", 404),
        ("broadcasts?entry=%3Cscript%3E", 200), ("broadcasts?entry=999999", 200),
    ],
)  # fmt: skip
def test_a_wrong_address_is_a_page_with_its_status(live: LiveServer, path: str, status: int):
    answer = fetched(f"{live.url}/_emulator/ui/{path}")

    assert status == answer.status_code
    assert "<script>" not in answer.text


@pytest.mark.parametrize("screen", ["requests", "broadcasts"])
def test_a_screen_says_when_there_is_no_journal(screen: str):
    with live_server(Settings(journal=0)) as live:
        assert "The journal is off" in main_of(f"{live.url}/_emulator/ui/{screen}")


@pytest.mark.slow
def test_hostile_texts_are_shown_as_texts():
    with filled_service(*HOSTILE) as live:
        pages = [read_page(url) for url in all_pages(live.url, f"{live.url}/_emulator/rig", alike=2)]
    foreign = [
        (page.url, tag, given)
        for page in pages
        for tag, given in page.elements
        if tag in ("img", "iframe", "style")
        or (tag == "script" and not (given.get("src") or "").startswith("/_emulator/ui/static/"))
        or any(name.startswith(("on", "hx-on")) for name in given)
        or given.get("hx-get")
    ]

    assert [] == foreign
    assert {f"{live.url}/_emulator/ui/{name}" for name in screens() if name != "overview"} < {
        each.url for each in pages
    }
    for screen in ("rankings", "buffers", "stores", "requests", "broadcasts", "purchases", "faults"):
        assert any(HOSTILE[0] in page.text for page in pages if f"/ui/{screen}" in page.url), screen


def test_the_dashboard_is_closed_to_other_hosts(stranger: Client):
    answer = stranger.get("/_emulator/", headers={"Host": "example.com"})

    assert 403 == answer.status_code
    assert answer.text.startswith("<!doctype html>")


def test_a_page_elsewhere_may_link_to_the_dashboard_but_not_read_it(live: LiveServer):
    # A page elsewhere may link to the dashboard
    answer = fetched(f"{live.url}/_emulator/", **NAVIGATION, **{"Sec-Fetch-Site": "cross-site"})

    assert 200 == answer.status_code

    # A page elsewhere may not read the dashboard
    for headers in [
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Origin": "https://example.com"},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ]:
        for path in ["/_emulator/", "/_emulator/ui/faults", "/_emulator/ui/faults/events"]:
            answer = fetched(f"{live.url}{path}", **headers, **{"Sec-Fetch-Site": "cross-site"})

            assert 403 == answer.status_code

    # A link from elsewhere leads to no control endpoint
    answer = fetched(f"{live.url}/_emulator/clock", **NAVIGATION, **{"Sec-Fetch-Site": "cross-site"})

    assert 403 == answer.status_code


@pytest.mark.parametrize("path", ["/", *paths(), "/_emulator/ui/overview/events", "/_emulator/ui/static/dashboard.js"])
def test_production_has_no_dashboard(production: LiveServer, path: str):
    answer = fetched(f"{production.url}{path}")

    assert (404, "application/json") == (answer.status_code, answer.headers["content-type"])


def test_static_files_may_be_kept_for_ever(live: LiveServer):
    answer = fetched(f"{live.url}/_emulator/ui/static/dashboard.css")

    assert "public, max-age=31536000, immutable" == answer.headers["cache-control"]
    assert (FOLDER / "dashboard.css").read_text() == answer.text
