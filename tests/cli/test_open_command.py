"""`extcli open` and `serve --open`: the dashboard in the browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.dashboard.pages import screens
from extcli.commands.emulator.open import dashboard_of, has_screen
from support.pages import fetched
from support.process import server_process


def test_demo_prints_the_address_where_the_demo_plays(extcli, live):
    assert f"{live.url}/_ns/demo/_emulator/\n" == extcli("demo", "-o", "plain").stdout


@pytest.mark.parametrize("screen", [*screens(), "rig", ""])
def test_every_address_leads_to_a_page(extcli, live, screen):
    address = extcli("open", *[screen] * bool(screen), "-o", "plain").stdout.strip()

    assert 200 == fetched(address).status_code


def test_open_opens_the_page_in_the_browser(extcli, live, opened):
    address = extcli("open", "requests", "-o", "plain").stdout.strip()

    assert f"{live.url}/_emulator/ui/requests" == address == opened.read_text()


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [({}, "linux", False), ({"DISPLAY": ":0"}, "linux", True), ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
     ({"BROWSER": "lynx"}, "linux", True), ({}, "darwin", True), ({}, "win32", True)],
)  # fmt: skip
def test_a_browser_needs_a_display(environ: dict[str, str], platform: str, expected: bool):
    assert expected == has_screen(environ, platform)


@pytest.mark.parametrize(
    ("url", "page"),
    [("http://127.0.0.1:1", "http://127.0.0.1:1/_emulator/"), ("http://0.0.0.0:1", "http://127.0.0.1:1/_emulator/"),
     ("http://[::]:1", "http://[::1]:1/_emulator/")],
)  # fmt: skip
def test_a_service_on_all_addresses_is_opened_on_loopback(url: str, page: str):
    assert page == dashboard_of(url)


@pytest.mark.slow
def test_serve_opens_the_dashboard_when_it_is_ready(opened: Path):
    with server_process("--open") as served:
        address = opened.read_text()

        assert f"{served.url}/_emulator/" == address
        assert 200 == fetched(address).status_code


@pytest.mark.slow
def test_serve_without_a_display_says_where_the_dashboard_is():
    with server_process("--open", BROWSER="", DISPLAY="", WAYLAND_DISPLAY="") as served:
        assert served.process.stderr is not None
        warning = next(line for line in served.process.stderr if "--open" in line)

    assert f"{served.url}/_emulator/" in warning


def test_a_poll_is_opened_by_its_name_and_presented(extcli, live):
    live.client("viewer", user="1", channel="1001", client_id="my-extension").post("vote?id=boss", json={"value": 1})
    page = f"{live.url}/_emulator/ui/polls?id=boss&client_id=my-extension&channel_id=1001"
    options = ("--client-id", "my-extension", "--channel", "1001", "-o", "plain")

    assert f"{page}\n" == extcli("open", "poll", "boss", *options).stdout
    assert f"{page}&present=1\n" == extcli("open", "poll", "boss", "--present", *options).stdout
    assert 'class="stage present"' in fetched(f"{page}&present=1").text
