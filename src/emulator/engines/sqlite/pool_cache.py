"""Pools from a supply where there was none to their drop or end: what is known of each as a whole.

The pools in use are held in memory between turns, with the items that come next, and how far each has come is written
once per turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Key
from emulator.engines.sqlite.group_commit import Turns
from emulator.engines.sqlite.lists import Lists
from emulator.engines.sqlite.namespace_ids import KEY, KEY_COLUMNS, Space

MOST_HELD = 256

_LOAD = f"SELECT id, root, expires_at, list, position, handed FROM pools WHERE {KEY} AND closed = 0"
_ROOT = f"SELECT root FROM pools WHERE {KEY} LIMIT 1"
_CREATE = """
    INSERT INTO pools (id, root, space, shelf, owner, name, holder, place, expires_at, list, note)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SUPPLY = "UPDATE pools SET list = ?, position = ?, note = ?, expires_at = ? WHERE id = ?"
_MOVE = "UPDATE pools SET position = ?, handed = ? WHERE id = ?"
_CLOSE = "UPDATE pools SET closed = 1, list = 0 WHERE id = ?"
_KEY_OF = f"SELECT {KEY_COLUMNS} FROM pools WHERE id = ?"


class Generation:
    __slots__ = ("chunk", "expires_at", "first", "handed", "id", "position", "root", "source")

    def __init__(self, id: int, root: int, expires_at: int, source: int, position: int = 0, handed: int = 0) -> None:
        self.id = id
        self.root = root
        self.expires_at = expires_at
        self.source = source
        """The number of its list."""
        self.position = position
        """The place of the next item in the list."""
        self.handed = handed
        """How many items it has handed out."""
        self.first = 0
        self.chunk: Sequence[str] = ()
        """Some items of the list; the first of them stands at `first`."""


class Generations:
    def __init__(self, turns: Turns, space: Space, lists: Lists) -> None:
        self._turns = turns
        self._space = space
        self._lists = lists
        self._held: dict[Key, Generation] = {}
        self._changed: set[Generation] = set()

    def find(self, key: Key) -> Generation | None:
        """The pool, dead or alive, unless it was dropped; only inside a write, which is what lets go of it again."""
        return self._held.get(key) or self._loaded(key)

    def alive(self, key: Key, now: int) -> Generation | None:
        found = self.find(key)
        return found if found is not None and now < found.expires_at else None

    def fresh(self, key: Key, source: int, note: bytes, expires_at: int) -> Generation:
        """A new pool under a key where there is none; what dropped ones handed out is remembered beside it."""
        place = self._space.of(key)
        id = self._space.number()
        row = self._turns.connection.execute(_ROOT, place).fetchone()
        (root,) = row or (id,)
        self._turns.connection.execute(_CREATE, (id, root, *place, expires_at, source, note))
        self._held[key] = generation = Generation(id, root, expires_at, source)
        return generation

    def supply(self, pool: Generation, source: int, note: bytes, expires_at: int) -> None:
        """Have the pool hand out from this list; from the one it has, it goes on where it is."""
        if source != pool.source:
            self._lists.bury(pool.source)
            pool.source, pool.position, pool.first, pool.chunk = source, 0, 0, ()
        pool.expires_at = expires_at
        self._turns.connection.execute(_SUPPLY, (source, pool.position, note, expires_at, pool.id))

    def item(self, pool: Generation) -> str | None:
        """The next item of its list."""
        at = pool.position - pool.first
        if at >= len(pool.chunk):
            pool.first, pool.chunk = self._lists.chunk(pool.source, pool.position)
            at = pool.position - pool.first
        return pool.chunk[at] if at < len(pool.chunk) else None

    def step(self, pool: Generation, *, handed: int) -> None:
        """Leave the next item behind."""
        pool.position += 1
        pool.handed += handed
        self._changed.add(pool)

    def close(self, key: Key, pool: Generation) -> None:
        """Have the pool hand out nothing more, and remember what it has handed out."""
        if pool.handed == 0:
            self.bury(key, pool.id, pool.source)
            return
        self._let_go(key)
        self._turns.connection.execute(_CLOSE, (pool.id,))
        self._lists.bury(pool.source)

    def end(self, key: Key, pool: Generation) -> None:
        """Take a pool away that is past its end."""
        self._space.fell(key, pool.expires_at)
        self.bury(key, pool.id, pool.source)

    def end_user(self, pool: int) -> None:
        """Take the pool with this number away, which is past its end, and with it its list."""
        key = Key(*self._turns.connection.execute(_KEY_OF, (pool,)).fetchone())
        found = self.find(key)
        assert found is not None
        self.end(key, found)

    def bury(self, key: Key, id: int, source: int) -> None:
        """Put a pool and its list out of reach, and leave their rows to `purge`; `source` is 0 for a dropped pool."""
        if source:
            self._let_go(key)
            self._lists.bury(source)
        self._turns.connection.execute("DELETE FROM pools WHERE id = ?", (id,))
        self._turns.connection.execute("INSERT INTO dead_pools VALUES (?)", (id,))

    def flush(self) -> None:
        if self._changed:
            moved = [(pool.position, pool.handed, pool.id) for pool in self._changed]
            self._turns.connection.executemany(_MOVE, moved)
            self._changed.clear()
        if len(self._held) > MOST_HELD:  # only now, as operations of the turn go on with what they found
            self._held.clear()

    def forget(self) -> None:
        self._held.clear()
        self._changed.clear()

    def _let_go(self, key: Key) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._changed.discard(held)

    def _loaded(self, key: Key) -> Generation | None:
        row = self._turns.connection.execute(_LOAD, self._space.of(key)).fetchone()
        if row is None:
            return None
        self._held[key] = generation = Generation(*row)
        return generation
