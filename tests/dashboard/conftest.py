"""A browser for all tests of a process, and a page of it for each test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page

from support.pages import chromium


@contextmanager
def in_use(browser: Browser) -> Iterator[Browser]:
    """Run Playwright's event loop. It is hidden between the tests of the dashboard: others run loops of their own."""
    asyncio._set_running_loop(browser._loop)
    try:
        yield browser
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def running_browser() -> Iterator[Browser]:
    with chromium() as browser:
        asyncio._set_running_loop(None)
        yield browser
        asyncio._set_running_loop(browser._loop)


@pytest.fixture
def browser(running_browser: Browser) -> Iterator[Browser]:
    with in_use(running_browser) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()
