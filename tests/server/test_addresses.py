"""The addresses that a service listens on (operations, Starting)."""

from __future__ import annotations

import errno
import re
import signal
import socket
from contextlib import ExitStack

import pytest

from emulator.core.errors import ConfigurationError
from emulator.process.http_server import listen
from extcli.doctor.checks import port_holders
from support.process import ServerProcess, server_process


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")


def answers(address: str, port: int) -> bool:
    with socket.create_connection((address, port), timeout=5) as connection:
        connection.sendall(b"GET /_emulator/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return connection.recv(1024).startswith(b"HTTP/1.1 200")


def addresses_of(served: ServerProcess) -> set[str]:
    """The addresses at which this process listens: another may have the same port at others."""
    found = port_holders(port_of(served.first_line))
    if found is None:
        pytest.skip("this system does not list listeners")
    return {each.address for each in found if each.pid == served.process.pid}


def port_of(first_line: str) -> int:
    return int(first_line.rpartition(":")[2])


@needs_ipv6
def test_the_service_listens_on_both_loopback_addresses_or_on_the_given_one():
    # By default the service listens on both loopback addresses
    with server_process() as served:
        assert re.fullmatch(r"listening on http://127\.0\.0\.1:\d+\n", served.first_line)
        assert [True, True] == [answers(each, port_of(served.first_line)) for each in ("127.0.0.1", "::1")]
        assert 0 == served.stop(signal.SIGTERM)

    # A given address is the only one
    with server_process("--host", "127.0.0.1") as served:
        assert {"127.0.0.1"} == addresses_of(served)

    # An address may be given in its printed form
    for host in ["[::1]", "::1"]:
        with server_process("--host", host) as served:
            assert served.first_line.startswith("listening on http://[::1]:")
            assert {"::1"} == addresses_of(served)


def _resolves_to(*addresses: str):
    def resolve(host: str, port: int, **_: object) -> list[object]:
        families = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in addresses]
        return [
            (family, socket.SOCK_STREAM, 6, "", (each, port)) for family, each in zip(families, addresses, strict=True)
        ]

    return resolve


@needs_ipv6
def test_a_name_means_all_its_addresses_on_one_port(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket, "getaddrinfo", _resolves_to("::1", "127.0.0.1", "127.0.0.2", "127.0.0.1"))

    with ExitStack() as stack:
        opened = [stack.enter_context(each) for each in listen("name.example", 0)]

        assert ["::1", "127.0.0.1", "127.0.0.2"] == [each.getsockname()[0] for each in opened]
        assert 1 == len({each.getsockname()[1] for each in opened})


def test_without_ipv6_the_service_listens_on_ipv4_alone(monkeypatch: pytest.MonkeyPatch):
    class Socket(socket.socket):
        """A socket of a machine without IPv6."""

        def __init__(self, family: int = -1, *given: int, **more: object) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
            super().__init__(family, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "socket", Socket)

    (opened,) = listen("", 0)

    with opened:
        assert "127.0.0.1" == opened.getsockname()[0]


def test_a_name_without_an_address_of_this_machine_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket, "getaddrinfo", _resolves_to("2001:db8::1", "2001:db8::2"))

    with pytest.raises(ConfigurationError, match=r"^--host name.example --port 0: "):
        listen("name.example", 0)
