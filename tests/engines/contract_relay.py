"""What a relay promises: whom a message reaches, in which order, and whom it never reaches."""

from __future__ import annotations

import asyncio

import pytest

from emulator.engines.base import Key
from emulator.engines.engine import Engine
from emulator.errors import EngineError
from engines.shorthand import ODD, Listener, Open, key

BODIES = (b"", b"\x00", b"\xff\xfe", b'{"a":1}', "🎲".encode(), bytes(range(256)) * 300)
LAST = b"the last message"


class RelayContract:
    async def test_a_message_has_reached_every_listener_of_the_engine_when_publish_returns(
        self, engine: Engine
    ) -> None:
        one, two = Listener(engine), Listener(engine)

        await engine.relay.publish(key(), b"1")

        assert [(key(), b"1")] == one.heard == two.heard

    async def test_a_message_reaches_the_other_engines_of_the_namespace_once_and_in_order(
        self, engine: Engine, open: Open
    ) -> None:
        """An engine that says it is alone keeps its messages to itself."""
        async with open(namespace="main") as second, open(namespace="main") as third:
            listeners = [Listener(each) for each in (engine, second, third)]
            said = [(key(str(number)), b"%d" % number) for number in range(5)]

            for message in said:
                await engine.relay.publish(*message)

            if engine.relay.is_local:
                assert [len(said), 0, 0] == [len(each.heard) for each in listeners]
                return
            for listener in listeners:
                await listener.has(len(said))
            await second.relay.publish(key(), LAST)
            for listener in listeners:
                await listener.has(len(said) + 1)
                assert [*said, (key(), LAST)] == listener.heard

    async def test_all_engines_on_the_same_data_are_alone_or_none_is(self, engine: Engine, open: Open) -> None:
        async with open(namespace="main") as second:
            assert engine.relay.is_local == second.relay.is_local

    async def test_a_message_never_reaches_another_namespace(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other, open(namespace="other") as peer:
            mine, theirs, peers = Listener(engine), Listener(other), Listener(peer)

            await engine.relay.publish(key(), b"mine")
            await other.relay.publish(key(), b"theirs")
            await (theirs if other.relay.is_local else peers).has(1)  # which was said later than mine

            assert ([(key(), b"mine")], [(key(), b"theirs")]) == (mine.heard, theirs.heard)
            assert (key(), b"mine") not in peers.heard

    async def test_a_message_is_not_kept_for_those_who_listen_later(self, engine: Engine, open: Open) -> None:
        await engine.relay.publish(key(), b"early")

        late = Listener(engine)
        async with open(namespace="main") as later:
            latest = Listener(later)
            await later.relay.publish(key(), LAST)
            await (latest if engine.relay.is_local else late).has(1)

        assert [(key(), LAST)] == latest.heard
        assert late.heard == ([] if engine.relay.is_local else [(key(), LAST)])

    async def test_any_body_and_every_part_of_a_key_arrive_as_they_were_sent(self, engine: Engine, open: Open) -> None:
        async with open(namespace="main") as second:
            here, there = Listener(engine), Listener(second)
            said = [(key(), body) for body in BODIES]
            for odd in ODD:
                parts = ["a", "b", "c", "d", "e"]
                said += [(Key(*parts[:channel], odd, *parts[channel + 1 :]), b"1") for channel in range(5)]

            for message in said:
                await engine.relay.publish(*message)

            assert said == here.heard
            if not engine.relay.is_local:
                await there.has(len(said))
                assert said == there.heard
                assert {Key} == {type(topic) for topic, _ in there.heard}
                assert {bytes} == {type(body) for _, body in there.heard}

    async def test_a_burst_of_one_publisher_arrives_whole_and_in_order(self, engine: Engine, open: Open) -> None:
        async with open(namespace="main") as second:
            here, there = Listener(engine), Listener(second)
            said = [(key(), b"%d" % number) for number in range(2000)]

            await asyncio.gather(*(engine.relay.publish(*message) for message in said))

            assert said == here.heard
            if not engine.relay.is_local:
                await there.has(len(said))
                assert said == there.heard

    async def test_messages_of_several_publishers_at_once_all_arrive_each_ones_in_order(
        self, engine: Engine, open: Open
    ) -> None:
        async with open(namespace="main") as second, open(namespace="main") as third:
            engines = (engine, second, third)
            listeners = [Listener(each) for each in engines]

            async def publish(number: int) -> None:
                for count in range(100):
                    await engines[number].relay.publish(key(str(number)), b"%d" % count)

            await asyncio.gather(*map(publish, range(3)))

            in_order = [b"%d" % count for count in range(100)]
            for number, listener in enumerate(listeners):
                await listener.has(100 if engine.relay.is_local else 300)
                for publisher in {number} if engine.relay.is_local else range(3):
                    assert in_order == [body for topic, body in listener.heard if topic == key(str(publisher))]

    async def test_a_reset_takes_no_message_away(self, engine: Engine, open: Open) -> None:
        async with open(namespace="main") as second:
            here, there = Listener(engine), Listener(second)

            await engine.relay.publish(key(), b"before")
            await engine.reset()
            await engine.relay.publish(key(), b"after")

            said = [(key(), b"before"), (key(), b"after")]
            assert said == here.heard
            if not engine.relay.is_local:
                await there.has(2)
                assert said == there.heard
                await second.reset()
                await engine.relay.publish(key(), LAST)
                await there.has(3)
                assert [*said, (key(), LAST)] == there.heard == here.heard

    async def test_a_reset_of_another_namespace_changes_nothing(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other, open(namespace="main") as second:
            here, there = Listener(engine), Listener(second)
            await other.reset()

            await engine.relay.publish(key(), b"1")

            await (here if engine.relay.is_local else there).has(1)

    async def test_a_closed_engine_neither_hears_nor_tells(self, engine: Engine, open: Open) -> None:
        closed, staying = open(namespace="main"), Listener(engine)
        gone = Listener(closed)
        for _ in range(2):
            with pytest.raises(EngineError):
                await closed.relay.publish(key(), b"from outside")
            async with closed:
                pass
        await engine.relay.publish(key(), LAST)
        await staying.has(1)

        assert gone.heard == []
        assert [(key(), LAST)] == staying.heard

    async def test_an_engine_that_is_opened_again_hears_again(self, engine: Engine, open: Open) -> None:
        again = open(namespace="main")
        listener = Listener(again)
        for number in range(2):
            async with again:
                await again.relay.publish(key(), b"%d" % number)

            assert [(key(), b"%d" % count) for count in range(number + 1)] == listener.heard

    async def test_a_text_that_cannot_be_kept_harms_no_other_message(self, engine: Engine) -> None:
        """A lone surrogate is no text that could be kept; an engine that keeps none may take it."""
        listener = Listener(engine)

        done = await asyncio.gather(
            engine.relay.publish(key(), b"1"),
            engine.relay.publish(key("\ud800"), b"2"),
            engine.relay.publish(key(), b"3"),
            return_exceptions=True,
        )

        assert (done[0], done[2]) == (None, None)
        assert [b"1", b"3"] == [body for topic, body in listener.heard if topic == key()]
