"""Reads pages of the dashboard, without a browser and with Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = "/usr/bin/chromium"


def fetched(url: str, **headers: str) -> httpx.Response:
    """Return the response to a browser that follows no link."""
    return httpx.get(url, headers={"Accept": "text/html", **headers}, timeout=30)


def main_of(url: str) -> str:
    """Return the content of `<main>` as it is without JavaScript."""
    answer = fetched(url).raise_for_status()
    (main,) = re.findall(r"<main\b[^>]*>(.*)</main>", answer.text, re.DOTALL)
    return uncoloured(main)


def uncoloured(html: str) -> str:
    """Return HTML without the colours of JSON."""
    return re.sub('<span class="[kns]">([^<]*)</span>', r"\1", html)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


FILTERS = frozenset({"after", "before", "channel_id", "client_id", "path", "production", "reason", "since", "sort"})
"""Parameters that choose and sort the rows of a list."""


def all_pages(url: str, *more: str, alike: int = 1) -> list[str]:
    """Return the addresses of the dashboard's pages, found by links from the overview and from `more`.

    Pages are alike if they have the same path and parameters, without `FILTERS`; at most `alike` of them are returned.
    """
    found: dict[str, object] = {}
    waiting = [f"{url}/_emulator/", *more]
    while waiting:
        address = urljoin(url, waiting.pop(0)).partition("#")[0]
        parts = urlsplit(address)
        kind = parts.path, frozenset(parse_qs(parts.query)) - FILTERS
        if address in found or not address.startswith(f"{url}/_emulator"):
            continue
        if sum(each == kind for each in found.values()) >= alike:
            continue
        answer = fetched(address)
        if answer.headers["content-type"].startswith("text/html"):
            found[address] = kind
            waiting += map(unescape, re.findall('<a [^>]*?href="([^"]*)"', answer.text))
    return list(found)


class Stream:
    """A reader of an event stream."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def read(self) -> tuple[str, str]:
        """Return the id and the data of the next event."""
        identifier, data = "", []
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "id":
                identifier = value
            elif name == "data":
                data.append(value)
            elif not line and data:
                return identifier, "\n".join(data)
        raise EOFError("the stream has ended")


@contextmanager
def following(url: str, last: str = "", **query: str) -> Iterator[Stream]:
    """Follow a screen."""
    headers = {"Last-Event-ID": last} if last else {}
    with httpx.stream("GET", f"{url}/events", params=query, headers=headers, timeout=30) as answer:
        assert "text/event-stream; charset=utf-8" == answer.headers["content-type"]
        yield Stream(answer.iter_lines())
