"""Delivery of messages to many subscribers, in steps that let other work run."""

from __future__ import annotations

import asyncio

from emulator.engines.base import Key
from emulator.realtime.hub import Hub

TOPIC = Key("event", "client", "news", "777")


class Reader:
    """A subscriber that counts what all readers of a test have received."""

    def __init__(self, log: list[int]) -> None:
        self.frames: list[bytes] = []
        self._log = log

    def write(self, frame: bytes) -> None:
        self.frames.append(frame[-1:])
        self._log[-1] += 1


async def deliveries(readers: int, messages: list[bytes]) -> tuple[list[Reader], list[int]]:
    """Deliver messages; return the readers, and how many writes each pass of the event loop made."""
    hub, log = Hub(), [0]
    subscribers = [Reader(log) for _ in range(readers)]
    for each in subscribers:
        hub.subscribe(TOPIC, each)
    for message in messages:
        hub.deliver(TOPIC, message)
    while sum(log) < readers * len(messages):
        log.append(0)
        await asyncio.sleep(0)
    return subscribers, log


def test_a_message_to_few_subscribers_is_delivered_at_once():
    _, log = asyncio.run(deliveries(500, [b"a"]))

    assert [500] == log


def test_messages_to_many_subscribers_are_delivered_in_steps_and_in_order():
    readers, log = asyncio.run(deliveries(5_000, [b"a", b"b", b"c"]))

    assert {(b"a", b"b", b"c")} == {tuple(each.frames) for each in readers}
    assert max(log) <= 512


def test_a_step_is_shorter_if_the_message_is_long():
    _, log = asyncio.run(deliveries(1_000, [b"x" * 64 * 1024]))

    assert max(log) <= 110


def test_publishers_wait_while_many_messages_wait():
    async def publish() -> bool:
        hub = Hub()
        for _ in range(600):
            hub.subscribe(TOPIC, Reader([0]))
        for _ in range(200):
            hub.deliver(TOPIC, b"a")
        waiting = asyncio.create_task(hub.wait_for_room())
        await asyncio.sleep(0)
        waited = not waiting.done()
        await waiting
        return waited

    assert asyncio.run(publish())
