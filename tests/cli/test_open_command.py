"""`extcli open`, `rig`, `demo` and `serve --open`: the pages of the service in the browser."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from emulator.dashboard.pages import screens
from extcli.commands.open import has_display
from support.pages import fetched, main_of
from support.process import server_process


def test_demo_plays_the_demo_and_prints_where_until_it_is_stopped(extcli, live):
    assert f"{live.url}/_ns/demo/_emulator/\n" == extcli("demo", "-o", "plain").stdout
    assert live.service.namespaces.find_open("demo").demo.is_playing

    assert not extcli("demo", "--stop").stdout
    assert not live.service.namespaces.find_open("demo").demo.is_playing


def test_every_address_leads_to_a_page(extcli):
    for screen in (*screens(), "rig", ""):
        address = extcli("open", *[screen] * bool(screen), "-o", "plain").stdout.strip()
        assert 200 == fetched(address).status_code, screen


@pytest.mark.parametrize("command", ["open requests", "rig http://127.0.0.1:1/panel.html --open"])
def test_a_page_is_opened_in_the_browser(extcli, opened, command):
    assert extcli(*command.split(), "-o", "plain").stdout.strip() == opened.read_text()


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [({}, "linux", False), ({"DISPLAY": ":0"}, "linux", True), ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
     ({"BROWSER": "lynx"}, "linux", True), ({}, "darwin", True), ({}, "win32", True)],
)  # fmt: skip
def test_a_browser_needs_a_display(environ: dict[str, str], platform: str, expected: bool):
    assert expected == has_display(environ, platform)


@pytest.mark.slow
def test_serve_opens_the_dashboard_when_it_is_ready(opened: Path):
    with server_process("--open") as served:
        address = opened.read_text()

        assert f"{served.url}/_emulator/" == address
        assert 200 == fetched(address).status_code


def test_a_poll_is_opened_by_its_name_and_presented(extcli, live):
    live.client("viewer", user="1", channel="1001", client_id="my-extension").post("vote?id=boss", json={"value": 1})
    page = f"{live.url}/_emulator/ui/polls?id=boss&client_id=my-extension&channel_id=1001"
    options = ("--client-id", "my-extension", "--channel", "1001", "-o", "plain")

    assert f"{page}\n" == extcli("open", "poll", "boss", *options).stdout
    assert f"{page}&present=1\n" == extcli("open", "poll", "boss", "--present", *options).stdout
    assert 'class="stage present"' in fetched(f"{page}&present=1").text


# `extcli rig`


PAGE = "http://127.0.0.1:1/panel.html?a=1&b=2"


def parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def test_the_options_are_in_the_address(extcli, live):
    default = {"url": PAGE, "viewers": "2", "channel_id": "1001", "client_id": "my-extension"}
    assert default == parameters(extcli("rig", PAGE, "-o", "json").json["url"])
    options = ("--viewers", "3", "--config", "config.html", "--live", "live.html", "--channel", "777")
    address = extcli("rig", PAGE, *options, "--client-id", "ext", "-o", "plain").stdout.strip()

    assert address.startswith(f"{live.url}/_emulator/rig?")
    assert ("3", "config.html", "live.html", "777", "ext") == tuple(
        parameters(address)[name] for name in ("viewers", "config", "live", "channel_id", "client_id")
    )
    assert 3 == main_of(extcli("rig", PAGE, "--viewers", "3", "-o", "plain").stdout.strip()).count("<iframe")


@pytest.mark.parametrize("arguments", [("panel.html",), ("javascript:alert(1)",), (PAGE, "--viewers", "7"), ()])
def test_wrong_usage_is_exit_code_2(extcli, arguments):
    assert 2 == extcli("rig", *arguments).exit_code
