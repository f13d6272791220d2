"""A kind of things is declared once: lists, waits, snapshots and the dashboard follow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator import app, record_list
from emulator.callers import Caller
from emulator.control.contents import http as contents
from emulator.control.waits import http as waits
from emulator.dashboard import frame
from emulator.engines.records import DocumentRecord
from emulator.engines.shapes import Key
from emulator.kind_list import KINDS
from emulator.kinds import Kind, Measured, Shape, Subject
from emulator.stored import Stored, decode_check
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server
from support.waits import ask


async def measured(caller: Caller, channel: str | None, id: str, user: str) -> Measured:
    return Measured({"": 3})


TOYS = Kind(
    "toys",
    "the toys",
    ("toy",),
    Shape.DOCUMENTS,
    1_000,
    "toys",
    (Stored(DocumentRecord, "toy", decode_check(int)),),
    waits_for=Subject("toy", "toy", frozenset({"count"}), "*"),
    measure=lambda service: measured,
)
ALL = (*KINDS, TOYS)


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    for module in (app, record_list, frame):
        monkeypatch.setattr(module, "KINDS", ALL)
    record_list._checks.cache_clear()
    with live_server() as server:
        yield server
    record_list._checks.cache_clear()


def test_a_declared_kind_is_listed_waited_for_and_in_snapshots(live: LiveServer):
    async def make() -> None:
        key, now = Key("toy", CLIENT_ID, "bear", CHANNEL), live.service.clock.now()
        await live.service.engine.documents.update([key], lambda found: {key: b"4"}, now=now, expires_at=now + 900)

    live.freeze()
    live.run(make())

    assert 1 == live.run(live.service.contents.counts())["toys"]
    [row] = live.run(live.service.contents.page("toys", limit=10)).rows
    assert ("bear", CLIENT_ID, CHANNEL, 1) == (row.id, row.client_id, row.channel_id, row.size)
    assert ask(live, "toy", count="=3").json()["met"]
    assert 1 == live.run(frame.frame_of(live.service))["counts"]["toys"]
    with Client(base_url=live.url) as client:
        snapshot = client.get("/_emulator/snapshot").raise_for_status().content
        client.put("/_emulator/snapshot", content=snapshot).raise_for_status()
        broken = client.put("/_emulator/snapshot", content=snapshot.replace(b'"value":4', b'"value":"x"'))
    assert (400, True) == (broken.status_code, "toy bear" in broken.text)


def test_a_declared_kind_has_an_endpoint_and_is_a_condition():
    paths = [each.path for each in contents.endpoints_of(ALL)]
    [wait] = waits.endpoints_of(ALL)

    assert "/_emulator/contents/toys" in paths
    assert wait.query[0].meaning.count(" toy,") == 1
