"""Runs the scripts of `tests/sdk` in Node: the published SDK, unmodified, in bare Node or in Chromium.

`make test` installs the packages that they need from npm.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from support.service import LiveServer

SDK = Path(__file__).parent.parent / "sdk"
BUNDLE = SDK / "node_modules" / "@muxy" / "extensions-js" / "dist" / "medkit.umd.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXAMPLE = SDK.parent.parent / "examples" / "extension"
README_ADDRESS = "http://127.0.0.1:8282"
"""Where the service is, in every page."""
ScriptOutput = dict[str, Any]
"""What a script prints: one JSON object."""


def run_script(name: str, *args: str) -> ScriptOutput:
    """Run a script to its end and read what it said."""
    if not shutil.which("node") or not BUNDLE.is_file():
        pytest.skip("needs Node.js and the packages that `make test` installs")
    result = subprocess.run(["node", str(SDK / name), *args], capture_output=True, text=True, timeout=90, check=False)
    assert 0 == result.returncode, result.stderr
    return dict(json.loads(result.stdout.splitlines()[-1]))  # the SDK itself prints what it likes before


def run_browser(name: str, *args: str) -> ScriptOutput:
    """Run a script that drives Chromium."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        pytest.skip("needs Chromium")
    return run_script(name, browser, *args)


def run_once(factory: pytest.TempPathFactory, name: str, produce: Callable[[], ScriptOutput]) -> ScriptOutput:
    """What `produce` returns: asked once for all workers, among which the tests of a file are dealt out."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    path = root / f"{name}.json"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            path.write_text(json.dumps(produce()))
        return dict(json.loads(path.read_text()))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve_folder(folder: Path) -> Iterator[str]:
    """Serve a folder at an origin of its own, until the context ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def copy_pages(folder: Path, service: str) -> None:
    """Copy the tests' pages and the example, which are to lead to `service`, to where they are served, and the SDK."""
    for source in (SDK / "pages", EXAMPLE):
        for page in source.iterdir():
            if page.suffix in (".html", ".js", ".css") and page.name != BUNDLE.name:
                (folder / page.name).write_text(page.read_text().replace(README_ADDRESS, service))
    (folder / BUNDLE.name).symlink_to(BUNDLE)


def browse_pages(factory: pytest.TempPathFactory, live: LiveServer, script: str, *args: str) -> ScriptOutput:
    """What a script that drives Chromium says of the pages; those under `namespaced/` lead to a namespace."""
    folder = factory.mktemp("pages")
    (folder / "namespaced").mkdir()
    if BUNDLE.is_file():
        copy_pages(folder, live.url)
        copy_pages(folder / "namespaced", f"{live.url}/_ns/browser")
    live.reset()
    with serve_folder(folder) as pages:
        return run_browser(script, pages, live.url, *args)
