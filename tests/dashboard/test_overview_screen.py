"""The overview."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.pages import chromium, main_of
from support.service import CLIENT_ID, LiveServer, live_server


def test_it_has_lines_that_connect_clients(live: LiveServer):
    main = main_of(f"{live.url}/_emulator/")

    assert f"&lt;script src=&#34;{live.url}/_emulator/sdk.js&#34;" in main
    assert f"ws://{live.url.removeprefix('http://')}/0.2.0/my-extension" in main
    assert f"export EXTCLI_URL={live.url} EXTCLI_CLIENT_ID=my-extension" in main
    assert f"{live.url}/v1/e/vote?id=default" in main


def test_its_lines_lead_to_the_namespace_of_the_page(live: LiveServer):
    main = main_of(f"{live.url}/_ns/blue/_emulator/")

    assert f"{live.url}/_ns/blue/_emulator/sdk.js" in main
    assert f"extcli reset --keep 1m --url {live.url}/_ns/blue" in main


def test_it_says_whether_the_data_survives_a_stop(live: LiveServer, tmp_path: Path):
    assert "the data is gone" in main_of(f"{live.url}/_emulator/")
    with live_server(Settings(data=f"sqlite://{tmp_path}/data.db")) as kept:
        assert "the data stays" in main_of(f"{kept.url}/_emulator/")


def test_its_lines_have_a_registered_client_id():
    extensions = {"a <b>": Extension("a <b>", (b"secret",))}
    with live_server(Settings(extensions=extensions)) as live:
        main = main_of(f"{live.url}/_emulator/")

    assert "/0.2.0/a &lt;b&gt;" in main
    assert "<li><bdi>a &lt;b&gt;</bdi></li>" in main


def test_it_says_once_that_production_accepts_no_token_of_the_sandbox(live: LiveServer):
    token = httpx.post(f"{live.url}/v1/e/authtoken?helper=1", json={"app_id": CLIENT_ID}).json()["token"]
    for _ in range(3):
        live.bearer(token).get("vote").raise_for_status()

    main = main_of(f"{live.url}/_emulator/")

    assert "No request so far would have had another answer." in main
    assert 1 == main.count("Production accepts no token of the sandbox (rule <code>stage</code>)")
    assert "Unknown:" not in main


def test_it_shows_no_secret():
    extensions = {"mine": Extension("mine", (b"a very secret word",))}
    with live_server(replace(Settings(), extensions=extensions)) as live:
        assert "a very secret word" not in main_of(f"{live.url}/_emulator/")


def test_it_links_to_the_other_namespaces(live: LiveServer):
    httpx.post(f"{live.url}/_ns/violet").raise_for_status()

    assert '<a href="/_ns/violet/_emulator/">violet</a>' in main_of(f"{live.url}/_emulator/")
    assert '<a href="/_emulator/">default</a>' in main_of(f"{live.url}/_ns/violet/_emulator/")


@pytest.mark.long
def test_deleting_everything_and_undoing_it_say_what_happened(live: LiveServer):
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).raise_for_status()
    with chromium() as browser:
        page = browser.new_page()
        page.goto(live.url)
        page.click("#reset-asks > summary")
        page.click("#reset .submit > button")
        page.wait_for_selector("#result:has-text('All data is deleted.')")
        page.click("#undo .submit > button")
        page.wait_for_selector("#result:has-text('The data is back.')")

    assert 1 == live.client("viewer", user="1", channel="777").get("vote").json()["stats"]["count"]


def test_it_counts_what_the_service_holds(live: LiveServer):
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).raise_for_status()

    assert "polls: <b>1</b>" in main_of(f"{live.url}/_emulator/")


def test_it_warns_of_what_production_would_refuse(live: LiveServer):
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).raise_for_status()
    main = main_of(f"{live.url}/_emulator/")

    assert '<a href="/_emulator/ui/requests?production=exp">exp</a>' in main
    assert "extcli explain exp" in main
