"""The shapes behind rewards: pools of items that are handed out, and rosters of those who are to have one.

What `engines/base.py` says of all shapes holds for these: every operation is one atomic step, also between processes,
and a write returns when it would survive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from emulator.engines.base import Key


class Stock(NamedTuple):
    """What a pool hands out, and what it is called."""

    source: Key
    """The list it hands out from; lists are filled by `Pools.fill`."""
    note: bytes
    """Opaque to the engine."""


Assignment = Callable[[Mapping[Key, Stock]], Mapping[Key, Stock]]
"""Given the live pools, those to write. As with `Change`, it may raise, may be called again, and must be pure."""


class Holding(NamedTuple):
    """What one user has from a pool."""

    items: tuple[str, ...]
    """All that the user was handed and that is still remembered, in order; also from pools dropped since."""
    current: int
    """How many of them, the last ones, are from the pool as it is now."""


class Pools(Protocol):
    """Items that are handed out, each at most once.

    A pool hands out from a list, front to back. It may be given another list; what was handed out stays handed out, and
    an item that the pool has ever handed out is passed over, also when it stands twice in a list, in a later list, or
    in the list of a pool of the same key that follows a dropped one. What a draw has passed over is not come back to in
    that list. Pools and what is known of them end together, at the pool's `expires_at`.
    """

    async def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        """Add items to the end of a list that no pool hands out from yet, and have it live until `expires_at`.

        One atomic step for these items; a list of a million is filled by many calls, of some thousand items each, as no
        one else has a turn meanwhile. Items are any text without NUL. ValueError for others, and when a live pool hands
        out from the list.
        """
        ...

    async def assign(self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int) -> None:
        """Read the live pools among `keys`, apply `change`, and have what it returns hand out from its list.

        One atomic step for all pools: a pool is made where there is none, else its list and note are replaced. The
        pools and their lists live until `expires_at`; a list that was replaced is gone. A source that was never filled
        is an empty list. From the list that it has, a pool goes on where it is. A list is one pool's: ValueError, and
        nothing is written, when another live one hands out from it. `change` may return any subset of `keys`; the
        others are left as they are.
        """
        ...

    async def stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        """The live pools among `keys`, seen at one instant."""
        ...

    async def discard(self, sources: Sequence[Key], *, now: int) -> None:
        """Forget lists that no pool hands out from. Absent ones are fine; one that is in use is left as it is."""
        ...

    async def draw(self, key: Key, user: str, *, most: int, now: int, source: Key | None = None) -> str | None:
        """Hand the next item to `user`, who then holds it, in one atomic step.

        `None`, and nothing is changed, when there is no such pool, when nothing is left in it, or when the user has
        `most` items from the pool as it is now; also, where `source` is given, when the pool hands out from another
        list by now.
        """
        ...

    async def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        """What a user was handed from the pools of these keys, dropped ones included; keys without anything are
        left out."""
        ...

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        """Have these pools hand out nothing more, in one atomic step; returns how many items each of the live ones had
        handed out. Their lists are gone; what was handed out stays remembered until the pools' own end."""
        ...


class Rosters(Protocol):
    """Names on lists, and which lists a name is on. A roster is any number of names, each once."""

    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        """Add names to a roster and have it live until `expires_at`: one atomic step for these names.

        Names are any text. A roster of a million is made by many calls, of up to a thousand names each, as no one else
        has a turn meanwhile.
        """
        ...

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> set[str]:
        """The names (`Key.name`) of the live rosters that share `key`'s other parts and hold any of `members`.

        `key.name` is not looked at. The time this takes does not grow with the rosters' size.
        """
        ...

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        """Forget these rosters; constant time. Absent ones are fine."""
        ...
