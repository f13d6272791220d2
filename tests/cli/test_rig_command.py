"""`extcli rig`: prints and opens the address of the rig."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from support.pages import main_of

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


def test_a_namespace_has_its_own_rig(extcli, live):
    address = extcli("rig", PAGE, "--url", f"{live.url}/_ns/blue", "-o", "plain").stdout.strip()

    assert address.startswith(f"{live.url}/_ns/blue/_emulator/rig?")
    assert 'action="/_ns/blue/_emulator/call"' in main_of(address)


@pytest.mark.parametrize("arguments", [("panel.html",), ("javascript:alert(1)",), (PAGE, "--viewers", "7"), ()])
def test_wrong_usage_is_exit_code_2(extcli, arguments):
    assert 2 == extcli("rig", *arguments).exit_code


def test_open_opens_the_address_in_the_browser(extcli, opened: Path):
    address = extcli("rig", PAGE, "--open", "-o", "plain").stdout.strip()

    assert address == opened.read_text()
