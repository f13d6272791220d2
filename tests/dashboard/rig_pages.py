"""Fixtures for tests of the rig in Chromium: the pages of an extension, and a log of what a browser does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from support.browser import copy_pages, serve_folder
from support.service import LiveServer

REPORT_VIOLATIONS = """
document.addEventListener('securitypolicyviolation', (event) => {
  console.error(`violation: ${event.violatedDirective} ${event.blockedURI}`);
});
"""


@dataclass
class Log:
    """What the pages of a browser did: their requests, the origins of these, and their errors."""

    urls: set[str] = field(default_factory=set)
    """Addresses of requests, and of sockets with `http` in place of `ws`."""
    origins: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("request", lambda request: self.add(request.url))
        page.on("websocket", lambda socket: self.add(socket.url.replace("ws", "http", 1)))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type in ("error", "warning") else None,
        )

    def add(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https"):
            self.urls.add(url)
            self.origins.add(f"{parts.scheme}://{parts.netloc}")


@pytest.fixture
def extension(live: LiveServer, tmp_path: Path) -> Iterator[str]:
    """The URL of the example extension and of `probe.html`, which records what its helper says."""
    copy_pages(tmp_path, live.url)
    with serve_folder(tmp_path) as url:
        yield url


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def page(browser: Browser, log: Log) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.add_init_script(REPORT_VIOLATIONS)
    page = context.new_page()
    log.watch(page)
    yield page
    context.close()


def rig(service: LiveServer, **query: str) -> str:
    return f"{service.url}/_emulator/rig?{urlencode(query)}"


def wait_for_script(page: Page) -> None:
    """Wait until a page of the dashboard follows the service. Before, a form is sent without script, and leaves it."""
    expect(page.locator("#reload")).to_be_hidden()


def frame(page: Page, name: str) -> Frame:
    """Return the content of a frame by the name that its parameters have."""
    element = page.locator(f"#frame-{name}").element_handle()
    content = element.content_frame() if element else None
    assert content is not None
    return content
