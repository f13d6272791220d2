"""A proxy on loopback that stands for a hostile service: it alters the JSON of answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

Alteration = Callable[[Any], Any]


@dataclass
class AlteringProxy:
    """Forwards each request, and alters the answer if its path matches."""

    url: str
    alter: Alteration | None = None
    """What to make of the document of an answer; `None` for nothing."""
    only: str = ""
    """The path whose answers are altered."""
    seen: dict[str, Any] = field(default_factory=dict)
    """The latest document by path, before it was altered."""


@contextmanager
def altering_proxy(target: str) -> Iterator[AlteringProxy]:
    """Run a proxy in front of the service at `target`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.proxy = AlteringProxy(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    server.target = urlsplit(target).netloc  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.proxy  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _forward(self) -> None:
        proxy: AlteringProxy = self.server.proxy  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        connection = HTTPConnection(self.server.target, timeout=20)  # type: ignore[attr-defined]
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        connection.request(self.command, self.path, body, headers | {"accept-encoding": "identity"})
        answer = connection.getresponse()
        content = self._altered(proxy, answer.read())
        connection.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _altered(self, proxy: AlteringProxy, content: bytes) -> bytes:
        path = self.path.partition("?")[0]
        try:
            documents = [json.loads(line) for line in content.splitlines()] if path.endswith("stream") else []
            document = documents or json.loads(content)
        except ValueError:
            return content
        proxy.seen[path] = document
        if proxy.alter is None or path != proxy.only:
            return content
        if documents:
            return b"".join(_encoded(proxy.alter(each)) + b"\n" for each in documents)
        return _encoded(proxy.alter(document))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward

    def log_message(self, *args: object) -> None: ...


def _encoded(document: Any) -> bytes:
    return document if isinstance(document, bytes) else json.dumps(document).encode()
