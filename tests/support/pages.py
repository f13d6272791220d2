"""Reads pages of the dashboard, without a browser and with Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = "/usr/bin/chromium"


def fetched(url: str, **headers: str) -> httpx.Response:
    """Return the answer to a browser that follows no link."""
    return httpx.get(url, headers={"Accept": "text/html", **headers}, timeout=10)


def main_of(url: str) -> str:
    """Return the content of `<main>` as it is without JavaScript."""
    answer = fetched(url).raise_for_status()
    (main,) = re.findall(r"<main\b[^>]*>(.*)</main>", answer.text, re.DOTALL)
    return str(main)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
