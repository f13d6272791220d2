"""A service whose certificate a private CA signed: refused with the variable that names the CA, and reached with it."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from extcli.api.http import certificates


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def private(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a service with TLS, and the file that a client must trust."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", str(key), "-out",
        str(certificate), "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}", certificate
        server.shutdown()
        thread.join()
    certificates.cache_clear()


@pytest.mark.parametrize("is_trusted", [False, True])
def test_the_variable_for_a_private_ca_is_named_and_works(
    extcli, private: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, is_trusted: bool
):
    url, certificate = private
    certificates.cache_clear()
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    result = extcli("api", "GET", "/v1/e/user_info", "--url", url, env={"EXTCLI_TOKEN": ""})

    assert is_trusted or "set SSL_CERT_FILE to the CA's file" in result.stderr
    assert not is_trusted or "cannot connect" not in result.stderr
