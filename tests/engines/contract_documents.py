"""The contract of documents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from emulator.core.keys import NEVER, Key
from emulator.storage.engine import Engine
from engines.shorthand import END, NOW, ODD, keep, key, purged, read, write

ONE, TWO, THREE = key("one"), key("two"), key("three")


class DocumentsContract:
    async def test_a_document_stores_any_bytes(self, engine: Engine) -> None:
        for value in (b"", b"\x00", b"\xff\xfe", "🎲".encode(), bytes(range(256)) * 100):
            await write(engine, value)

            assert value == await read(engine)

    async def test_a_peek_follows_every_change(self, engine: Engine) -> None:
        seen = [await engine.documents.peek(key(), now=NOW)]
        for change in (write(engine, b"1"), write(engine, b"2"), engine.documents.drop([key()], now=NOW)):
            await change
            seen.append(await engine.documents.peek(key(), now=NOW))
        for remove in (lambda: purged(engine, now=END), engine.reset):
            await write(engine, b"3", expires_at=END)
            seen.append(await engine.documents.peek(key(), now=NOW))
            await remove()
            seen.append(await engine.documents.peek(key(), now=NOW))

        assert seen == [None, b"1", b"2", None, b"3", None, b"3", None]

    async def test_many_documents_are_peeked_at_once(self, engine: Engine) -> None:
        names = [str(number) for number in range(600)]
        await asyncio.gather(*(write(engine, name.encode(), key(name)) for name in names[::2]))

        peeked = await asyncio.gather(*(engine.documents.peek(key(name), now=NOW) for name in names))

        assert peeked == [None if number % 2 else str(number).encode() for number in range(600)]

    async def test_a_peek_during_writes_returns_one_of_their_states(self, engine: Engine) -> None:
        await write(engine, b"before")

        results = await asyncio.gather(
            write(engine, b"after"), *(engine.documents.peek(key(), now=NOW) for _ in range(5))
        )

        assert {b"before", b"after"} >= {*results[1:]}
        assert await engine.documents.peek(key(), now=NOW) == b"after"

    async def test_an_update_keeps_the_documents_it_does_not_return(self, engine: Engine) -> None:
        await write(engine, b"1", ONE, expires_at=NOW + 5)
        await engine.documents.update([ONE, TWO], lambda _: {TWO: b"2"}, now=NOW, expires_at=END)

        assert await engine.documents.read([ONE, TWO], now=NOW + 4) == {ONE: b"1", TWO: b"2"}
        assert await engine.documents.read([ONE, TWO], now=NOW + 5) == {TWO: b"2"}

    async def test_a_change_gets_only_live_documents(self, engine: Engine) -> None:
        await write(engine, b"1", ONE, expires_at=NOW + 1)
        await write(engine, b"2", TWO, expires_at=NOW + 2)
        seen: list[Mapping[Key, bytes]] = []

        await engine.documents.update(
            [ONE, TWO, THREE], lambda live: seen.append(dict(live)) or {}, now=NOW + 1, expires_at=END
        )

        assert seen[-1] == {TWO: b"2"}

    async def test_a_change_that_returns_nothing_writes_nothing(self, engine: Engine) -> None:
        await write(engine, b"1")

        assert await engine.documents.update([key()], lambda _: {}, now=NOW, expires_at=NEVER) == {}
        assert await read(engine, now=END) is None

    async def test_a_change_that_raises_writes_nothing(self, engine: Engine) -> None:
        await write(engine, b"1")

        with pytest.raises(LookupError, match="not this way"):
            await engine.documents.update([key()], _raising, now=NOW, expires_at=NEVER)

        assert await read(engine) == b"1"
        assert await read(engine, now=END) is None

    async def test_a_change_that_raises_does_not_affect_concurrent_operations(self, engine: Engine) -> None:
        results = await asyncio.gather(
            write(engine, b"1", ONE),
            engine.documents.update([TWO], _raising, now=NOW, expires_at=END),
            write(engine, b"3", THREE),
            return_exceptions=True,
        )

        assert [None, LookupError, None] == [one and type(one) for one in results]
        assert await engine.documents.read([ONE, TWO, THREE], now=NOW) == {ONE: b"1", THREE: b"3"}

    async def test_a_change_may_not_write_other_keys(self, engine: Engine) -> None:
        with pytest.raises(ValueError, match="keys"):
            await engine.documents.update([ONE], lambda _: {ONE: b"1", TWO: b"2"}, now=NOW, expires_at=END)

        assert await engine.documents.read([ONE, TWO], now=NOW) == {}

    async def test_concurrent_updates_of_one_document_all_count(self, engine: Engine) -> None:
        def more(live: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {ONE: b"%d" % (int(live.get(ONE, b"0")) + 1)}

        await asyncio.gather(*(engine.documents.update([ONE], more, now=NOW, expires_at=END) for _ in range(100)))

        assert await read(engine, ONE) == b"100"

    async def test_an_update_of_several_documents_is_atomic(self, engine: Engine) -> None:
        both = [ONE, TWO]

        def move(live: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {ONE: b"%d" % (int(live[ONE]) - 1), TWO: b"%d" % (int(live[TWO]) + 1)}

        async def sum_once() -> int:
            return sum(int(value) for value in (await engine.documents.read(both, now=NOW)).values())

        await engine.documents.update(both, lambda _: {ONE: b"100", TWO: b"0"}, now=NOW, expires_at=END)
        moves = [engine.documents.update(both, move, now=NOW, expires_at=END) for _ in range(30)]
        sums = [sum_once() for _ in range(30)]

        results = await asyncio.gather(*(each for pair in zip(moves, sums, strict=True) for each in pair))

        assert {100} == set(results[1::2])
        assert await engine.documents.read(both, now=NOW) == {ONE: b"70", TWO: b"30"}

    async def test_a_document_is_dropped_only_if_it_has_the_value(self, engine: Engine) -> None:
        await write(engine, b"1", ONE)
        await engine.documents.drop_equal(TWO, b"1", now=NOW)

        await engine.documents.drop_equal(ONE, b"2", now=NOW)
        kept = await engine.documents.peek(ONE, now=NOW)
        await engine.documents.drop_equal(ONE, b"1", now=NOW)

        assert (b"1", None) == (kept, await engine.documents.peek(ONE, now=NOW))
        assert {} == await engine.documents.read([ONE, TWO], now=NOW)

    async def test_a_drop_returns_how_many_documents_were_alive(self, engine: Engine) -> None:
        await write(engine, b"1", ONE, expires_at=NOW + 1)
        await write(engine, b"2", TWO, expires_at=NOW + 2)

        assert await engine.documents.drop([ONE, TWO, THREE], now=NOW + 1) == 1
        assert await engine.documents.drop([ONE, TWO, THREE], now=NOW + 1) == 0
        assert await engine.documents.read([ONE, TWO], now=NOW) == {}

    async def test_keys_are_equal_only_if_all_parts_are(self, engine: Engine) -> None:
        base = Key("a", "b", "c", "d", "e")
        keys = [base, *(base._replace(**{part: "x"}) for part in Key._fields)]
        keys += [Key("ab", "", "c", "d", "e"), Key("a", "bc", "", "d", "e"), Key("a", "b", "cd", "", "e")]
        keys += [Key("b", "a", "c", "d", "e"), Key("a", "b", "c", "e", "d"), Key("a", "b", "c", "d")]
        for number, each in enumerate(keys):
            await write(engine, b"%d" % number, each)

        assert {each: b"%d" % number for number, each in enumerate(keys)} == await engine.documents.read(keys, now=NOW)

    async def test_unusual_texts_in_keys_stay_distinct(self, engine: Engine) -> None:
        keys = [Key(*parts) for odd in ODD for parts in ((odd, "o", "n"), ("s", odd, "n"), ("s", "o", odd, odd, odd))]
        for number, each in enumerate(keys):
            await write(engine, b"%d" % number, each)

        assert {each: b"%d" % number for number, each in enumerate(keys)} == await engine.documents.read(keys, now=NOW)

    async def test_users_come_in_code_point_order_after_the_given_one(self, engine: Engine) -> None:
        names = ["a", "b", "B", "ä", "\uffee", "🎲"]
        for name in names:
            await write(engine, b"1", key(user=name))

        assert sorted(names) == await engine.documents.users(key(), after="", limit=10, now=NOW)
        assert await engine.documents.users(key(), after="B", limit=2, now=NOW) == ["a", "b"]
        assert await engine.documents.users(key(), after="🎲", limit=2, now=NOW) == []

    async def test_users_are_those_of_live_documents_with_the_same_other_parts(self, engine: Engine) -> None:
        await write(engine, b"1", key(user="here"))
        await write(engine, b"1", key(user="ending"), expires_at=NOW + 1)
        for other in (key("two", user="x"), key(channel="else", user="x"), key(owner="else", user="x")):
            await write(engine, b"1", other)

        assert await engine.documents.users(key(), after="", limit=10, now=NOW) == ["ending", "here"]
        assert await engine.documents.users(key(), after="", limit=10, now=NOW + 1) == ["here"]

    @pytest.mark.parametrize("replace", [True, False])
    async def test_keeping_replaces_a_document_only_if_asked(self, engine: Engine, replace: bool) -> None:
        before = await keep(engine, {ONE: b"1"}, replace=replace)
        found = await keep(engine, {ONE: b"2", TWO: b"2"}, replace=replace)

        assert ({}, {} if replace else {ONE: b"1"}) == (before, found)
        stored = await engine.documents.read([ONE, TWO], now=NEVER - 1)
        assert stored == {ONE: b"2" if replace else b"1", TWO: b"2"}

    @pytest.mark.parametrize("replace", [True, False])
    async def test_keeping_extends_the_life_of_a_document(self, engine: Engine, replace: bool) -> None:
        for end in (END, END + 2, END + 1):
            await keep(engine, {ONE: b"1"}, replace=replace, expires_at=end)

        peeked = [await engine.documents.peek(ONE, now=END + at) for at in (1, 2)]
        assert [b"1", None] == peeked
        assert [b"1", None] == [await read(engine, ONE, now=END + at) for at in (1, 2)]

    @pytest.mark.parametrize("replace", [True, False])
    async def test_an_expired_document_is_kept_as_a_new_one(self, engine: Engine, replace: bool) -> None:
        user = key("kept", user="U1")
        await keep(engine, {user: b"1"}, replace=replace, expires_at=END)
        found = await keep(engine, {user: b"2"}, replace=replace, now=END, expires_at=END + 2)

        assert {} == found
        assert b"2" == await engine.documents.peek(user, now=END + 1)
        assert ["U1"] == await engine.documents.users(key("kept"), after="", limit=9, now=END + 1)
        await purged(engine, now=END + 2)
        assert [] == await engine.documents.users(key("kept"), after="", limit=9, now=END)

    async def test_a_kept_document_outlives_a_clock_that_was_set_back(self, engine: Engine) -> None:
        await keep(engine, {ONE: b"1"}, replace=True, now=NOW + 50, expires_at=END + 50)
        await keep(engine, {ONE: b"1"}, replace=True, now=NOW, expires_at=END)

        assert {ONE: b"1"} == await keep(engine, {ONE: b""}, replace=False, now=END + 1, expires_at=END + 2)
        assert b"1" == await engine.documents.peek(ONE, now=END + 49)

    async def test_documents_kept_at_once_have_each_their_own_expiry(self, engine: Engine) -> None:
        await asyncio.gather(
            keep(engine, {ONE: b"1"}, replace=True, expires_at=END),
            keep(engine, {TWO: b"2"}, replace=False, expires_at=END + 1),
            keep(engine, {THREE: b"3"}, replace=True, expires_at=END),
        )

        assert {TWO: b"2"} == await engine.documents.read([ONE, TWO, THREE], now=END)

    async def test_of_two_that_keep_a_document_at_once_one_finds_the_others(self, engine: Engine) -> None:
        found = await asyncio.gather(
            *(keep(engine, {key(f"{number % 300}"): b"%d" % number}, replace=False) for number in range(600))
        )

        assert [{}] * 300 == found[:300]
        assert [{key(f"{number}"): b"%d" % number} for number in range(300)] == found[300:]

    async def test_kept_documents_are_seen_by_every_operation(self, engine: Engine) -> None:
        held, user = key("held"), key("held", user="U1")
        seen = [await engine.documents.peek(held, now=NOW)]
        await asyncio.gather(
            keep(engine, {held: b"1"}, replace=False),
            keep(engine, {held: b"2", user: b""}, replace=True),
            engine.documents.update([held], lambda found: {held: found[held] + b"3"}, now=NOW, expires_at=NEVER),
        )
        seen += [await engine.documents.peek(held, now=NOW), await read(engine, held)]

        assert seen == [None, b"23", b"23"]
        assert await engine.documents.users(key("held"), after="", limit=9, now=NOW) == ["U1"]
        assert await engine.documents.drop([held, user], now=NOW) == 2
        assert await engine.documents.peek(held, now=NOW) is None


def _raising(_: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
    raise LookupError("not this way")
