"""Limits the connections of each client id, and shares all of them fairly between network addresses."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Generic, TypeVar

from emulator.limits.refusals import too_many_connections


class ConnectionLimit:
    """Counts connections per client id. Connections without a client id share one count."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[str, int] = {}

    def acquire(self, client_id: str) -> None:
        """Count one connection; raises `TooManyRequests` at the limit."""
        count = self._open.get(client_id, 0)
        if count >= self._limit:
            owner = f"with client id {client_id[:100]}" if client_id else "without a client id"
            raise too_many_connections(what=f"connections {owner}", count=count, limit=self._limit)
        self._open[client_id] = count + 1

    def release(self, client_id: str) -> None:
        count = self._open[client_id] - 1
        if count:
            self._open[client_id] = count
        else:
            del self._open[client_id]


def hidden_address(address: str) -> str:
    """Return an address with its last part hidden: the last octet of IPv4 is 0, of IPv6 48 bits remain (ruling A6).

    Other text, such as a Unix socket's, is hidden as a whole.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.IPv6Network((int(found), 48), strict=False).network_address)
        found = found.ipv4_mapped
    return str(ipaddress.IPv4Network((int(found), 24), strict=False).network_address)


@lru_cache(maxsize=10_000)
def network_of(address: str) -> str:
    """Return the network that shares one limit: the IPv4 address itself, or the /64 of an IPv6 address.

    A single IPv6 customer has a whole /64. Other text, such as a Unix socket's, is returned unchanged.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), 64), strict=False))


T = TypeVar("T")


class FairShare(Generic[T]):
    """Admits up to `total` connections, and up to `per_address` from one network address. 0 means no limit.

    Once full, a new connection replaces one of the address that has the most, so that no address can keep out others.
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
        """Add a member; return the member that it replaces, or `None`. Raises `TooManyRequests`."""
        count = len(self._members.get(address, ()))
        if self._per_address and count >= self._per_address:
            raise too_many_connections(what=f"{self._what} from this address", count=count, limit=self._per_address)
        replaced = None
        if self._total and len(self) >= self._total:
            if self._most <= count:
                raise too_many_connections(what=self._what, count=len(self), limit=self._total)
            replaced = next(iter(self._members[next(iter(self._by_count[self._most]))]))
            self.remove(replaced)
        self._members.setdefault(address, {})[member] = None
        self._addresses[member] = address
        self._recount(address, count)
        return replaced

    def remove(self, member: T) -> None:
        """Remove a member. An unknown member is ignored."""
        address = self._addresses.pop(member, None)
        if address is None:
            return
        members = self._members[address]
        del members[member]
        if not members:
            del self._members[address]
        self._recount(address, len(members) + 1)

    def touch(self, member: T) -> None:
        """Note that a member is active, so that other members of its address are replaced first."""
        members = self._members[self._addresses[member]]
        del members[member]
        members[member] = None

    def _recount(self, address: str, before: int) -> None:
        """Update the count of an address that had `before` members and now has one more or one less."""
        now = len(self._members.get(address, ()))
        if before:
            del self._by_count[before][address]
            if not self._by_count[before]:
                del self._by_count[before]
        if now:
            self._by_count.setdefault(now, {})[address] = None
        if now > self._most or self._most not in self._by_count:
            self._most = now
