"""Shares a number of connections fairly between network addresses."""

from __future__ import annotations

from typing import Generic, TypeVar

from emulator.errors import TooManyRequests
from emulator.limits.connection_limit import RETRY_AFTER, TOO_MANY

T = TypeVar("T")


class FairShare(Generic[T]):
    """Up to `total` members, and up to `per_address` of one network address. 0 is no limit.

    Once full, a newcomer replaces a member of the address that has the most, so that no address can keep out others.
    """

    def __init__(self, what: str, total: int, per_address: int) -> None:
        self._what = what
        self._total = total
        self._per_address = per_address
        self._members: dict[str, dict[T, None]] = {}
        """By address, least recently active first."""
        self._addresses: dict[T, str] = {}
        self._by_count: dict[int, dict[str, None]] = {}
        """The addresses that have this many members."""
        self._most = 0
        """The most members that an address has."""

    def __len__(self) -> int:
        return len(self._addresses)

    def __contains__(self, member: T) -> bool:
        return member in self._addresses

    def add(self, member: T, address: str) -> T | None:
        """Add a member, and return the one that it replaced, if any. Raises `TooManyRequests`."""
        count = len(self._members.get(address, ()))
        if self._per_address and count >= self._per_address:
            detail = f"open {self._what} from this address: {count}, limit {self._per_address}"
            raise TooManyRequests(TOO_MANY, detail, retry_after=RETRY_AFTER)
        replaced = None
        if self._total and len(self) >= self._total:
            if self._most <= count:
                detail = f"open {self._what}: {len(self)}, limit {self._total}"
                raise TooManyRequests(TOO_MANY, detail, retry_after=RETRY_AFTER)
            replaced = next(iter(self._members[next(iter(self._by_count[self._most]))]))
            self.remove(replaced)
        self._members.setdefault(address, {})[member] = None
        self._addresses[member] = address
        self._recount(address, count)
        return replaced

    def remove(self, member: T) -> None:
        """Remove a member; no effect if it is none."""
        address = self._addresses.pop(member, None)
        if address is None:
            return
        members = self._members[address]
        del members[member]
        if not members:
            del self._members[address]
        self._recount(address, len(members) + 1)

    def touch(self, member: T) -> None:
        """Note that a member is active: others of its address are replaced first."""
        members = self._members[self._addresses[member]]
        del members[member]
        members[member] = None

    def _recount(self, address: str, before: int) -> None:
        """Note that an address, which had `before` members, has one more or one less."""
        now = len(self._members.get(address, ()))
        if before:
            del self._by_count[before][address]
            if not self._by_count[before]:
                del self._by_count[before]
        if now:
            self._by_count.setdefault(now, {})[address] = None
        if now > self._most or self._most not in self._by_count:
            self._most = now
