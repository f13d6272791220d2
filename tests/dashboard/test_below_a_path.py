"""A sandbox below a path of nginx, which keeps the path or strips it, as docs/deploying.md configures it."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Page, expect

from dashboard.html_pages import read_page
from dashboard.rig_pages import Log, log, page, wait_for_script
from emulator.core.settings import Settings
from engines.redis_server import free_port
from support.browser import copy_pages, serve_folder
from support.filled_service import PLAIN, filled_service
from support.pages import all_pages
from support.plugin_runs import ROOT
from support.process import wait_until
from support.service import RunningService
from support.socket_client import linked_game

__all__ = ("log", "page")
pytestmark = pytest.mark.slow
PATH = "/muxy"
ADDRESSES = ("href", "src", "action", "hx-post", "hx-sse:connect")
"""The attributes that have addresses."""


def in_chromium(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test where nginx strips the path. The service makes the same addresses where it keeps the path."""
    return pytest.mark.long(pytest.mark.parametrize("url", ["strips"], indirect=True)(test))


def configuration(folder: Path, port: int, service: str, *, strips: bool) -> str:
    """The blocks of the page: the first has the upstream, the others the location."""
    text = (ROOT / "docs/deploying.md").read_text()
    whole, location, stripping = re.findall(r"^```nginx\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    upstream = whole.partition("server {\n")[0].replace("127.0.0.1:8282", service)
    if strips:
        location = re.sub(r" *proxy_pass .*\n", stripping, location)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"daemon off; pid {folder}/pid; error_log {folder}/errors; worker_processes 1; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{upstream}\nserver {{ listen 127.0.0.1:{port};\n{location}}} }}"
    )


@contextmanager
def nginx(folder: Path, service: str, *, strips: bool) -> Iterator[str]:
    """Run nginx in front of a service, and yield its origin."""
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("needs nginx")
    port = free_port()

    def is_up() -> bool:
        with socket.socket() as wire:
            return wire.connect_ex(("127.0.0.1", port)) == 0

    (folder / "config").write_text(configuration(folder, port, service, strips=strips))
    with subprocess.Popen([program, "-e", folder / "errors", "-p", folder, "-c", folder / "config"]) as process:
        try:
            wait_until(lambda: is_up() or process.poll() is not None)
            assert process.poll() is None, (folder / "errors").read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture(scope="module", params=["keeps", "strips"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address that clients of the service use."""
    settings = Settings(root_path=PATH, proxies=("127.0.0.1",))
    with filled_service(*PLAIN, settings=settings) as live:
        service = urlsplit(live.url).netloc
        with nginx(tmp_path_factory.mktemp("nginx"), service, strips=request.param == "strips") as origin:
            yield f"{origin}{PATH}"


@pytest.fixture(autouse=True)
def nothing_outside(url: str, log: Log) -> Iterator[None]:
    """All that a test requests of nginx in Chromium is below the path, and nothing fails."""
    yield
    origin = url.removesuffix(PATH)
    assert [] == [each for each in log.urls if each.startswith(origin) and not each.startswith(f"{url}/")]
    assert [] == log.errors


def test_calls_and_sockets_work_and_each_namespace_has_its_own(url: str):
    counts = []
    for each in (url, f"{url}/_ns/blue"):
        service = RunningService(each)
        with linked_game(service) as game, service.client("viewer", user="1", channel="777") as viewer:
            game.data("subscribe", "state", {"topic_id": "channel"})
            counts.append(viewer.post("vote?id=below", json={"value": 2}).raise_for_status().json()["count"])
            game.data("set", "state", {"state_id": "channel", "state": {"round": 1}})
            assert {"round": 1} == game.update()["data"]["state"]

    assert [1, 1] == counts
    assert ["blue"] == RunningService(url)._http.get("/_ns").json()["namespaces"]


@in_chromium
def test_every_address_in_a_page_of_the_dashboard_is_below_the_path(url: str, page: Page):
    pages = [*all_pages(url, f"{url}/_emulator/rig"), f"{url}/_ns/blue/_emulator/", f"{url}/schema/docs"]
    for each in pages:
        attributes = [attributes for _, attributes in read_page(each).elements]
        found = [value for given in attributes for name in ADDRESSES if (value := given.get(name))]

        assert found
        assert [] == [value for value in found if not urljoin(each, value).startswith((f"{url}/", "data:"))], each
    for each in {urlsplit(each).path: each for each in pages}.values():
        page.goto(each)
        if page.locator("[hx-sse\\:connect]").count():
            wait_for_script(page)


@in_chromium
def test_forms_streams_and_the_demo_work_and_lead_from_namespace_to_namespace(url: str, page: Page):
    page.goto(f"{url}/")
    page.get_by_role("link", name="Namespaces").click()
    wait_for_script(page)
    page.get_by_text("Create a namespace").click()
    page.get_by_label("Name", exact=True).fill("green")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("rowheader", name="green").get_by_role("link").click()  # the event stream shows it
    wait_for_script(page)
    assert f"{url}/_ns/green/_emulator/" == page.url
    page.get_by_role("button", name="Play a demo stream").click()
    expect(page.locator(".stage caption")).to_have_text(re.compile(r"\d votes"))
    wait_for_script(page)
    page.get_by_role("button", name="stop").click()
    page.get_by_role("link", name="Back to the namespace default").click()

    assert f"{url}/_emulator/" == page.url


@in_chromium
def test_the_rig_shows_a_page_with_the_published_sdk(url: str, page: Page, log: Log, tmp_path: Path):
    copy_pages(tmp_path, f"{url}/_ns/rig")
    RunningService(url)._http.post("/_ns/rig").raise_for_status()
    with serve_folder(tmp_path) as extension:
        page.goto(f"{url}/_ns/rig/_emulator/rig?viewers=1&live=live.html&url={extension}/panel.html")
        viewer, broadcaster = (page.frame_locator(f"#frame-{name}") for name in ("1", "live"))
        expect(viewer.locator("#question")).to_have_text("No poll yet")
        broadcaster.get_by_role("button", name="Start poll").click()
        viewer.get_by_role("button", name="Dragon").click()

        expect(broadcaster.locator("#poll .note")).to_have_text("1 vote")  # an event of the socket brings it
        expect(page.locator("#log")).to_contain_text("vote")  # the event stream brings it
        page.goto("about:blank")  # the rig would go on asking the server for changed files
    assert any(each.startswith(f"{url}/_ns/rig/app/") for each in log.urls)
