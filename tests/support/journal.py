"""Reads the journal of a service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from support.service import Client, RunningService

Entry = dict[str, Any]


def journal_of(service: RunningService, **query: object) -> dict[str, Any]:
    """Return one page of the journal."""
    with Client(base_url=service.url) as client:
        return dict(client.get("/_emulator/journal", params=query).raise_for_status().json())  # type: ignore[arg-type]


def entries_of(service: RunningService, **query: object) -> list[Entry]:
    """Return the entries that a query selects, oldest first."""
    return list(journal_of(service, order="oldest", **query)["entries"])


def entry_of(service: RunningService, answer: httpx.Response) -> Entry:
    """Return the entry of a response."""
    with Client(base_url=service.url) as client:
        found = client.get("/_emulator/journal/entry", params={"id": answer.headers["x-request-id"]})
        return dict(found.raise_for_status().json())


@contextmanager
def following(service: RunningService, **query: object) -> Iterator[Iterator[Entry]]:
    """Yield the lines of the stream, each as JSON."""
    with (
        Client(base_url=service.url) as client,
        client.stream("GET", "/_emulator/journal/stream", params=query) as answer,  # type: ignore[arg-type]
    ):
        answer.raise_for_status()
        yield (json.loads(line) for line in answer.iter_lines())
