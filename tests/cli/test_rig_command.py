"""`extcli rig`: prints and opens the address of the rig."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from support.pages import fetched, main_of

PAGE = "http://127.0.0.1:1/panel.html?a=1&b=2"


def parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def test_the_address_has_the_page_the_viewers_the_channel_and_the_client(extcli, live):
    address = extcli("rig", PAGE, "-o", "json").json["url"]

    assert address.startswith(f"{live.url}/_emulator/rig?")
    assert {
        "url": PAGE,
        "viewers": "2",
        "channel_id": "1001",
        "client_id": "my-extension",
    } == parameters(address)


def test_the_options_are_in_the_address(extcli):
    options = ("--viewers", "3", "--config", "config.html", "--live", "live.html", "--channel", "777")
    found = parameters(extcli("rig", PAGE, *options, "--client-id", "ext", "-o", "plain").stdout.strip())

    assert ("3", "config.html", "live.html", "777", "ext") == tuple(
        found[name] for name in ("viewers", "config", "live", "channel_id", "client_id")
    )


def test_the_address_leads_to_the_frames(extcli, live):
    address = extcli("rig", PAGE, "--viewers", "3", "-o", "plain").stdout.strip()

    assert 200 == fetched(address).status_code
    assert 3 == main_of(address).count("<iframe")


def test_a_namespace_has_its_own_rig(extcli, live):
    address = extcli("rig", PAGE, "--url", f"{live.url}/_ns/blue", "-o", "plain").stdout.strip()

    assert address.startswith(f"{live.url}/_ns/blue/_emulator/rig?")
    assert 'action="/_ns/blue/_emulator/call"' in main_of(address)


def test_the_service_is_not_contacted_and_its_address_is_one_to_connect_to(extcli):
    address = extcli("rig", PAGE, "--url", "http://0.0.0.0:1", "-o", "plain").stdout

    assert address.startswith("http://127.0.0.1:1/_emulator/rig?")


@pytest.mark.parametrize("arguments", [("panel.html",), ("javascript:alert(1)",), (PAGE, "--viewers", "7"), ()])
def test_wrong_usage_is_exit_code_2(extcli, arguments):
    assert 2 == extcli("rig", *arguments).exit_code


def test_open_opens_the_address_in_the_browser(extcli, opened: Path):
    address = extcli("rig", PAGE, "--open", "-o", "plain").stdout.strip()

    assert address == opened.read_text()
