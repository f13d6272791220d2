"""`extcli connect`: the printed lines work where they are pasted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from support.program import PROGRAM, SECRET_BASE64
from support.socket_client import SocketClient

UNREACHABLE = "http://127.0.0.1:1"


def in_a_shell(script: str) -> str:
    """Run a script with the installed program in its path, and return its output."""
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return process.stdout


def text_in_quotes(lines: str, start: str) -> str:
    """Return the first quoted string of the line with this start."""
    (line,) = (line for line in lines.splitlines() if line.startswith(start))
    return str(json.loads(f'"{line.split(chr(34))[1]}"'))


@pytest.mark.parametrize("client", ["js", "node", "cpp", "unity", "curl", "env"])
def test_the_service_is_not_contacted(extcli, client):
    for form in ("table", "plain"):
        result = extcli("connect", client, "--url", UNREACHABLE, "-v", "-o", form)

        assert (0, "") == (result.exit_code, result.stderr)
        assert "127.0.0.1:1" in result.stdout


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
@pytest.mark.parametrize("secret", ["", SECRET_BASE64])
def test_the_curl_line_runs(extcli, secret: str):
    extcli("vote", "cast", "--value", "3", "--channel", "it's")
    line = extcli("connect", "curl", "--channel", "it's", env={"EXTCLI_SECRET": secret}).stdout

    assert not secret or secret not in line
    assert 1 == json.loads(in_a_shell(f"export EXTCLI_SECRET={secret}\n{line}"))["stats"]["count"]


def test_the_env_lines_set_url_client_id_and_channel(extcli):
    env = extcli(
        "connect", "env", "--client-id", "o'ther", "--channel", "7 7", "--url", f"{UNREACHABLE}/_ns/blue"
    ).stdout

    script = f'{env}printf "%s|" "$EXTCLI_URL" "$EXTCLI_CLIENT_ID" "$EXTCLI_CHANNEL"'

    assert f"{UNREACHABLE}/_ns/blue|o'ther|7 7|" == in_a_shell(script)


def test_env_unsets_a_socket_address_of_another_service(extcli):
    elsewhere = {"EXTCLI_WS_URL": "wss://sockets.example/ws"}

    own, other = (extcli("connect", "env", *args, env=elsewhere).stdout for args in ((), ("--url", UNREACHABLE)))

    assert "export EXTCLI_WS_URL=wss://sockets.example/ws\n" in own
    assert "unset EXTCLI_WS_URL\n" in other


@pytest.mark.parametrize("place", ["", "/_ns/blue"])
@pytest.mark.parametrize(("client", "start"), [("cpp", "const std::string"), ("unity", "await transport.Open")])
def test_a_game_can_connect_to_the_printed_address(extcli, live, place, client, start):
    lines = extcli("connect", client, "--url", f"{live.url}{place}", "--client-id", "a/b").stdout
    address = text_in_quotes(lines, start)

    assert address.endswith(f"{place}/0.2.0/a%2Fb")
    with SocketClient(live, address.partition(live.url.partition("://")[2])[2]) as game:
        assert {"ok": True} == game.data("subscribe", "authentication")


def test_js_escapes_values(extcli):
    page = extcli(
        "connect", "js", "--channel", '"</script>', "--client-id", "'\"</script>", "--url", f'{UNREACHABLE}/"><script>'
    ).stdout

    assert 3 == page.count("</script>")
    assert 'src="http://127.0.0.1:1/&quot;&gt;&lt;script&gt;/_emulator/sdk.js"' in page
    assert 'data-channel-id="&quot;&lt;/script&gt;"' in page


# `extcli connect … --sign`: the printed code signs tokens that a service accepts, also after a move of its clock


Header = Callable[..., dict[str, str]]


@pytest.fixture(
    params=[
        "python",
        pytest.param("node", marks=pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")),
    ]
)
def header(extcli, folder: Path, request: pytest.FixtureRequest) -> Header:
    """Run the printed program, and return the header that it prints."""
    client = request.param
    program, name = {"python": (sys.executable, "sign.py"), "node": ("node", "sign.mjs")}[client]
    (folder / name).write_text(extcli("connect", client, "--sign").stdout)
    (folder / "secret").write_text(f"{SECRET_BASE64}\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}

    def run(*args: str, **variables: str) -> dict[str, str]:
        environment = {**kept, "EXTCLI_SECRET_FILE": "secret", **variables}
        printed = subprocess.run(
            [program, name, *args], env=environment, cwd=folder, capture_output=True, text=True, check=True, timeout=60
        ).stdout
        head, _, value = printed.strip().partition(": ")
        return {head: value}

    return run


def test_production_accepts_the_token_of_each_role(header: Header, production) -> None:
    for args in (("backend", "1001"), ("viewer", "1001", "7"), ("broadcaster", "1001", "1001")):
        info = httpx.get(f"{production.url}/v1/e/user_info", headers=header(*args))

        assert (200, *args[:2]) == (info.status_code, info.json()["role"], info.json()["channel_id"])


def test_the_token_follows_a_moved_clock(header: Header, live) -> None:
    live.advance(8 * 86_400_000)
    url = f"{live.url}/v1/e/vote"

    signed_by_the_machine = httpx.get(url, headers=header("viewer", "1001", "7"))
    signed_by_the_service = httpx.get(url, headers=header("viewer", "1001", "7", EXTCLI_URL=live.url))

    assert [401, 200] == [signed_by_the_machine.status_code, signed_by_the_service.status_code]


def test_a_service_beyond_loopback_tells_the_time_with_the_control_token(header: Header, guarded) -> None:
    info = httpx.get(f"{guarded['EXTCLI_URL']}/v1/e/user_info", headers=header("viewer", "1001", "7", **guarded))

    assert (200, "viewer") == (info.status_code, info.json()["role"])
