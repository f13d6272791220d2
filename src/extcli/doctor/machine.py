"""Checks of this machine: ports, names and proxies."""

from __future__ import annotations

import socket
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from extcli.doctor.service import Finding, Status

LOOPBACK = ("127.0.0.1", "localhost")
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that listens on a port of this machine."""

    address: str
    pid: int | None
    """The process; `None` if it belongs to another user."""
    program: str = ""

    def __str__(self) -> str:
        who = f"{self.program or 'a program'} (pid {self.pid})" if self.pid else "a program of another user"
        return f"{who} on {self.address}"


def port(port: int, listeners: Sequence[Listener] | None, *, is_ours: bool, answers: bool) -> Finding:
    """Judge which program holds a port. `listeners` is `None` where the system does not list them."""
    check = "port"
    if listeners is None:
        found = "a program" if answers else "no program"
        return Finding(check, Status.SKIPPED, f"{found} answers on port {port}; this system does not name it")
    holders = ", ".join(map(str, listeners[:_SHOWN])) + (" and more" if len(listeners) > _SHOWN else "")
    if not listeners and answers:
        return Finding(check, Status.OK, f"port {port} answers, forwarded from elsewhere")
    if not listeners:
        return Finding(check, Status.OK, f"port {port} is free: `extcli serve --port {port}` can use it")
    if is_ours and len({each.pid for each in listeners}) > 1 and len({each.address for each in listeners}) > 1:
        action = "stop one of them, or use an address instead of `localhost` in clients"
        return Finding(check, Status.NOTE, f"port {port} has several programs: {holders}", action)
    if is_ours:
        return Finding(check, Status.OK, f"port {port} is the service's: {holders}")
    action = "stop that program, or use `extcli serve --port 0` and the URL it prints"
    return Finding(check, Status.FAIL, f"port {port} is held by {holders}, which is not a ready service", action)


def localhost(host: str, port: int, addresses: Sequence[str], accepting: Collection[str], *, in_url: bool) -> Finding:
    """Judge whether a name of this machine leads to the service.

    `addresses` belong to `host`, in the order of the resolver. `accepting` are the loopback addresses on which the
    port accepts connections. If the URL does not use the name (`in_url`), a failure is a note.
    """
    check, bad = "localhost", Status.FAIL if in_url else Status.NOTE
    if not accepting:
        return Finding(check, Status.SKIPPED, f"nothing listens on port {port}")
    place = next(iter(sorted(accepting)))
    action = f"use {f'[{place}]' if ':' in place else place}:{port} in clients"
    if not addresses:
        return Finding(check, bad, f"{host} has no address", f"{action}, or add `127.0.0.1 {host}` to /etc/hosts")
    reached = [each for each in addresses if each in accepting]
    if not reached:
        meaning = f"{host} is {' and '.join(addresses)} only, and the service listens on {place} only"
        return Finding(check, bad, meaning, action)
    if reached[0] != addresses[0]:
        meaning = f"{host} is {addresses[0]} first, where nothing listens: a client that tries one address fails"
        return Finding(check, Status.NOTE, meaning, action)
    return Finding(check, Status.OK, f"{host} is {reached[0]}, where the service listens")


def proxy(scheme: str, host: str, variables: Mapping[str, str], *, is_loopback: bool) -> Finding:
    """Judge the proxy variables by name. Their values are never shown, as they may contain a password."""
    check, names = "proxy", (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    used = next((name for name in names if variables.get(name)), None)
    if used is None:
        return Finding(check, Status.OK, "no proxy variable applies")
    exceptions = variables.get("no_proxy") or variables.get("NO_PROXY") or ""
    wanted = dict.fromkeys([host, *LOOPBACK]) if is_loopback else [host]
    caught = [each for each in wanted if not _is_exempt(each, exceptions)]
    if not caught:
        return Finding(check, Status.OK, f"NO_PROXY exempts {', '.join(wanted)} from {used}")
    if not is_loopback:
        return Finding(
            check,
            Status.NOTE,
            f"calls to {host} go through the proxy in {used}",
            f"to avoid it, append to NO_PROXY: {host}",
        )
    meaning = f"{used} catches {', '.join(caught)}: clients other than extcli go to the proxy instead"
    return Finding(check, Status.FAIL, meaning, f"append to NO_PROXY: {','.join(caught)}")


def _is_exempt(host: str, exceptions: str) -> bool:
    """Return whether NO_PROXY names the host, a domain above it, or everything. Ports are ignored."""
    for entry in exceptions.lower().replace(",", " ").split():
        name = entry.strip("[]") if entry.count(":") > 1 else entry.partition(":")[0]
        if name == "*" or host == name.lstrip(".") or host.endswith(f".{name.lstrip('.')}"):
            return True
    return False


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
    holders = _processes_of_sockets({inode for _, inode in found})
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


def _processes_of_sockets(inodes: Collection[str]) -> dict[str, tuple[int, str]]:
    """Return the process id and program name behind each socket inode that this user may see."""
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
