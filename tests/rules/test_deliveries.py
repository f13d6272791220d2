"""Delivery of messages to many subscribers, in steps that let other work run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from statistics import median
from time import thread_time

import pytest

from emulator.engines.shapes import Key
from emulator.realtime.hub import Hub

TOPIC = Key("event", "client", "news", "777")


class Reader:
    """A subscriber that counts the writes to all readers of a test."""

    def __init__(self, log: list[int]) -> None:
        self.texts: list[bytes] = []
        self.writes = 0
        self._log = log

    def write(self, frames: bytes, count: int = 1) -> None:
        self.writes += 1
        self._log[-1] += 1
        while frames:
            longer = {126: 2, 127: 8}.get(frames[1], 0)
            head = 2 + longer
            size = int.from_bytes(frames[2:head], "big") if longer else frames[1]
            self.texts.append(frames[head : head + size])
            frames = frames[head + size :]


class Broken(Reader):
    """A subscriber that no write reaches."""

    label = "socket 7 (game, broadcaster 777)"

    def write(self, frames: bytes, count: int = 1) -> None:
        raise RuntimeError("the connection is in a state that was not foreseen")


async def deliveries(
    readers: int, messages: Iterable[bytes], *, at_once: bool = True, other_work: float = 0
) -> tuple[list[Reader], list[int], float]:
    """Deliver messages, at once or one per pass of the event loop, which has `other_work` of some seconds in each.

    Returns the readers, the writes that each pass made, and the mean of the writes to a reader.
    """
    hub, log = Hub(), [0]
    subscribers = [Reader(log) for _ in range(readers)]
    for each in subscribers:
        hub.subscribe(TOPIC, each)
    count = 0
    for message in messages:
        hub.deliver(TOPIC, message)
        count += 1
        if not at_once:
            log.append(0)
            await asyncio.sleep(0)
    for _ in range(1_000):
        if all(len(each.texts) == count for each in subscribers):
            break
        log.append(0)
        started = thread_time()
        while thread_time() - started < other_work:
            pass
        await asyncio.sleep(0)
    return subscribers, log, sum(each.writes for each in subscribers) / readers


def test_a_message_to_few_subscribers_is_delivered_at_once():
    _, log, _ = asyncio.run(deliveries(500, [b"a"]))

    assert [500] == log


def test_messages_to_many_subscribers_are_delivered_in_steps_and_in_order():
    readers, log, _ = asyncio.run(deliveries(5_000, [b"a", b"b", b"c"]))

    assert {(b"a", b"b", b"c")} == {tuple(each.texts) for each in readers}
    assert max(log) <= 512


def test_steps_are_short_in_an_idle_loop_and_longer_in_a_busy_one():
    _, idle, _ = asyncio.run(deliveries(3_000, [b"a"]))
    _, busy, _ = asyncio.run(deliveries(3_000, [b"a"], other_work=0.03))

    assert median(idle) <= 70
    assert 256 <= max(busy) <= 512


def test_a_burst_to_many_subscribers_is_one_write_to_each():
    readers, _, writes = asyncio.run(deliveries(5_000, [b"%d" % number for number in range(20)]))

    assert {tuple(b"%d" % number for number in range(20))} == {tuple(each.texts) for each in readers}
    assert writes == 1


def test_messages_that_arrive_during_a_delivery_join_it_in_order():
    messages = [b"%d" % number for number in range(30)]
    readers, _, writes = asyncio.run(deliveries(5_003, messages, at_once=False))

    assert {tuple(messages)} == {tuple(each.texts) for each in readers}
    assert writes < 6


def test_a_write_joins_at_most_64_kib():
    readers, _, writes = asyncio.run(deliveries(1_000, [b"x" * 30 * 1024] * 4))

    assert {4} == {len(each.texts) for each in readers}
    assert writes == 2


def test_messages_on_two_topics_arrive_in_order_at_their_common_subscribers():
    async def texts() -> list[bytes]:
        hub, other = Hub(), TOPIC._replace(name="sport")
        both = Reader([0])
        for topic in (TOPIC, other):
            for _ in range(600):
                hub.subscribe(topic, Reader([0]))
            hub.subscribe(topic, both)
        for number in range(9):
            hub.deliver((TOPIC, other)[number // 2 % 2], b"%d" % number)
        for _ in range(50):
            await asyncio.sleep(0)
        return both.texts

    assert [b"%d" % number for number in range(9)] == asyncio.run(texts())


def test_a_new_subscriber_receives_only_the_messages_after_it():
    async def texts() -> list[bytes]:
        hub, late = Hub(), Reader([0])
        for _ in range(600):
            hub.subscribe(TOPIC, Reader([0]))
        hub.deliver(TOPIC, b"before")
        hub.subscribe(TOPIC, late)
        hub.deliver(TOPIC, b"after")
        for _ in range(50):
            await asyncio.sleep(0)
        return late.texts

    assert asyncio.run(texts()) == [b"after"]


def test_a_step_is_shorter_if_the_message_is_long():
    _, log, _ = asyncio.run(deliveries(1_000, [b"x" * 64 * 1024]))

    assert max(log) <= 110


@pytest.mark.parametrize("readers", [10, 1_000])
def test_a_reader_whose_write_fails_keeps_no_message_from_the_others(readers: int):
    async def texts() -> set[tuple[bytes, ...]]:
        hub, others = Hub(), [Reader([0]) for _ in range(readers)]
        hub.subscribe(TOPIC, Broken([0]))
        for each in others:
            hub.subscribe(TOPIC, each)
        for text in (b"first", b"second"):
            hub.deliver(TOPIC, text)
            for _ in range(50):
                await asyncio.sleep(0)
        return {tuple(each.texts) for each in others}

    assert {(b"first", b"second")} == asyncio.run(texts())


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
