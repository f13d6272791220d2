"""Who may call the control API of a sandbox beyond loopback, from a network of the test's own (ruling W5)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

import pytest

from support.process import ServerProcess, server_process
from support.program import PROGRAM
from support.service import Client, RunningService
from support.socket_client import SocketClient

pytestmark = pytest.mark.slow

GIVEN = "a-token-of-the-test-0123456789"
HOSTS = ["localhost", "LOCALHOST:8282", "127.0.0.1", "127.9.9.9:1", "[::1]", "[::ffff:127.0.0.1]", "", "evil.example"]
FORWARDED = [{"X-Forwarded-For": "127.0.0.1"}, {"X-Real-IP": "::1"}, {"Forwarded": "for=127.0.0.1"}]
CALLS = [
    ("GET", "/_emulator/snapshot?keys=true"), ("POST", "/_emulator/reset"), ("GET", "/_emulator/clock"),
    ("POST", "/_emulator/clock"), ("GET", "/_emulator/journal"), ("GET", "/_ns/a/_emulator/clock"), ("GET", "/_ns"),
    ("POST", "/_ns/a"), ("DELETE", "/_ns/a"), ("GET", "/_emulator/"), ("GET", "/"), ("GET", "/_emulator/ui/polls"),
]  # fmt: skip
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}


class Machine(NamedTuple):
    """A network namespace, as a container has one. The test itself is another machine for it."""

    name: str
    address: str

    @property
    def under(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    if not shutil.which("ip") or os.geteuid() != 0:
        pytest.skip("needs iproute2, and root for a network namespace")
    number = os.getpid() % 32_768  # other workers have networks of their own
    name, link, net = f"extcli-{number}", f"ec{number}", IPv4Address("198.18.0.0") + 4 * number
    outside, inside = str(net + 1), str(net + 2)
    commands = f"""
        ip netns add {name}
        ip link add {link} type veth peer name eth0 netns {name}
        ip address add {outside}/30 dev {link}
        ip link set {link} up
        ip netns exec {name} ip address add {inside}/30 dev eth0
        ip netns exec {name} ip link set eth0 up
        ip netns exec {name} ip link set lo up
    """
    try:
        for command in filter(None, map(str.strip, commands.splitlines())):
            subprocess.run(command.split(), check=True, capture_output=True)
        yield Machine(name, inside)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)  # with the link


@pytest.fixture(scope="module")
def served(machine: Machine) -> Iterator[ServerProcess]:
    """A service on all addresses of the other machine, with a token of its own."""
    with server_process("--host", "0.0.0.0", under=machine.under) as served:
        yield served


@pytest.fixture(scope="module")
def token(served: ServerProcess) -> str:
    """The token on the second line of standard output."""
    assert served.process.stdout is not None
    found = re.fullmatch(r"control token: (\S{32,})\n", str(served.process.stdout.readline()))
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def url(machine: Machine, served: ServerProcess) -> str:
    return f"http://{machine.address}:{served.url.rpartition(':')[2]}"


def statuses(client: Client, **headers: str) -> set[int]:
    return {client.request(method, path, content=b"{}", headers=headers).status_code for method, path in CALLS}


@pytest.mark.parametrize("host", HOSTS)
def test_a_client_on_another_machine_needs_the_token(url: str, token: str, host: str):
    with Client(base_url=url, headers={"Host": host}) as client:
        wrong = ["", token[:-1], f"{token}x", token.upper(), f"{'y' if token[0] == 'x' else 'x'}{token[1:]}", "é"]
        refused = [statuses(client)]
        refused += [statuses(client, **headers) for headers in (*FORWARDED, NAVIGATION)]
        refused += [
            {client.get("/_emulator/clock", headers={b"X-Emulator-Token": each.encode()}).status_code} for each in wrong
        ]
        refused += [{client.get("/_emulator/enter", params={"token": each}).status_code} for each in wrong]

        assert [{403}] * len(refused) == refused
        assert 200 == client.get("/_emulator/clock", headers={"X-Emulator-Token": token}).status_code
        assert 200 == client.get("/_emulator/ready").status_code


def test_pages_and_games_need_no_token_and_pages_of_another_origin_gain_nothing_by_it(url: str, token: str):
    # Pages and games on another machine need no token
    service = RunningService(url)
    with service.client("viewer", user="1", channel="777") as viewer, SocketClient(service) as game:
        assert 200 == viewer.post("vote", json={"value": 1}).status_code
        assert "errors" in game.request("get", "state")
        assert 200 == viewer.get(f"{url}/_emulator/sdk.js").status_code

    # The control token does not admit a page of another origin
    with Client(base_url=url) as client:
        for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            for proof in ({"X-Emulator-Token": token}, {"Cookie": f"emulator_token={token}"}):
                assert 403 == client.post("/_emulator/reset", headers={**foreign, **proof}).status_code


def from_inside(machine: Machine, url: str, *options: str) -> str:
    """Return the status of a call of the clock by a program on the other machine itself."""
    command = [*machine.under, "curl", "-s", "-o", os.devnull, "-w", "%{http_code}", *options, f"{url}/_emulator/clock"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_programs_on_the_same_machine_need_no_token_unless_a_gateway_passes_them_on(
    machine: Machine, url: str, token: str
):
    # Programs on the same machine need no token
    assert "200" == from_inside(machine, url.replace(machine.address, "127.0.0.1"))

    # A gateway that delivers every client from one address is not trusted
    assert "403" == from_inside(machine, url, "-H", "Host: localhost")
    assert "200" == from_inside(machine, url, "-H", "Host: localhost", "-H", f"X-Emulator-Token: {token}")


def test_a_browser_enters_by_a_link_with_the_token(url: str, token: str):
    with Client(base_url=url, headers=NAVIGATION) as browser:
        assert 403 == browser.get("/_emulator/").status_code

        entered = browser.get("/_emulator/enter", params={"token": token})

        assert (303, "/_emulator/") == (entered.status_code, entered.headers["location"])
        assert ("no-referrer", "no-store") == (entered.headers["referrer-policy"], entered.headers["cache-control"])
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(entered.headers["set-cookie"].split("; "))
        assert [200, 200] == [browser.get(path).status_code for path in ("/_emulator/", "/_ns/a/_emulator/")]
        own = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        assert 200 == browser.post("/_emulator/reset", headers=own).status_code


def test_a_given_token_is_not_shown_and_works_for_extcli(machine: Machine, tmp_path: Path):
    options = ("--host", "0.0.0.0", "--log-requests", "--log-level", "debug")
    with server_process(*options, under=machine.under, EXTCLI_SERVE_CONTROL_TOKEN=GIVEN) as served:
        url = f"http://{machine.address}:{served.url.rpartition(':')[2]}"

        own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "EXTCLI_URL": url}
        refused, admitted = (
            subprocess.run([PROGRAM, "clock", "now", "-v"], capture_output=True, text=True, env=own | more, check=False)
            for more in ({}, {"EXTCLI_CONTROL_TOKEN": GIVEN})
        )
        with Client(base_url=url, headers={"X-Emulator-Token": GIVEN}) as client:
            client.get("/_emulator/enter", params={"token": GIVEN}, headers={"X-Emulator-Token": ""})
            journal = client.get("/_emulator/journal").text

        assert (4, True) == (refused.returncode, "EXTCLI_CONTROL_TOKEN" in refused.stderr)
        assert 0 == admitted.returncode
        served.process.terminate()
        output, log = served.process.communicate(timeout=60)

    assert [] == [text for text in (output, log, journal, admitted.stderr, refused.stderr) if GIVEN in text]


@pytest.mark.parametrize("given", ["short", "with a space and more text", "é" * 20])
def test_an_unfit_token_is_refused_without_showing_it(given: str):
    with server_process(EXTCLI_SERVE_CONTROL_TOKEN=given) as served:
        _, log = served.process.communicate(timeout=60)

    assert 2 == served.process.returncode
    assert "EXTCLI_SERVE_CONTROL_TOKEN: " in log
    assert given not in log
