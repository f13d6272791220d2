"""Runs the scripts of `tests/sdk` in Node: the published SDK, unmodified, in Node itself or in Chromium.

`make test` installs their npm packages.
"""

from __future__ import annotations

import functools
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.service import LiveServer

SDK = Path(__file__).parent.parent / "sdk"
BUNDLE = SDK / "node_modules" / "@muxy" / "extensions-js" / "dist" / "medkit.umd.js"
MODULE = BUNDLE.with_name("medkit.esm.js")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXAMPLE = SDK.parent.parent / "examples" / "extension"
README_ADDRESS = "http://127.0.0.1:8282"
"""The URL of the service in every page."""
ScriptOutput = dict[str, Any]
"""The JSON object that a script prints."""


def run_script(name: str, *args: str, preload: Path | None = None) -> ScriptOutput:
    """Run a script, after `preload`, and return its output. Skips the test if Node.js or a package is missing."""
    if not shutil.which("node") or not BUNDLE.is_file():
        pytest.skip("needs Node.js and the packages that `make test` installs")
    command = ["node", *(["--require", str(preload)] if preload else []), str(SDK / name), *args]
    result = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert 0 == result.returncode, result.stderr
    return dict(json.loads(result.stdout.splitlines()[-1]))  # the SDK may print lines before it


def run_browser(name: str, *args: str) -> ScriptOutput:
    """Run a script that drives Chromium. Skips the test if there is none."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        pytest.skip("needs Chromium")
    return run_script(name, browser, *args)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve_folder(folder: Path, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve a folder over HTTP, or over TLS, and yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def copy_pages(folder: Path, service: str) -> None:
    """Copy the pages of the tests and of the example, with `service` as their URL, and link the SDK."""
    for source in (SDK / "pages", EXAMPLE):
        for page in source.iterdir():
            if page.suffix in (".html", ".js", ".css") and page.name != BUNDLE.name:
                (folder / page.name).write_text(page.read_text().replace(README_ADDRESS, service))
    for script in (BUNDLE, MODULE):
        (folder / script.name).symlink_to(script)


def browse_pages(
    folder: Path, live: LiveServer, script: str, *args: str, more: Mapping[str, str] | None = None
) -> ScriptOutput:
    """Run a script that drives Chromium on pages in a folder. Those in `namespaced/` use the namespace `browser`.

    `more` has the texts of further pages by name.
    """
    for name, text in (more or {}).items():
        (folder / name).write_text(text)
    (folder / "namespaced").mkdir()
    if BUNDLE.is_file():
        copy_pages(folder, live.url)
        copy_pages(folder / "namespaced", f"{live.url}/_ns/browser")
    # Pages use a namespace that exists; they create none.
    httpx.post(f"{live.url}/_ns/browser").raise_for_status()
    with serve_folder(folder) as pages:
        return run_browser(script, pages, live.url, *args)
