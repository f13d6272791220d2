"""Deliveries in the journal: complete when the last subscriber has been written to."""

from __future__ import annotations

import asyncio

import pytest

from emulator.engines.shapes import Key
from emulator.journal import DELIVERY, Entry, Journal, JournalBudget
from emulator.realtime.hub import Hub

TOPIC = Key("event", "client", "news", "777")
OTHER = Key("event", "client", "other", None)


class Reader:
    """A subscriber that is open until it has `room` frames."""

    def __init__(self, number: int, room: int = 1_000_000) -> None:
        self.label = f"socket {number} (game)"
        self.is_reachable = True
        self.frames = 0
        self._room = room

    def write(self, frames: bytes, count: int = 1) -> None:
        self.frames += count
        self.is_reachable = self.frames <= self._room


def subscribed(readers: list[Reader], size: int = 1_000_000) -> tuple[Hub, Journal]:
    journal = Journal(JournalBudget(size))
    hub = Hub(journal=journal)
    for each in readers:
        hub.subscribe(TOPIC, each)
    return hub, journal


def entries(journal: Journal) -> list[Entry]:
    return journal.since(0, 1_000)


def test_a_delivery_to_few_is_complete_at_once():
    hub, journal = subscribed([Reader(1), Reader(2, room=0), Reader(3)])

    hub.deliver(TOPIC, b'{"a":1}')

    [entry] = entries(journal)
    assert (DELIVERY, "event:news", "client/777", b'{"a":1}', 7) == (
        entry.kind,
        entry.name,
        entry.path,
        entry.response,
        entry.response_size,
    )
    assert (2, 1) == (entry.delivered, entry.dropped)
    assert "socket 1 (game)\nsocket 2 (game), dropped\nsocket 3 (game)" == entry.recipients


@pytest.mark.parametrize("messages", [1, 7])
def test_a_delivery_to_many_is_complete_after_its_last_step(messages: int):
    async def run() -> tuple[list[int], list[Entry], list[Reader]]:
        readers = [Reader(number, room=3 if number % 100 == 0 else 1_000) for number in range(3_000)]
        hub, journal = subscribed(readers)
        for number in range(messages):
            hub.deliver(TOPIC, b"%d" % number)
        kept = [len(journal)]
        while len(journal) < messages:
            await asyncio.sleep(0)
            kept.append(len(journal))
        return kept, entries(journal), readers

    kept, found, readers = asyncio.run(run())

    assert 0 == kept[0]
    assert len(kept) > 2
    assert [b"%d" % number for number in range(messages)] == [each.response for each in found]
    assert {3_000} == {each.delivered + each.dropped for each in found}
    assert {10} == {len(each.recipients.split("\n")) for each in found}
    full = 30 if messages > 3 else 0
    assert full == found[-1].dropped
    assert all(each.frames == messages for each in readers)


def test_a_message_that_joins_a_batch_visits_everyone_once():
    async def run() -> list[Entry]:
        hub, journal = subscribed([Reader(number) for number in range(3_000)])
        hub.deliver(TOPIC, b"first")
        await asyncio.sleep(0)  # one step: some have the first message
        hub.deliver(TOPIC, b"second")
        for _ in range(1_000):
            if len(journal) == 2:
                break
            await asyncio.sleep(0)
        return entries(journal)

    assert [(b"first", 3_000, 0), (b"second", 3_000, 0)] == [
        (each.response, each.delivered, each.dropped) for each in asyncio.run(run())
    ]


def test_a_message_without_subscribers_is_recorded_on_request_only():
    hub, journal = subscribed([])

    hub.deliver(TOPIC, b"1")
    assert [] == entries(journal)

    hub.record_undelivered(OTHER, b"2")
    [entry] = entries(journal)
    assert ("event:other", "client/", 0, 0, "") == (
        entry.name,
        entry.path,
        entry.delivered,
        entry.dropped,
        entry.recipients,
    )


def test_without_a_journal_no_recipient_is_named():
    class Nameless(Reader):
        @property
        def label(self) -> str:
            raise AssertionError("the name of a recipient was read")

        @label.setter
        def label(self, text: str) -> None: ...

    hub, journal = subscribed([Nameless(1)], size=0)

    hub.deliver(TOPIC, b"1")
    hub.record_undelivered(OTHER, b"2")

    assert 0 == len(journal)
