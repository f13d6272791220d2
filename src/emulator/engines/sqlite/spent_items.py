"""The items that each family of pools has handed out, ever: one digest each, until a reset."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Key
from emulator.engines.sqlite.namespace_ids import Tables
from emulator.engines.sqlite.schema import digest_of

_FAMILY = "SELECT id FROM families WHERE space = ? AND shelf = ? AND owner = ? AND holder = ? AND place = ?"
_CREATE = "INSERT INTO families (id, space, shelf, owner, holder, place) VALUES (?, ?, ?, ?, ?, ?)"
_ANY = "SELECT 1 FROM spent WHERE family = ? LIMIT 1"
_IS_SPENT = "SELECT 1 FROM spent WHERE family = ? AND digest = ?"
_SPENT_AMONG = "SELECT digest FROM spent WHERE family = ? AND digest IN ({})"
_SPEND = "INSERT INTO spent (family, digest) VALUES (?, ?)"


class SpentItems(Tables):
    def family(self, key: Key) -> int | None:
        """Return the id of the family of a pool; `None` if the family never had one."""
        namespace, kind, owner, _, user, channel = self._namespace.params(key)
        row = self._group_commit.connection.execute(_FAMILY, (namespace, kind, owner, user, channel)).fetchone()
        return None if row is None else int(row[0])

    def ensure_family(self, key: Key) -> int:
        """Return the id of the family of a pool, and create the family if needed. Only inside a write."""
        family = self.family(key)
        if family is None:
            namespace, kind, owner, _, user, channel = self._namespace.params(key)
            family = self._namespace.next_number()
            self._group_commit.connection.execute(_CREATE, (family, namespace, kind, owner, user, channel))
        return family

    def has_any(self, key: Key) -> bool:
        """Whether the family of `key` has handed out anything."""
        family = self.family(key)
        return family is not None and self._group_commit.connection.execute(_ANY, (family,)).fetchone() is not None

    def is_spent(self, family: int, item: str) -> bool:
        return self._group_commit.connection.execute(_IS_SPENT, (family, digest_of(item))).fetchone() is not None

    def unspent(self, key: Key, items: Sequence[str]) -> list[str]:
        """Return the items, at most some hundred, that the family of `key` has not handed out."""
        digests = list(map(digest_of, items))
        among = _SPENT_AMONG.format(", ".join("?" * len(digests)))
        rows = self._group_commit.connection.execute(among, (self.family(key), *digests))
        spent = {digest for (digest,) in rows}
        return [item for item, digest in zip(items, digests, strict=True) if digest not in spent]

    def spend(self, family: int, item: str) -> None:
        self._group_commit.connection.execute(_SPEND, (family, digest_of(item)))
