"""Pages of the dashboard: who gets them, and with which headers."""

from __future__ import annotations

import httpx
import pytest

from emulator.dashboard.pages import ORDER, screens
from emulator.dashboard.static_files import FOLDER
from support.pages import fetched, main_of
from support.service import Client, LiveServer

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'"
)
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
SMALL = 60_000
"""Bytes of a first page with its files."""


def paths() -> list[str]:
    return ["/_emulator", "/_emulator/", *(f"/_emulator/ui/{name}" for name in screens())]


def test_the_root_sends_a_browser_to_the_dashboard(live: LiveServer):
    answer = fetched(f"{live.url}/")

    assert (303, "/_emulator/") == (answer.status_code, answer.headers["location"])


def test_the_root_returns_links_to_programs(stranger: Client):
    answer = stranger.get("/").json()

    assert {"name", "version", "environment", "documentation", "dashboard"} == set(answer)
    assert ("sandbox", "/_emulator/") == (answer["environment"], answer["dashboard"])


def test_the_root_of_a_namespace_leads_to_its_own_dashboard(live: LiveServer):
    answer = fetched(f"{live.url}/_ns/blue")

    assert "/_ns/blue/_emulator/" == answer.headers["location"]
    assert "namespace <b>blue</b>" in fetched(f"{live.url}/_ns/blue/_emulator/").text


def test_all_links_of_a_page_stay_in_its_namespace(live: LiveServer):
    text = fetched(f"{live.url}/_ns/blue/_emulator/ui/faults").text
    text = text.replace('<a href="/_emulator/ui/faults">default</a>', "")  # the switcher of namespaces

    assert 'href="/_emulator' not in text
    assert 'src="/_emulator' not in text


@pytest.mark.parametrize("start", ["", "/_ns/blue"])
def test_addresses_that_people_guess_lead_to_the_screens(live: LiveServer, start: str):
    led = {path: fetched(f"{live.url}{start}/_emulator/{path}") for path in ("ui", "ui/", *ORDER)}
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


@pytest.mark.parametrize("path", paths())
def test_every_screen_is_readable_without_script(live: LiveServer, path: str):
    assert main_of(f"{live.url}{path}").strip().startswith("<h1>")


def test_the_navigation_names_every_screen(live: LiveServer):
    text = fetched(f"{live.url}/_emulator/").text

    assert [name for name in ORDER if name in screens()] == list(screens())
    assert all(f">{screen.title}</a>" in text for screen in screens().values())


def test_an_unknown_screen_is_a_page_with_status_404(live: LiveServer):
    answer = fetched(f"{live.url}/_emulator/ui/%3Cscript%3E")

    assert 404 == answer.status_code
    assert "there is no screen &lt;script&gt;" in answer.text


def test_the_dashboard_is_closed_to_other_hosts(stranger: Client):
    answer = stranger.get("/_emulator/", headers={"Host": "example.com"})

    assert 403 == answer.status_code
    assert answer.text.startswith("<!doctype html>")


def test_a_page_elsewhere_may_link_to_the_dashboard(live: LiveServer):
    answer = fetched(f"{live.url}/_emulator/", **NAVIGATION, **{"Sec-Fetch-Site": "cross-site"})

    assert 200 == answer.status_code


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Origin": "https://example.com"},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ],
)
@pytest.mark.parametrize("path", ["/_emulator/", "/_emulator/ui/faults", "/_emulator/ui/faults/events"])
def test_a_page_elsewhere_may_not_read_the_dashboard(live: LiveServer, path: str, headers: dict[str, str]):
    answer = fetched(f"{live.url}{path}", **headers, **{"Sec-Fetch-Site": "cross-site"})

    assert 403 == answer.status_code


def test_a_link_from_elsewhere_leads_to_no_control_endpoint(live: LiveServer):
    answer = fetched(f"{live.url}/_emulator/clock", **NAVIGATION, **{"Sec-Fetch-Site": "cross-site"})

    assert 403 == answer.status_code


@pytest.mark.parametrize("path", ["/", *paths(), "/_emulator/ui/overview/events", "/_emulator/ui/static/dashboard.js"])
def test_production_has_no_dashboard(production: LiveServer, path: str):
    answer = fetched(f"{production.url}{path}")

    assert (404, "application/json") == (answer.status_code, answer.headers["content-type"])


def test_the_document_of_the_api_leaves_pages_out(stranger: Client):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    assert not [path for path in paths if path == "/" or path.startswith("/_emulator/ui")]


def test_static_files_may_be_kept_for_ever(live: LiveServer):
    answer = fetched(f"{live.url}/_emulator/ui/static/dashboard.css")

    assert "public, max-age=31536000, immutable" == answer.headers["cache-control"]
    assert (FOLDER / "dashboard.css").read_text() == answer.text


@pytest.mark.parametrize("name", ["nothing.js", "VENDORED.toml", "..%2Fhttp.py", "..%2f..%2f..%2fapp.py"])
def test_no_other_file_can_be_read(live: LiveServer, name: str):
    assert 404 == fetched(f"{live.url}/_emulator/ui/static/{name}").status_code


def test_a_first_page_with_its_files_is_small(live: LiveServer):
    with httpx.Client(base_url=live.url, headers={"Accept-Encoding": "gzip"}) as browser:
        page = browser.get("/_emulator/")
        files = [
            each.split('"')[0] for each in page.text.replace('src="', 'href="').split('href="') if "/static/" in each
        ]
        answers = [page, *(browser.get(file) for file in files)]

    assert 5 == len(files)
    assert sum(each.num_bytes_downloaded for each in answers) < SMALL


def test_each_own_script_has_at_most_200_lines():
    assert not [path.name for path in FOLDER.glob("[!h]*.js") if len(path.read_text().splitlines()) > 200]


@pytest.mark.parametrize("path", ["", "ui/static/dashboard.css"])
@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip;q=0, identity", None),
        ("identity, GZIP; q=0.000", None),
        ("x-gzip-2", None),
        ("br, gzip;q=0.1", "gzip"),
        ("GZip", "gzip"),
    ],
)
def test_a_browser_that_refuses_compression_gets_none(live: LiveServer, path: str, accepted: str, encoding: str | None):
    answer = fetched(f"{live.url}/_emulator/{path}", **{"Accept-Encoding": accepted})

    assert encoding == answer.headers.get("content-encoding")


def test_pages_are_compressed_for_browsers_that_accept_it(live: LiveServer):
    plain, compressed = (
        fetched(f"{live.url}/_emulator/", **{"Accept-Encoding": accepted}) for accepted in ("identity", "gzip")
    )

    assert (None, "gzip") == tuple(each.headers.get("content-encoding") for each in (plain, compressed))
    assert plain.text == compressed.text
    assert int(compressed.headers["content-length"]) < len(plain.content) / 2
