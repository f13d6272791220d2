"""Network addresses as limits count them."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


def hidden_address(address: str) -> str:
    """Return an address with its last part hidden: the last octet of IPv4 is 0, of IPv6 48 bits remain (ruling A6).

    Other text, such as that of a Unix socket, is hidden as a whole.
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
