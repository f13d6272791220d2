"""The contract of the relay: who gets a message, and in which order."""

from __future__ import annotations

import asyncio

import pytest

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.engine import Engine
from engines.shorthand import ODD, Listener, Open, key

BODIES = (b"", b"\x00", b"\xff\xfe", b'{"a":1}', "🎲".encode(), bytes(range(256)) * 300)
LAST = b"the last message"


class RelayContract:
    async def test_publish_delivers_to_all_listeners_of_its_engine(self, engine: Engine) -> None:
        one, two = Listener(engine), Listener(engine)

        await engine.relay.publish(key(), b"1")

        assert [(key(), b"1")] == one.received == two.received

    async def test_a_message_never_reaches_another_namespace(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other, open(namespace="other") as peer:
            mine, theirs, peers = Listener(engine), Listener(other), Listener(peer)

            await engine.relay.publish(key(), b"mine")
            await other.relay.publish(key(), b"theirs")
            await (theirs if other.relay.is_local else peers).has(1)  # published after mine

            assert ([(key(), b"mine")], [(key(), b"theirs")]) == (mine.received, theirs.received)
            assert (key(), b"mine") not in peers.received

    async def test_later_listeners_do_not_get_a_message(self, engine: Engine, open: Open) -> None:
        await engine.relay.publish(key(), b"early")

        late = Listener(engine)
        async with open(namespace="main") as later:
            latest = Listener(later)
            await later.relay.publish(key(), LAST)
            await (latest if engine.relay.is_local else late).has(1)

        assert [(key(), LAST)] == latest.received
        assert late.received == ([] if engine.relay.is_local else [(key(), LAST)])

    async def test_bodies_and_keys_arrive_unchanged(self, engine: Engine, open: Open) -> None:
        async with open(namespace="main") as second:
            here, there = Listener(engine), Listener(second)
            sent = [(key(), body) for body in BODIES]
            for odd in ODD:
                parts = ["a", "b", "c", "d", "e"]
                sent += [(Key(*parts[:channel], odd, *parts[channel + 1 :]), b"1") for channel in range(5)]

            for message in sent:
                await engine.relay.publish(*message)

            assert sent == here.received
            if not engine.relay.is_local:
                await there.has(len(sent))
                assert sent == there.received
                assert {Key} == {type(topic) for topic, _ in there.received}
                assert {bytes} == {type(body) for _, body in there.received}

    async def test_messages_of_each_concurrent_publisher_arrive_in_order(self, engine: Engine, open: Open) -> None:
        async with open(namespace="main") as second, open(namespace="main") as third:
            engines = (engine, second, third)
            listeners = [Listener(each) for each in engines]

            async def publish(number: int) -> None:
                for count in range(700):
                    await engines[number].relay.publish(key(str(number)), b"%d" % count)

            await asyncio.gather(*map(publish, range(3)))

            in_order = [b"%d" % count for count in range(700)]
            for number, listener in enumerate(listeners):
                await listener.has(700 if engine.relay.is_local else 2_100)
                for publisher in {number} if engine.relay.is_local else range(3):
                    assert in_order == [body for topic, body in listener.received if topic == key(str(publisher))]

    async def test_a_reset_loses_no_message(self, engine: Engine, open: Open) -> None:
        async with open(namespace="main") as second:
            here, there = Listener(engine), Listener(second)

            await engine.relay.publish(key(), b"before")
            await engine.reset()
            await engine.relay.publish(key(), b"after")

            sent = [(key(), b"before"), (key(), b"after")]
            assert sent == here.received
            if not engine.relay.is_local:
                await there.has(2)
                assert sent == there.received
                await second.reset()
                await engine.relay.publish(key(), LAST)
                await there.has(3)
                assert [*sent, (key(), LAST)] == there.received == here.received

    async def test_a_closed_engine_neither_receives_nor_publishes(self, engine: Engine, open: Open) -> None:
        closed, staying = open(namespace="main"), Listener(engine)
        gone = Listener(closed)
        for _ in range(2):
            with pytest.raises(EngineError):
                await closed.relay.publish(key(), b"from outside")
            async with closed:
                pass
        await engine.relay.publish(key(), LAST)
        await staying.has(1)

        assert gone.received == []
        assert [(key(), LAST)] == staying.received

    async def test_an_invalid_text_does_not_affect_other_messages(self, engine: Engine) -> None:
        """A lone surrogate cannot be encoded; an engine that encodes nothing may accept it."""
        listener = Listener(engine)

        done = await asyncio.gather(
            engine.relay.publish(key(), b"1"),
            engine.relay.publish(key("\ud800"), b"2"),
            engine.relay.publish(key(), b"3"),
            return_exceptions=True,
        )

        assert (done[0], done[2]) == (None, None)
        assert [b"1", b"3"] == [body for topic, body in listener.received if topic == key()]
