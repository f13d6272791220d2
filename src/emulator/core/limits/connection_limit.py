"""Limits the connections of each client id or user, and shares all of them fairly between network addresses."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Generic, TypeVar

from emulator.core.limits.refusals import too_many_connections

_FREE_FILES: Final = 64
"""Descriptors that connections leave free, for the database, temporary files and refusals."""


def hidden_address(address: str) -> str:
    """Return an address with its last part hidden: the last octet of IPv4 is 0, of IPv6 48 bits remain (ruling A6).

    Other text, such as a Unix socket's, is hidden as a whole.
    """
    network = network_of(address, 24)
    return "" if network == address else network.partition("/")[0]


@lru_cache(maxsize=10_000)
def network_of(address: str, ipv4_bits: int = 32, ipv6_bits: int = 48) -> str:
    """Return the network that shares one limit: by default the IPv4 address itself, or the /48 of an IPv6 address.

    A single IPv6 customer may have a whole /48. Other text, such as a Unix socket's, is returned unchanged.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.IPv6Network((int(found), ipv6_bits), strict=False))
        found = found.ipv4_mapped
    return str(ipaddress.IPv4Network((int(found), ipv4_bits), strict=False))


T = TypeVar("T")


class FairShare(Generic[T]):
    """Admits up to `total` connections, and up to `per_address` from one network address. 0 means no limit.

    In place of the address, any other key may be counted. Once full, a new connection replaces one of the address that
    has the most, so that no address can keep out others.
    """

    def __init__(self, what: str, total: int, per_address: int) -> None:
        self._what = what
        self._total = total
        self._per_address = per_address
        self._members: dict[str, dict[T, None]] = {}
        """By address, least recently active first."""
        self._addresses: dict[T, str] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def __iter__(self) -> Iterator[T]:
        """Iterate over all members, oldest first."""
        return iter(self._addresses)

    def __contains__(self, member: T) -> bool:
        return member in self._addresses

    def add(self, member: T, address: str, whose: str = "from this address") -> T | None:
        """Add a member; return the member that it replaces, or `None`. Raises `TooManyRequests`, which says `whose`."""
        count = len(self._members.get(address, ()))
        if self._per_address and count >= self._per_address:
            raise too_many_connections(what=f"{self._what} {whose}", count=count, limit=self._per_address)
        replaced = None
        if self._total and len(self) >= self._total:
            largest = max(self._members.values(), key=len)
            if len(largest) <= count:
                raise too_many_connections(what=self._what, count=len(self), limit=self._total)
            replaced = next(iter(largest))
            self.remove(replaced)
        self._members.setdefault(address, {})[member] = None
        self._addresses[member] = address
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

    def touch(self, member: T) -> None:
        """Note that a member is active, so that other members of its address are replaced first."""
        members = self._members[self._addresses[member]]
        del members[member]
        members[member] = None


class OpenConnections:
    """The HTTP connections of a process. `proxies` may open any number: many clients share one."""

    def __init__(self, per_address: int, proxies: Iterable[str] = ()) -> None:
        files = sys.maxsize
        if sys.platform != "win32":
            files = os.sysconf("SC_OPEN_MAX") % files  # -1 means any number
        self._last_file = files - min(_FREE_FILES, files // 4)
        self._share = FairShare[object]("connections", 0, min(per_address, files // 2))
        self._proxies = [ipaddress.ip_network(each) for each in proxies]
        self.remove = self._share.remove

    def add(self, connection: object, address: str, file: int) -> None:
        """Count a new connection with this descriptor until `remove`; raises `TooManyRequests`."""
        if file >= self._last_file:  # a new descriptor is the lowest free number, so all below are in use
            what = "files and connections of this process"
            raise too_many_connections(what=what, count=self._last_file, limit=self._last_file)
        if address and not any(ipaddress.ip_address(address) in each for each in self._proxies):
            self._share.add(connection, network_of(address))
