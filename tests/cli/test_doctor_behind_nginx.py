"""`extcli doctor` at a deployment whose proxy denies `/_emulator/`, with the configuration of docs/deploying.md."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.plugin_runs import ROOT
from support.process import wait_until
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import LiveServer

NGINX = shutil.which("nginx")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
CLOSED = ["deny all;", "return 404;", "return 401;", "return 302 /login;", "return 503;"]
"""What a proxy may do instead of forwarding to the control API."""


def accepts(port: int) -> bool:
    with socket.socket() as wire:
        return wire.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def proxied(production: LiveServer, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Start nginx with the block of the page, and this in place of `deny all;`; return its URL."""
    if NGINX is None:
        pytest.skip("needs nginx")
    started: list[subprocess.Popen[bytes]] = []

    def start(closed: str) -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        found = re.search(r"```nginx\n(.*?)```", (ROOT / "docs/deploying.md").read_text(), re.DOTALL)
        assert found
        block = re.sub(r" *ssl_certificate.*\n", "", found[1].replace("listen 443 ssl", f"listen 127.0.0.1:{port}"))
        block = block.replace("127.0.0.1:8282", production.url.rpartition("/")[2]).replace("deny all;", closed)
        temporary = "".join(
            f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = tmp_path / "nginx.conf"
        config.write_text(
            f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/errors; worker_processes 1;"
            f"events {{}} http {{ access_log off; {temporary}\n{block}}}"
        )
        assert NGINX
        command = [NGINX, "-e", str(tmp_path / "errors"), "-p", str(tmp_path), "-c", str(config)]
        started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        wait_until(lambda: accepts(port))
        return f"http://127.0.0.1:{port}"

    yield start
    for each in started:
        each.terminate()
        each.wait(timeout=10)


@pytest.mark.parametrize("closed", CLOSED)
def test_a_deployment_whose_control_api_is_closed_is_healthy(
    extcli, proxied, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    (secret := tmp_path / "secret").write_text(SECRET_BASE64)
    secret.chmod(0o600)
    write_profiles(live={"url": proxied(closed), "production": True, "secret_file": str(secret)})

    result = extcli("doctor", "-p", "live", "-o", "json")

    found = {each["check"]: each for each in result.json["checks"]}
    assert [] == [each for each in found.values() if each["status"] == "fail"]
    assert 0 == result.exit_code
    is_hidden = "404" in closed  # as by the hosted backend, which has none
    assert ("ok" if is_hidden else "note") == found["service"]["status"]
    assert is_hidden or "its /_emulator/ is closed" in found["service"]["meaning"]
    assert ("ok", "ok") == (found["environment"]["status"], found["token"]["status"])
