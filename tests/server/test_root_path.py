"""`extcli serve --root-path`: the service below a path, without a proxy, and for the commands and the plugin."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.core.errors import ConfigurationError
from emulator.core.settings import Settings, read_settings
from support import preloaded
from support.exec_process import run_exec
from support.plugin_runs import run_pytest
from support.process import server_process
from support.service import CLIENT_ID, Client, LiveServer, RunningService, live_server
from support.socket_client import SocketClient

NAVIGATION = {"Accept": "text/html"}
TOKEN = "a-token-of-the-test-0123456789"
TEST = """
def test_it(extcli):
    extcli.viewer().vote("boss", 1)
    assert extcli.viewer().poll("boss")["count"] == 1
    assert "/muxy/_ns/" in extcli.url
"""
CONFTEST = """
import pytest
@pytest.fixture(scope="session")
def extcli_serve_args(): return ["--root-path", "/muxy"]
"""
PRINT_URLS = "import os; print(os.environ['EXTCLI_URL'], os.environ['EXTCLI_WS_URL'])"


@pytest.fixture(scope="module")
def below() -> Iterator[LiveServer]:
    with live_server(Settings(root_path="/muxy", control_token=TOKEN)) as live:
        yield live


def answer(below: LiveServer, target: str) -> tuple[int, Any]:
    """Return the status and the JSON of the response to GET with this request target."""
    credential = below.client("viewer", user="1", channel="777").headers["Authorization"]
    head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {credential}\r\nConnection: close\r\n\r\n"
    received, _, body = below.exchange(head.encode()).partition(b"\r\n\r\n")
    return int(received.split()[1]), json.loads(body or b"{}")


@pytest.mark.parametrize("start", ["/muxy", "", "http://localhost/muxy", "http://localhost"])
def test_the_path_may_be_there_or_stripped(below: LiveServer, start: str):
    slash = "" if start.endswith("/muxy") else "/"

    assert [200, 200] == [answer(below, f"{start}/v1/e/{each}")[0] for each in ("vote?id=a", "user_info")]
    assert ["extcli"] * 2 == [answer(below, f"{start}{slash}{each}")[1]["name"] for each in ("", "?a=/muxy")]


@pytest.mark.parametrize("target", ["/muxyz/v1/e/vote", "/Muxy/v1/e/vote", "/a/muxy/v1/e/vote", "/muxy/muxy/v1/e/vote"])
def test_no_other_path_is_stripped(below: LiveServer, target: str):
    assert 404 == answer(below, target)[0]


@pytest.mark.parametrize("path", ["/muxy", ""])
def test_sockets_open_with_the_path_and_without(below: LiveServer, path: str):
    service = RunningService(below.url.removesuffix("/muxy") + path)
    service._http.post("/_ns/blue", headers={"X-Emulator-Token": TOKEN}).raise_for_status()
    for address in (f"/0.2.0/{CLIENT_ID}", "/_ns/blue/ws"):
        with SocketClient(service, address) as game:
            assert "errors" in game.request("get", "state")


def test_a_request_that_cannot_be_read_is_in_the_journal_of_its_namespace(below: LiveServer):
    with Client(base_url=f"{below.url}/_ns/blue/", headers={"X-Emulator-Token": TOKEN}) as client:
        client.post("_emulator/reset").raise_for_status()
        below.exchange(b"GET /muxy/_ns/blue/v1/e/vote HTTP/1.1\r\nBad Header\r\n\r\n")
        (entry,) = client.get("_emulator/journal", params={"status": "4xx"}).json()["entries"]

    assert "/v1/e/vote" == entry["path"]


def test_what_the_service_names_begins_with_the_path(below: LiveServer):
    for prefix in ("/muxy", "/muxy/_ns/blue"):
        with Client(base_url=f"{below.url.removesuffix('/muxy')}{prefix}/") as client:
            links = client.get("").json()
            entered = client.get("_emulator/enter", params={"token": TOKEN}, headers=NAVIGATION)
            document = client.get("schema/openapi.json").json()

            assert (f"{prefix}/schema", f"{prefix}/_emulator/") == (links["documentation"], links["dashboard"])
            assert f"{prefix}/_emulator/" == entered.headers["location"]
            assert "Path=/muxy" in entered.headers["set-cookie"].split("; ")
            assert f"{prefix}/_emulator/" == client.get("_emulator/overview", headers=NAVIGATION).headers["location"]
            assert [{"url": prefix}] == document["servers"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        *(
            (path, "between slashes, such as /muxy")
            for path in ("muxy", "/", "/muxy/", "//muxy", "/a b", "/ä", "/a%20b", "/..")
        ),
        *((path, "use another, such as /muxy") for path in ("/v1", "/_ns/blue", "/a/_emulator", "/schema/docs", "/ws")),
    ],
)
def test_another_path_is_refused_with_what_to_do(path: str, problem: str):
    with pytest.raises(ConfigurationError, match=re.escape(f"--root-path: {path!r}") + f".*{problem}"):
        read_settings(production=False, extensions=None, check_data=str, data="sqlite://", root_path=path)


@pytest.mark.slow
def test_commands_reach_the_service_by_the_url_that_it_prints():
    with server_process(EXTCLI_SERVE_ROOT_PATH="/muxy") as served:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/muxy", served.url)

        def run(*words: str) -> str:
            with preloaded.start([*words, "--url", served.url], os.environ) as process:
                printed, log = process.communicate(60)
            assert 0 == process.returncode, log
            return printed

        run("wait")
        run("vote", "cast", "lunch", "--value", "1")
        blue = run("ns", "new", "blue", "-o", "plain").strip()
        assert f"{served.url}/_ns/blue" == blue
        assert "lunch" in run("contents", "polls")
        assert f"{served.url}/_ns/demo/_emulator/" in run("demo", "-o", "plain")
        assert "/v1/e/vote" in run("logs", "-o", "json")
        assert "/v1/e/vote" not in run("logs", "--ns", "blue", "-o", "json")

    code, printed, _ = run_exec("--quiet", "--root-path", "/muxy", "--", sys.executable, "-ISc", PRINT_URLS)
    assert (0, True) == (code, bool(re.fullmatch(r"http://\S+/muxy ws://\S+/muxy/ws\n", printed)))


@pytest.mark.long
def test_the_plugin_has_the_path(tmp_path: Path):
    with server_process(EXTCLI_SERVE_ROOT_PATH="/muxy") as served:
        given = run_pytest(tmp_path, "--extcli-url", served.url, files={"test": TEST})
        assert 0 == given.exit_code, given.output

    own = run_pytest(tmp_path, files={"conftest": CONFTEST, "test": TEST})
    assert 0 == own.exit_code, own.output
