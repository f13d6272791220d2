"""Messages to so many subscribers that they are delivered in steps: order, failures, and the journal."""

from __future__ import annotations

import asyncio

import pytest

from emulator.core.journal import Journal, JournalBudget
from emulator.core.keys import Key
from emulator.realtime.hub import Hub

TOPIC, OTHER = Key("event", "client", "news", "777"), Key("event", "client", "sport", "777")
MANY = 3_000


class Reader:
    """A subscriber that records the short texts it is sent, and is open until it has `room` of them."""

    label = "socket 7 (game)"

    def __init__(self, room: int = 1_000) -> None:
        self.texts: list[bytes] = []
        self._room = room

    @property
    def is_reachable(self) -> bool:
        return len(self.texts) <= self._room

    def write(self, frames: bytes, count: int = 1) -> None:
        while frames:
            size = frames[1]
            self.texts.append(frames[2 : 2 + size])
            frames = frames[2 + size :]


class Broken(Reader):
    """A subscriber that no write reaches."""

    def write(self, frames: bytes, count: int = 1) -> None:
        raise RuntimeError("the connection is in a state that was not foreseen")


def subscribed(hub: Hub, readers: list[Reader], *topics: Key) -> list[Reader]:
    for each in readers:
        for topic in topics or (TOPIC,):
            hub.subscribe(topic, each)
    return readers


async def settle() -> None:
    for _ in range(1_000):
        await asyncio.sleep(0)


async def test_messages_on_two_topics_arrive_in_order_at_common_subscribers():
    hub = Hub()
    subscribed(hub, [Reader() for _ in range(MANY)])
    subscribed(hub, [Reader() for _ in range(MANY)], OTHER)
    both = subscribed(hub, [Reader()], TOPIC, OTHER)
    texts = [b"%d" % number for number in range(9)]

    for number, text in enumerate(texts):
        hub.deliver((TOPIC, OTHER)[number // 2 % 2], text)
        if number % 3 == 0:
            await asyncio.sleep(0)
    await settle()

    assert texts == both[0].texts


async def test_a_new_subscriber_receives_only_the_messages_after_it():
    hub = Hub()
    subscribed(hub, [Reader() for _ in range(MANY)])

    hub.deliver(TOPIC, b"before")
    late = subscribed(hub, [Reader()])
    hub.deliver(TOPIC, b"after")
    await settle()

    assert [b"after"] == late[0].texts


@pytest.mark.parametrize("number", [10, MANY])
async def test_a_reader_whose_write_fails_keeps_no_message_from_the_others(number: int):
    hub = Hub()
    subscribed(hub, [Broken()])
    others = subscribed(hub, [Reader() for _ in range(number)])

    for text in (b"first", b"second"):
        hub.deliver(TOPIC, text)
        await settle()

    assert {(b"first", b"second")} == {tuple(each.texts) for each in others}


async def test_a_delivery_to_many_is_in_the_journal_after_its_last_step():
    journal = Journal(JournalBudget(1_000_000))
    hub = Hub(journal=journal)
    subscribed(hub, [Reader(room=3 if number % 100 == 0 else 1_000) for number in range(MANY)])
    texts = [b"%d" % number for number in range(7)]

    for text in texts:
        hub.deliver(TOPIC, text)
    assert 0 == len(journal)
    await settle()

    found = journal.since(0, 1_000)
    assert texts == [each.response for each in found]
    assert {MANY} == {each.delivered + each.dropped for each in found}
    assert (30, 10) == (found[-1].dropped, len(found[-1].recipients.split("\n")))
