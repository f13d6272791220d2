"""Limits on a client's requests per second, connections and ids.

Elsewhere: PINs (`features/pins/attempt_limit.py`), unauthenticated connections (`realtime/admission.py`), failed logins
of one connection (`realtime/session.py`), body sizes (`http/dispatch.py`). `settings.py` and `environment.py` have the
defaults.
"""

from __future__ import annotations

import ipaddress
import math
import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Generic, TypeVar

from emulator.core.callers import EXTENSION_WRITERS, Caller
from emulator.core.clock import SECOND, Clock
from emulator.core.errors import BadRequest, Facts, TooManyRequests, refusal

_RETRY_AFTER = 10
"""Seconds, a guess: a connection may close at any time."""
_RATE_REFUSAL = (TooManyRequests, "Too many requests", "gaps: Limits")
_RESERVED_FILES = 64
"""Descriptors that connections leave free, for the database, temporary files and refusals."""
_RATE_WINDOW = 5 * SECOND
"""Ms over which the rate is averaged. An idle caller may send the requests of this whole window at once."""
_SHARED_FACTOR = 10
"""The rate of an extension's servers and of a network address, which many users share, as a multiple of a viewer's."""
BY_CALLER = "from this caller"
_SWEEP_SIZE = 10_000
_NS_PER_MS = 1_000_000
"""Per ms. Integers add up exactly, fractions of a ms would not."""


@refusal(BadRequest, "Too many ids", "W10", "Too many ids are in use",
         "Reuse ids, have the owner delete old ones, or raise --max-ids of `extcli serve`.")  # fmt: skip
def too_many_ids(*, used: int, whose: str, channel: str, limit: int) -> Facts:
    where = f"in channel {channel}" if channel else "without a channel"
    detail = f"id: {used} ids of this kind that {whose} created are in use {where}; the limit is {limit}"
    return Facts(detail, f"{used} ids that {whose} created {where}", f"at most {limit} ids")


@refusal(TooManyRequests, "Too many connections", "gaps: Limits", "Too many connections are open",
         "Close some connections, or raise the limit named here: the system's limit of open files (`ulimit -n`), or "
         "--max-sockets, --address-connections, --address-sockets or --address-pages of `extcli serve`.")  # fmt: skip
def too_many_connections(*, what: str, count: int, limit: int) -> Facts:
    detail = f"{count} {what} are open; the limit is {limit}"
    return Facts(detail, f"{count} open {what}", f"at most {limit}", (), _RETRY_AFTER)


@refusal(
    *_RATE_REFUSAL,
    "Too many requests",
    "Wait {seconds} s and send less often, or raise --caller-rate or --client-rate of `extcli serve`.",
)
def too_many_requests(*, by: str, seconds: int) -> Facts:
    held, needed = f"more requests {by} than the rate allows", f"a wait of {seconds} s before the next request"
    return Facts(f"too many requests {by}; retry in {seconds} s", held, needed, (), seconds)


@refusal(*_RATE_REFUSAL, "Too many invalid credentials",
         "Wait {seconds} s and send a valid token; `extcli token inspect` shows what is wrong.")  # fmt: skip
def too_many_credentials(*, seconds: int) -> Facts:
    detail = f"too many invalid credentials from this address; retry in {seconds} s"
    return Facts(detail, "more invalid credentials than the rate allows", f"a wait of {seconds} s", (), seconds)


def masked_address(address: str) -> str:
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
    found = parse_address(address)
    if found is None:
        return address
    bits = ipv4_bits if found.version == 4 else ipv6_bits
    return str(ipaddress.ip_network((found.packed, bits), strict=False))


def parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a host is, of IPv4 also if it is written as IPv6; `None` for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


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

    def mark_active(self, member: T) -> None:
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
        self._last_file = files - min(_RESERVED_FILES, files // 4)
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


class RateLimit:
    """Allows `amount` per `period` ms and key, by the generic cell rate algorithm: one number per key, no queue.

    An `amount` of 0 means no limit.

    A key that was idle for `window` ms may then use the amount for the whole window at once. These are ms of real time,
    however the service's clock is set.
    """

    def __init__(self, clock: Clock, amount: int, period: int = SECOND, window: int = _RATE_WINDOW) -> None:
        self._ticks = clock.ticks
        self._spacing = max(1, period * _NS_PER_MS // amount) if amount else 0
        self._window = window * _NS_PER_MS
        self._due: dict[tuple[str, str], int] = {}
        """The tick at which all requests of a key would be done, if they were served one by one at the rate."""
        self._sweep_at = _SWEEP_SIZE

    def delay(self, key: tuple[str, str], cost: int = 1, *, count: bool = True) -> int:
        """Return 0 and count `cost` now, or return the ms to wait. `count=False` only checks."""
        if not self._spacing:
            return 0
        at = self._ticks()
        due, latest = self._due.get(key, 0), at + self._window
        if due < at:
            due = at
        due += self._spacing * cost
        if due > latest:
            return -((latest - due) // _NS_PER_MS)
        if not count:
            return 0
        self._due[key] = due
        if len(self._due) >= self._sweep_at:
            self._forget_idle(at)
        return 0

    def refund(self, key: tuple[str, str]) -> None:
        """Undo the count of one request."""
        if key in self._due:
            self._due[key] -= self._spacing

    def clear(self) -> None:
        self._due.clear()

    def _forget_idle(self, at: int) -> None:
        self._due = {key: due for key, due in self._due.items() if due > at}
        self._sweep_at = max(_SWEEP_SIZE, 2 * len(self._due))


class RateLimits:
    """Limits the rates of callers, addresses and client ids, per process; a rate of 0 means no limit."""

    def __init__(self, clock: Clock, *, per_caller: int, per_client: int) -> None:
        self._callers = RateLimit(clock, per_caller)
        self._shared = RateLimit(clock, per_caller * _SHARED_FACTOR)
        self._clients = RateLimit(clock, per_client)

    def clear(self) -> None:
        for limit in (self._callers, self._shared, self._clients):
            limit.clear()

    def check_caller(self, caller: Caller, address: str = "") -> None:
        """Count a request of a caller and its client id; raises `TooManyRequests` above either rate.

        `address` is the caller's network address, if the request has a token.
        """
        whose, wait = self.exceeded_rate(caller)
        if wait:
            raise too_many_requests(by=whose, seconds=whole_seconds(wait))

    def exceeded_rate(self, caller: Caller) -> tuple[str, int]:
        """Count a request. Above a rate, return whose rate that is, and the ms to wait; else 0 ms."""
        limit = self._shared if caller.role in EXTENSION_WRITERS else self._callers
        client_id = caller.client_id
        # The caller first: its refused requests must not use up the rate of the client id.
        if wait := limit.delay((client_id, caller.opaque_id)):
            return BY_CALLER, wait
        if wait := self._clients.delay((client_id, "")):
            return f"with client id {client_id[:100]}" if client_id else "without a client id", wait
        return "", 0

    def check_address(self, address: str) -> None:
        """Count an unauthenticated request. It never counts toward the client id that it names."""
        if wait := self._shared.delay(("", f"@{network_of(address)}")):
            raise too_many_requests(by="from this address", seconds=whole_seconds(wait))

    def check_invalid_tokens(self, address: str, *, one_more: bool = False) -> None:
        """Raise `TooManyRequests` if an address sent too many invalid credentials.

        With `one_more`, count another one.
        """
        key = ("", f"!{network_of(address)}")
        if wait := self._shared.delay(key, count=one_more):
            raise too_many_credentials(seconds=whole_seconds(wait))


def whole_seconds(ms: int) -> int:
    """Return a wait of `ms` in whole seconds, rounded up, for `Retry-After`."""
    return math.ceil(ms / SECOND)
