"""Network addresses as limits count them."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=10_000)
def network_of(address: str) -> str:
    """Return the network that shares one limit: the IPv4 address itself, or the /64 of an IPv6 address.

    A single IPv6 customer has a whole /64. Other text, such as that of a Unix socket, is returned as it is.
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
