"""`extcli connect`: the printed lines work where they are pasted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support.program import SECRET_BASE64
from support.socket_client import SocketClient

UNREACHABLE = "http://127.0.0.1:1"


def text_in_quotes(lines: str, start: str) -> str:
    """Return the first quoted string of the line with this start."""
    (line,) = (line for line in lines.splitlines() if line.startswith(start))
    return str(json.loads(f'"{line.split(chr(34))[1]}"'))


def test_the_service_is_not_contacted(extcli):
    for client in ("js", "node", "cpp", "unity", "curl", "env"):
        result = extcli("connect", client, "--url", UNREACHABLE, "-v")

        assert (0, "") == (result.exit_code, result.stderr)
        assert "127.0.0.1:1" in result.stdout


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_curl_line_runs(extcli, in_a_shell):
    extcli("vote", "cast", "--value", "3", "--channel", "it's")
    line = extcli("connect", "curl", "--channel", "it's", env={"EXTCLI_SECRET": SECRET_BASE64}).stdout

    assert SECRET_BASE64 not in line
    assert 1 == json.loads(in_a_shell(f"export EXTCLI_SECRET={SECRET_BASE64}\n{line}"))["stats"]["count"]


def test_the_env_lines_set_url_client_id_and_channel_and_unset_a_socket_of_another_service(extcli, in_a_shell):
    url = f"{UNREACHABLE}/_ns/blue"
    elsewhere = {"EXTCLI_WS_URL": "wss://sockets.example/ws"}
    options = ("--client-id", "o'ther", "--channel", "7 7", "--url", url)
    own, other = (extcli("connect", "env", *args, env=elsewhere).stdout for args in ((), options))

    script = f'{other}printf "%s|" "$EXTCLI_URL" "$EXTCLI_CLIENT_ID" "$EXTCLI_CHANNEL" "${{EXTCLI_WS_URL-none}}"'
    assert f"{url}|o'ther|7 7|none|" == in_a_shell(script)
    assert "export EXTCLI_WS_URL=wss://sockets.example/ws\n" in own


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


@pytest.mark.parametrize(
    ("client", "program", "name"),
    [
        ("python", sys.executable, "sign.py"),
        pytest.param(
            "node", "node", "sign.mjs", marks=pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")
        ),
    ],
)
def test_the_printed_program_signs_for_production_and_by_the_clock_of_a_sandbox(
    extcli, production, guarded, folder: Path, client: str, program: str, name: str
) -> None:
    (folder / name).write_text(extcli("connect", client, "--sign").stdout)
    (folder / "secret").write_text(f"{SECRET_BASE64}\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}

    def header(*args: str, **variables: str) -> dict[str, str]:
        environment = {**kept, "EXTCLI_SECRET_FILE": "secret", **variables}
        printed = subprocess.run(
            [program, name, *args], env=environment, cwd=folder, capture_output=True, text=True, check=True, timeout=60
        ).stdout
        head, _, value = printed.strip().partition(": ")
        return {head: value}

    def caller(url: str, headers: dict[str, str]) -> tuple[int, str, str]:
        found = httpx.get(f"{url}/v1/e/user_info", headers=headers)
        return found.status_code, found.json().get("role", ""), found.json().get("channel_id", "")

    by_the_machine = header("viewer", "1001", "7")
    assert (200, "viewer", "1001") == caller(production.url, by_the_machine)
    assert (200, "backend", "1001") == caller(production.url, header("backend", "1001"))
    extcli("clock", "advance", "8d", env=guarded, exits=0)
    assert 401 == caller(guarded["EXTCLI_URL"], by_the_machine)[0]
    assert (200, "viewer", "1001") == caller(guarded["EXTCLI_URL"], header("viewer", "1001", "7", **guarded))
