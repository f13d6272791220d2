"""The data types behind rewards: pools of items, and rosters of users. The rules of `storage/shapes.py` apply."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from emulator.core.keys import Key
from emulator.storage.shapes import writes_of_change


class Stock(NamedTuple):
    """The list that a pool hands out from."""

    source: Key
    """The key of the list, which `Pools.fill` fills."""
    note: bytes
    """Opaque text."""


Assignment = Callable[[Mapping[Key, Stock]], Mapping[Key, Stock]]
"""Takes the live pools and returns those to write. Like `Edit`, it may raise, may run again and must be pure."""


MAX_SKIPPED = 500
"""Spent items that one operation skips before others run."""

Limit = Callable[[bytes], int]
"""Takes the note of a pool and returns how many of its items a user may have.

Like `Edit`, it may run again and must be pure.
"""


def writes_of_assignment(change: Assignment, live: Mapping[Key, Stock], keys: Iterable[Key]) -> dict[Key, Stock]:
    """Return an assignment's writes to these keys. Raises `ValueError` for any other key, or for a repeated list."""
    written = writes_of_change(change, live, keys)
    if len({source for source, _ in written.values()}) < len(written):
        raise ValueError("each pool needs a list of its own")
    return written


class Progress(NamedTuple):
    """The progress of a pool."""

    handed: int
    """The items that it has handed out, from all its lists."""
    left: int
    """The items of its list that it has not reached. Other pools may have spent some of them."""


class Holding(NamedTuple):
    """The items one user has from a pool."""

    items: tuple[str, ...]
    """All items that the pool, or a dropped pool of the same key, handed to the user, in order."""
    current: int
    """How many of them, at the end, are from the current pool."""


class Drawn(NamedTuple):
    """The outcome of a draw."""

    item: str | None
    """`None` if nothing was handed out."""
    held: tuple[str, ...]
    """`Holding.items` after the draw; empty unless requested."""


class Pools(Protocol):
    """Items that are handed out, each at most once.

    A pool hands out the items of a list, front to back. It may be assigned another list. Pools whose keys differ only
    in the name are a family: an item that one of them has handed out is spent. A pool skips spent items, and does not
    revisit them. A pool and its history expire together, at the pool's `expires_at`, but spent items stay spent until
    `Engine.reset`.
    """

    async def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        """Append items to a list that no pool uses yet, and keep it alive until at least `expires_at`.

        Other operations wait during this call, so fill a long list by calls of some thousand items each. Raises
        `ValueError` if an item contains NUL or a live pool uses the list.
        """

    async def items(self, source: Key, at: int, *, now: int) -> Sequence[str]:
        """Return some of the items of a list that no pool uses yet, from position `at` on; none from its end on.

        Other operations wait during this call, so it returns at most some thousand.
        """

    async def assign(
        self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int, sizes: Mapping[Key, int] = {}
    ) -> bool:
        """Read the live pools among `keys`, apply `change`, and assign the lists it returns, in one atomic step.

        Then skip the spent items at the front of the lists, in short steps. Missing pools are created; the others get
        the new list and note, and a replaced list is deleted. A pool that is assigned its own list again keeps its
        position. An unknown source is an empty list. A pool and its list expire together: at `expires_at`, or at the
        expiry that either has, if that is later. `change` may return any subset of `keys`. Raises `ValueError`, and
        writes nothing, for any other key, or if another live pool uses one of the lists.

        Returns whether it was done. It writes nothing if one of the lists in `sizes` has fewer items than given there:
        a reset or its expiry removed items since they were filled in. `sizes` are of lists that no pool uses yet.
        """

    async def stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        """Return the live pools among `keys`, all read at one instant."""

    async def counts(self, keys: Sequence[Key], *, now: int) -> dict[Key, Progress]:
        """Return the progress of the live pools among `keys`, all read at one instant."""

    async def discard(self, sources: Sequence[Key], *, now: int) -> None:
        """Delete the lists that no pool uses; used and absent ones are ignored."""

    async def draw(self, key: Key, user: str, *, limit: Limit, now: int, held: bool = False) -> Drawn:
        """Hand the next item to `user`, in one atomic step with the call of `limit`.

        Hands out nothing if there is no such pool, if it is empty, or if the user has as many items from the current
        pool as `limit` returns. With `held`, the result holds what `user` has afterwards.
        """

    async def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        """Return the items that these pools, including dropped ones, handed to `user`.

        The result has no entry for a pool that handed out none to them.
        """

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        """Delete these pools and their lists, but no history; return how many items each live one had handed out."""


class RosterInfo(NamedTuple):
    """A roster in a listing."""

    name: str
    """`Key.name`."""
    note: bytes
    members: list[str]
    """Those that the listing is about."""


class Rosters(Protocol):
    """Rosters: sets of member names, each with a note. A roster is found by its key or by one of its members.

    Rosters whose keys differ only in the name are a group. A roster begins without members and with an empty note, at
    the end of its group.
    """

    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        """Add members to a roster, created if missing. It stays alive until at least `expires_at`.

        Other operations wait during this call, so add many members by calls of up to a thousand each.
        """

    async def annotate(self, key: Key, note: bytes, *, now: int, expires_at: int) -> bool:
        """Replace the note of a roster, and move the roster to the end of its group, in one atomic step.

        It stays alive until at least `expires_at`. Returns whether there is such a roster.
        """

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> list[RosterInfo]:
        """Return the live rosters in `key`'s group that have any of these distinct members, in the group's order.

        The time this takes grows with the rosters of these members, but neither with the other rosters nor with the
        size of the rosters.
        """

    def all(self, key: Key, *, now: int) -> AsyncIterator[Mapping[str, bytes]]:
        """Yield the names and the notes of the live rosters in `key`'s group, in pages.

        A roster that is created or dropped meanwhile may be absent; one may be repeated.
        """

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        """Delete these rosters, in constant time. Absent ones are ignored."""
