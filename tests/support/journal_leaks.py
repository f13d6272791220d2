"""Finds secrets in all forms of the journal and in the dashboard."""

from __future__ import annotations

import json
from collections.abc import Iterator

from emulator.control.journal.snippets import FORMS
from emulator.dashboard.pages import screens
from extcli.journal.views import har_lines
from support.journal import entries_of, following, journal_of
from support.leak_detector import LeakDetector
from support.service import Client, LiveServer

CONTENT = {
    "an answer", "a text in a buffer", "a viewer's state", "a channel's state", "a patch", "a JSON store",
    "a broadcast", "a whisper", "a question", "a bad body", "a large body", "a state over the socket",
    "a broadcast over the socket",
    "a value of the whole extension",
    "an action", "a target", "data", "an event's name", "a frame of text", "a frame of JSON", "a large frame",
}  # fmt: skip
"""What the scenario plants in bodies that hold no secret. The journal keeps bodies."""


def everything(service: LiveServer) -> Iterator[str]:
    """Yield the whole journal in each form."""
    with Client(base_url=service.url) as client:
        since: int | None = 0
        while since is not None:
            page = journal_of(service, since=since, limit=200)
            since = page["next"]
            yield json.dumps(page, ensure_ascii=False)
            yield from har_lines(page["entries"], service.url)
            for number in (each["number"] for each in page["entries"]):
                yield client.get("/_emulator/journal/entry", params={"id": number}).text
                yield client.get("/_emulator/explain", params={"id": number}).text
                for form in FORMS:
                    yield client.get("/_emulator/journal/entry", params={"id": number, "as": form}).text
    with following(service, since=0, timeout=0) as lines:
        yield json.dumps(list(lines), ensure_ascii=False)


def pages(service: LiveServer) -> Iterator[str]:
    """Yield the pages of the dashboard: each screen, and what it shows of each entry and each socket."""
    with Client(base_url=service.url) as client:
        for name in screens():
            yield client.get(f"/_emulator/ui/{name}" if name != "overview" else "/_emulator").text
        for each in entries_of(service, limit=1_000):
            yield client.get("/_emulator/ui/requests", params={"entry": each["number"]}).text
        for name in ("contents/pins", "contents/codes", "sockets", "parity", "clock/next"):
            yield client.get(f"/_emulator/{name}").text


def leaks(service: LiveServer, seen: LeakDetector) -> set[str]:
    return {label for text in everything(service) for label in seen.found_in(text)} - CONTENT
