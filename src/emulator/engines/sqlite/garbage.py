"""Deletes unreachable rows: those of removed ballots, pools, lists and rosters, and of namespaces before a reset."""

from __future__ import annotations

from emulator.engines.sqlite.group_commit import GroupCommit

STEP = 250
"""Rows deleted between two returns to the event loop."""
_CHUNK_STEP = 40
"""Fewer for chunks of lists, which are large."""
_SCAN_STEP = 500
"""Members that are scanned between two returns to the event loop; most may have to stay."""

# Select, then delete by primary key: as one statement, SQLite would scan all of a ballot in every step.
_ROWS_OF = {
    "dead": (
        (f"SELECT number FROM marks WHERE ballot = ? LIMIT {STEP}", "DELETE FROM marks WHERE number = ?"),
        (
            f"SELECT ballot, choice FROM tallies WHERE ballot = ? LIMIT {STEP}",
            "DELETE FROM tallies WHERE ballot = ? AND choice = ?",
        ),
    ),
    "dead_lists": ((f"SELECT id FROM chunks WHERE list = ? LIMIT {_CHUNK_STEP}", "DELETE FROM chunks WHERE id = ?"),),
    "dead_pools": (
        (
            f"SELECT pool, ordinal FROM handed WHERE pool = ? LIMIT {STEP}",
            "DELETE FROM handed WHERE pool = ? AND ordinal = ?",
        ),
    ),
}
_SCAN_MEMBERS = f"""
    SELECT member, roster, NOT EXISTS (SELECT 1 FROM rosters WHERE id = members.roster) FROM members
    WHERE root = ? AND (member, roster) > (?, ?) ORDER BY member, roster LIMIT {_SCAN_STEP}
"""
_DELETE_MEMBER = "DELETE FROM members WHERE root = ? AND member = ? AND roster = ?"

_TOMBSTONES = (
    ("ballots", "id", "INSERT INTO dead VALUES (?)"),
    ("pools", "id", "INSERT INTO dead_pools VALUES (?)"),
    ("lists", "id", "INSERT INTO dead_lists VALUES (?)"),
    ("rosters", "root", "INSERT OR REPLACE INTO dead_rosters (root) VALUES (?)"),
)
"""The tables whose rows own rows in other tables: by which id, and the statement that makes those garbage."""
_ROWS_OF_NAMESPACE = tuple(
    (f"SELECT rowid FROM {table} WHERE space = ? LIMIT {STEP}", f"DELETE FROM {table} WHERE rowid = ?")
    for table in ("fallen", "documents", "items", "logs")
)


class Garbage:
    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit

    async def collect(self) -> None:
        # Each write waits for its commit, and so returns to the event loop.
        while await self._group_commit.write(self._collect_some):
            pass

    def _collect_some(self) -> bool:
        """Delete some rows; return False if there were none."""
        connection = self._group_commit.connection
        for dead, statements in _ROWS_OF.items():
            if row := connection.execute(f"SELECT rowid FROM {dead} LIMIT 1").fetchone():
                if not any(self._delete(*each, row) for each in statements):
                    connection.execute(f"DELETE FROM {dead} WHERE rowid = ?", row)
                return True
        if position := connection.execute("SELECT root, member, roster FROM dead_rosters LIMIT 1").fetchone():
            self._scan_members(*position)
            return True
        if space := connection.execute("SELECT space FROM dead_spaces LIMIT 1").fetchone():
            has_tombstones = any(self._tombstone_some(*each, *space) for each in _TOMBSTONES)
            if not has_tombstones and not any(self._delete(*each, space) for each in _ROWS_OF_NAMESPACE):
                connection.execute("DELETE FROM dead_spaces WHERE space = ?", space)
            return True
        return False

    def _delete(self, select: str, delete: str, owner: tuple[int]) -> bool:
        rows = self._group_commit.connection.execute(select, owner).fetchall()
        self._group_commit.connection.executemany(delete, rows)
        return bool(rows)

    def _scan_members(self, root: int, member: str, roster: int) -> None:
        """Scan members from this position on, and delete those whose roster is gone."""
        connection = self._group_commit.connection
        rows = connection.execute(_SCAN_MEMBERS, (root, member, roster)).fetchall()
        connection.executemany(_DELETE_MEMBER, [(root, member, roster) for member, roster, is_gone in rows if is_gone])
        if len(rows) < _SCAN_STEP:
            connection.execute("DELETE FROM dead_rosters WHERE root = ?", (root,))
        else:
            connection.execute(
                "UPDATE dead_rosters SET (member, roster) = (?, ?) WHERE root = ?", (*rows[-1][:2], root)
            )

    def _tombstone_some(self, table: str, column: str, insert: str, space: int) -> bool:
        connection = self._group_commit.connection
        rows = connection.execute(f"SELECT id, {column} FROM {table} WHERE space = ? LIMIT {STEP}", (space,)).fetchall()
        connection.executemany(f"DELETE FROM {table} WHERE id = ?", [row[:1] for row in rows])
        connection.executemany(insert, [row[1:] for row in rows])
        return bool(rows)
