"""Housekeeping: reports what fell due, and deletes what is out of reach, in steps of bounded length."""

from __future__ import annotations

from emulator.engines.base import Expired, Key
from emulator.engines.sqlite.heads import Heads
from emulator.engines.sqlite.space import KEY_COLUMNS, Space
from emulator.engines.sqlite.turns import Turns

STEP = 250
"""Rows deleted between two returns to the event loop."""

_FALLEN = f"SELECT rowid, {KEY_COLUMNS}, at FROM fallen WHERE space = ? AND at <= ? LIMIT {STEP}"
_DOCUMENTS = f"SELECT id, {KEY_COLUMNS}, expires_at FROM documents WHERE space = ? AND expires_at <= ? LIMIT {STEP}"
_BALLOTS = f"SELECT id, {KEY_COLUMNS}, expires_at FROM ballots WHERE space = ? AND expires_at <= ? LIMIT {STEP}"
_ITEMS = f"""
    SELECT number, log, expires_at FROM items WHERE space = ? AND expires_at <= ? ORDER BY expires_at LIMIT {STEP}
"""
_LOG = f"SELECT {KEY_COLUMNS} FROM logs WHERE id = ?"
_DROP_LOG = "DELETE FROM logs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE log = id)"

# Found first and deleted by their keys: as one statement, SQLite would walk the whole ballot in every step.
_OF_DEAD_BALLOT = (
    (f"SELECT number FROM marks WHERE ballot = ? LIMIT {STEP}", "DELETE FROM marks WHERE number = ?"),
    (
        f"SELECT ballot, choice FROM tallies WHERE ballot = ? LIMIT {STEP}",
        "DELETE FROM tallies WHERE ballot = ? AND choice = ?",
    ),
)
_OF_DEAD_SPACE = tuple(
    (f"SELECT rowid FROM {table} WHERE space = ? LIMIT {STEP}", f"DELETE FROM {table} WHERE rowid = ?")
    for table in ("fallen", "documents", "items", "logs")
)


class Purge:
    def __init__(self, turns: Turns, space: Space, heads: Heads) -> None:
        self._turns = turns
        self._space = space
        self._heads = heads

    async def __call__(self, now: int) -> list[Expired]:
        # Each write waits for its commit, and so returns to the event loop.
        expired: list[Expired] = []
        for step in (self._fallen, self._documents, self._ballots):
            while some := await self._turns.write(step, now):
                expired += some
        newest: dict[Key, int] = {}
        while ends := await self._turns.write(self._items, now):
            newest |= {key: max(at, newest.get(key, at)) for key, at in ends.items()}
        expired += [Expired(key, at) for key, at in newest.items()]
        return sorted(expired, key=lambda one: (one.at, one.key))

    async def tidy(self) -> None:
        while await self._turns.write(self._dead):
            pass

    def _fallen(self, now: int) -> list[Expired]:
        return self._taken(_FALLEN, "DELETE FROM fallen WHERE rowid = ?", now)

    def _documents(self, now: int) -> list[Expired]:
        return self._taken(_DOCUMENTS, "DELETE FROM documents WHERE id = ?", now)

    def _taken(self, question: str, deletion: str, now: int) -> list[Expired]:
        rows = self._turns.connection.execute(question, (self._space.id, now)).fetchall()
        self._turns.connection.executemany(deletion, [row[:1] for row in rows])
        return [Expired(Key(*row[1:6]), row[6]) for row in rows]

    def _ballots(self, now: int) -> list[Expired]:
        self._heads.flush()
        rows = self._turns.connection.execute(_BALLOTS, (self._space.id, now)).fetchall()
        for id, *key, _ in rows:
            self._heads.bury(id, Key(*key))
        return [Expired(Key(*row[1:6]), row[6]) for row in rows]

    def _items(self, now: int) -> dict[Key, int]:
        connection = self._turns.connection
        rows = connection.execute(_ITEMS, (self._space.id, now)).fetchall()
        newest = {log: end for _, log, end in rows}  # rows come by their ends
        keys = {log: Key(*connection.execute(_LOG, (log,)).fetchone()) for log in newest}
        connection.executemany("DELETE FROM items WHERE number = ?", [row[:1] for row in rows])
        connection.executemany(_DROP_LOG, [(log,) for log in newest])
        return {keys[log]: end for log, end in newest.items()}

    def _dead(self) -> bool:
        """Delete some rows that are out of reach; False when there were none."""
        connection = self._turns.connection
        if ballot := connection.execute("SELECT ballot FROM dead LIMIT 1").fetchone():
            if not any(self._deleted(*each, ballot) for each in _OF_DEAD_BALLOT):
                connection.execute("DELETE FROM dead WHERE ballot = ?", ballot)
            return True
        if space := connection.execute("SELECT space FROM dead_spaces LIMIT 1").fetchone():
            if not (self._bury_some(*space) or any(self._deleted(*each, space) for each in _OF_DEAD_SPACE)):
                connection.execute("DELETE FROM dead_spaces WHERE space = ?", space)
            return True
        return False

    def _deleted(self, question: str, deletion: str, of: tuple[int]) -> bool:
        rows = self._turns.connection.execute(question, of).fetchall()
        self._turns.connection.executemany(deletion, rows)
        return bool(rows)

    def _bury_some(self, space: int) -> bool:
        """Make some ballots of a dead space dead ballots."""
        connection = self._turns.connection
        rows = connection.execute(f"SELECT id FROM ballots WHERE space = ? LIMIT {STEP}", (space,)).fetchall()
        connection.executemany("DELETE FROM ballots WHERE id = ?", rows)
        connection.executemany("INSERT INTO dead VALUES (?)", rows)
        return bool(rows)
