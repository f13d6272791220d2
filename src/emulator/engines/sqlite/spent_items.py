"""The items that each family of pools has handed out, ever: one digest each, until a reset."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Key
from emulator.engines.sqlite.namespace_ids import Tables
from emulator.engines.sqlite.schema import digest_of

_FAMILY = "SELECT id FROM families WHERE space = ? AND shelf = ? AND owner = ? AND holder = ? AND place = ?"
_CREATE = "INSERT INTO families (id, space, shelf, owner, holder, place) VALUES (?, ?, ?, ?, ?, ?)"
_IS_SPENT = "SELECT 1 FROM spent WHERE family = ? AND digest = ?"
_SPENT_AMONG = "SELECT digest FROM spent WHERE family = ? AND digest IN ({})"
_SPEND = "INSERT OR IGNORE INTO spent (family, digest) VALUES (?, ?)"


class SpentItems(Tables):
    def family(self, key: Key) -> int:
        """Return the id of the family of a pool, and create the family if needed. Only inside a write."""
        namespace, kind, owner, _, user, channel = self._namespace.params(key)
        found = self._group_commit.connection.execute(_FAMILY, (namespace, kind, owner, user, channel)).fetchone()
        family = int(found[0]) if found else self._namespace.next_number()
        if not found:
            self._group_commit.connection.execute(_CREATE, (family, namespace, kind, owner, user, channel))
        return family

    def is_unspent(self, family: int, item: str) -> bool:
        return self._group_commit.connection.execute(_IS_SPENT, (family, digest_of(item))).fetchone() is None

    def count_first(self, family: int, items: Sequence[str]) -> int:
        """Return how many items at the front of a chunk of a list are spent."""
        digests = list(map(digest_of, items))
        among = _SPENT_AMONG.format(", ".join("?" * len(digests)))
        spent = {digest for (digest,) in self._group_commit.connection.execute(among, (family, *digests))}
        return next((at for at, digest in enumerate(digests) if digest not in spent), len(digests))

    def spend(self, family: int, item: str) -> bool:
        """Note an item as spent; return whether it was not before."""
        return self._group_commit.connection.execute(_SPEND, (family, digest_of(item))).rowcount == 1
