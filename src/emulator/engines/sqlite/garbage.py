"""What is out of reach and still has rows: of dropped, replaced and ended things, and of namespaces before a reset."""

from __future__ import annotations

from emulator.engines.sqlite.group_commit import GroupCommit

STEP = 250
"""Rows deleted between two returns to the event loop."""
_CHUNKS = 40
"""Those of lists are long."""
_WALKED = 500
"""Names that are looked at between two returns; most of them may have to stay."""

# Found first and deleted by their keys: as one statement, SQLite would walk all of a ballot in every step.
_OF = {
    "dead": (
        (f"SELECT number FROM marks WHERE ballot = ? LIMIT {STEP}", "DELETE FROM marks WHERE number = ?"),
        (
            f"SELECT ballot, choice FROM tallies WHERE ballot = ? LIMIT {STEP}",
            "DELETE FROM tallies WHERE ballot = ? AND choice = ?",
        ),
    ),
    "dead_lists": ((f"SELECT id FROM chunks WHERE list = ? LIMIT {_CHUNKS}", "DELETE FROM chunks WHERE id = ?"),),
    "dead_pools": (
        (
            f"SELECT pool, ordinal FROM handed WHERE pool = ? LIMIT {STEP}",
            "DELETE FROM handed WHERE pool = ? AND ordinal = ?",
        ),
    ),
}
_WALK = f"""
    SELECT member, roster, NOT EXISTS (SELECT 1 FROM rosters WHERE id = members.roster) FROM members
    WHERE root = ? AND (member, roster) > (?, ?) ORDER BY member, roster LIMIT {_WALKED}
"""
_STRIKE = "DELETE FROM members WHERE root = ? AND member = ? AND roster = ?"

_BURIED = (
    ("ballots", "id", "INSERT INTO dead VALUES (?)"),
    ("pools", "id", "INSERT INTO dead_pools VALUES (?)"),
    ("lists", "id", "INSERT INTO dead_lists VALUES (?)"),
    ("rosters", "root", "INSERT OR REPLACE INTO dead_rosters (root) VALUES (?)"),
)
"""What of a dead space has rows elsewhere, and how it is said that these have to go."""
_OF_SPACE = tuple(
    (f"SELECT rowid FROM {table} WHERE space = ? LIMIT {STEP}", f"DELETE FROM {table} WHERE rowid = ?")
    for table in ("fallen", "documents", "items", "logs")
)


class Garbage:
    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit

    async def clear(self) -> None:
        # Each write waits for its commit, and so returns to the event loop.
        while await self._group_commit.write(self._cleared):
            pass

    def _cleared(self) -> bool:
        """Delete some rows; False when there were none."""
        connection = self._group_commit.connection
        for dead, parts in _OF.items():
            if row := connection.execute(f"SELECT rowid FROM {dead} LIMIT 1").fetchone():
                if not any(self._deleted(*each, row) for each in parts):
                    connection.execute(f"DELETE FROM {dead} WHERE rowid = ?", row)
                return True
        if walk := connection.execute("SELECT root, member, roster FROM dead_rosters LIMIT 1").fetchone():
            self._walk(*walk)
            return True
        if space := connection.execute("SELECT space FROM dead_spaces LIMIT 1").fetchone():
            buried = any(self._bury_some(*each, *space) for each in _BURIED)
            if not buried and not any(self._deleted(*each, space) for each in _OF_SPACE):
                connection.execute("DELETE FROM dead_spaces WHERE space = ?", space)
            return True
        return False

    def _deleted(self, question: str, deletion: str, of: tuple[int]) -> bool:
        rows = self._group_commit.connection.execute(question, of).fetchall()
        self._group_commit.connection.executemany(deletion, rows)
        return bool(rows)

    def _walk(self, root: int, member: str, roster: int) -> None:
        """Go through some more names and strike those whose roster is gone."""
        connection = self._group_commit.connection
        rows = connection.execute(_WALK, (root, member, roster)).fetchall()
        connection.executemany(_STRIKE, [(root, name, on) for name, on, is_gone in rows if is_gone])
        if len(rows) < _WALKED:
            connection.execute("DELETE FROM dead_rosters WHERE root = ?", (root,))
        else:
            connection.execute(
                "UPDATE dead_rosters SET (member, roster) = (?, ?) WHERE root = ?", (*rows[-1][:2], root)
            )

    def _bury_some(self, table: str, column: str, burial: str, space: int) -> bool:
        connection = self._group_commit.connection
        rows = connection.execute(f"SELECT id, {column} FROM {table} WHERE space = ? LIMIT {STEP}", (space,)).fetchall()
        connection.executemany(f"DELETE FROM {table} WHERE id = ?", [row[:1] for row in rows])
        connection.executemany(burial, [row[1:] for row in rows])
        return bool(rows)
