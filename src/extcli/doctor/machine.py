"""Reads which programs listen on this machine, and what its names resolve to."""

from __future__ import annotations

import socket
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from extcli.doctor.machine_rules import Listener

_LISTEN = "0A"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOOPBACK = ("127.0.0.1", "::1")
_SECONDS = 1.0
"""How long to try to connect to a loopback address."""


def listeners(port: int) -> list[Listener] | None:
    """Return what listens on a TCP port; `None` if the system has no `/proc/net/tcp`."""
    if not _TABLES[0].exists():
        return None
    found = [entry for table in _TABLES if table.exists() for entry in _listening(table, port)]
    holders = _holders({inode for _, inode in found})
    return [Listener(address, *holders.get(inode, (None, ""))) for address, inode in found]


def _listening(table: Path, port: int) -> Iterator[tuple[str, str]]:
    """Yield the address and inode of each socket that listens on the port."""
    for line in table.read_text().splitlines()[1:]:
        words = line.split()
        address, _, number = words[1].partition(":")
        if words[3] == _LISTEN and int(number, 16) == port:
            yield _address(address), words[9]


def _address(text: str) -> str:
    """Decode an address of `/proc/net/tcp`: 32-bit words in the byte order of the machine, in hexadecimal."""
    words = [int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8)]
    packed = b"".join(words)
    return str(IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed))


def _holders(inodes: Collection[str]) -> dict[str, tuple[int, str]]:
    """Return the process id and program name that hold each socket, as far as this user may see them."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[str, tuple[int, str]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        if len(found) == len(wanted):
            break
        with suppress(OSError):  # of another user, or ended meanwhile
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    inode = wanted.get(str(descriptor.readlink()))
                    if inode and inode not in found:
                        found[inode] = int(process.name), (process / "comm").read_text().strip()
    return found


def addresses_of(host: str) -> list[str]:
    """Return the addresses of a name, in the order of the resolver; empty if it has none."""
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def accepting(port: int) -> set[str]:
    """Return the loopback addresses on which a TCP port accepts connections."""
    return {address for address in _LOOPBACK if _accepts(address, port)}


def _accepts(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), _SECONDS).close()
    except OSError:
        return False
    return True
