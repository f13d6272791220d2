"""Pages on https in Chromium, which trusts `extcli serve --tls` after the command that its third line names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from extcli.running.certificates import own_context
from support.authority import STATE
from support.browser import copy_pages, run_browser, serve_folder
from support.process import server_process

pytestmark = pytest.mark.long


def test_a_page_on_https_calls_the_service_without_an_error_in_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if not shutil.which("certutil"):
        pytest.skip("needs certutil of libnss3-tools")
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (pages := tmp_path / "pages").mkdir()
    with server_process("--tls") as served, serve_folder(pages, own_context("")) as site:
        served.process.stdout.readline()
        command = served.process.stdout.readline().partition(": ")[2]
        subprocess.run(["sh", "-c", command], check=True, timeout=60)
        copy_pages(pages, served.url)

        result = run_browser("browser_tls.js", site, served.url)

    assert {"voted": 1, "heard": {"text": "hi"}} == {name: result[name] for name in ("voted", "heard")}
    log = result["log"]
    assert ([], [], []) == (log["consoleErrors"], log["errorResponses"], log["unexpectedOrigins"])
