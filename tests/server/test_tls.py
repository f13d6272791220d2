"""`extcli serve --tls`: https and wss with a certificate of its own, on uvloop and on asyncio (which Windows has)."""

from __future__ import annotations

import json
import re
import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from emulator.process.http_server import Tls
from extcli.main import main
from extcli.running.certificates import own_tls_context
from support.authority import STATE, authority_in, client_of, trusting
from support.process import STOP_TIMEOUT, server_process, unexpected_log_lines
from support.service import RunningService, live_server
from support.socket_client import SocketClient


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of state, whose authority all services of this module share."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def on_uvloop(state: Path) -> Iterator[RunningService]:
    with server_process("--tls", **{STATE: str(state)}) as served:
        yield served


@pytest.fixture(scope="module")
def on_asyncio(state: Path) -> Iterator[RunningService]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(STATE, str(state))
        tls = Tls(own_tls_context(""))
    with live_server(tls=tls) as live:
        yield live


@pytest.fixture(params=["on_uvloop", "on_asyncio"])
def secure(request: pytest.FixtureRequest) -> RunningService:
    """A service with a certificate of its own."""
    service: RunningService = request.getfixturevalue(request.param)
    return service


@pytest.fixture
def context(secure: RunningService, state: Path) -> ssl.SSLContext:
    """Trust in the authority."""
    return trusting(authority_in(state))


@pytest.fixture
def client(secure: RunningService, context: ssl.SSLContext) -> Iterator[httpx.Client]:
    with client_of(secure, context) as client:
        yield client


def encrypted(service: RunningService, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Return a new connection, for bytes that no client for HTTP would send."""
    return context.wrap_socket(service.connect(), server_hostname="127.0.0.1")


def test_calls_of_every_size_and_in_small_pieces_are_served_over_https(
    secure: RunningService, context: ssl.SSLContext, client: httpx.Client
):
    value = {"text": "".join(chr(97 + at % 26) for at in range(60_000))}
    voted = client.post("/v1/e/vote?id=lunch", json={"value": 2})
    written = client.post("/v1/e/viewer_state", json=value)
    assert [200, 200] == [each.status_code for each in (voted, written)]
    assert value == client.get("/v1/e/viewer_state").json()

    body = json.dumps(value)[:-12_000].encode() + b'"}'
    head = f"POST /v1/e/viewer_state HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
    request = f"{head}authorization: {client.headers['authorization']}\r\n\r\n".encode() + body
    with encrypted(secure, context) as connection:
        for at in range(0, len(request), 197):  # each piece is a record of TLS
            connection.sendall(request[at : at + 197])
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body) == client.get("/v1/e/viewer_state").json()


def test_a_game_and_a_page_are_served_and_closed_over_wss(secure: RunningService, context: ssl.SSLContext):
    url = f"{secure.url.replace('http', 'ws', 1)}/app/key?protocol=7"
    with SocketClient(secure, ssl=context) as game, connect(url, ssl=context) as page:
        assert 1 == game.request("ping")["meta"]["request_id"]
        assert "pusher:connection_established" == json.loads(page.recv(10))["event"]
        game.socket.close()
        assert 1000 == game.socket.close_code

    with SocketClient(secure, ssl=context) as game:
        game.socket.send("x" * 2_200_000)
        with pytest.raises(ConnectionClosed) as closed:
            game.socket.recv(10)
    assert closed.value.rcvd is not None
    assert 1009 == closed.value.rcvd.code


def test_a_refused_request_gets_its_whole_response_and_a_fault_resets_a_connection(
    secure: RunningService, context: ssl.SSLContext, client: httpx.Client
):
    with encrypted(secure, context) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 200_000)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 431 ")

    fault = {"match": "POST /v1/e/rank", "effect": "reset", "times": 1}
    client.post("/_emulator/faults", json=fault).raise_for_status()
    with pytest.raises(httpx.TransportError):
        client.post("/v1/e/rank?id=words", json={"key": "cat"})
    assert 200 == client.post("/v1/e/rank?id=words", json={"key": "cat"}).status_code


def test_the_dashboard_and_its_lines_have_the_scheme_of_the_request(secure: RunningService, client: httpx.Client):
    page = client.get("/_emulator/").text
    rig = client.get("/_emulator/rig", params={"url": f"{secure.url}/panel.html"})

    assert f"{secure.url}/_emulator/sdk.js" in page
    assert f"{secure.url.replace('https', 'wss')}/0.2.0/" in page
    assert not re.search(r"(http|ws)://127\.0\.0\.1", page)
    assert 400 == rig.status_code
    assert "is a page of this service" in rig.text


def test_clients_of_all_loopback_addresses_and_names_are_served(state: Path, on_uvloop: RunningService):
    port = urlsplit(on_uvloop.url).port
    context = trusting(authority_in(state))
    answers = {
        host: httpx.get(f"https://{host}:{port}/_emulator/ready", verify=context, trust_env=False).status_code
        for host in ("127.0.0.1", "[::1]", "localhost")
    }

    assert {"127.0.0.1": 200, "[::1]": 200, "localhost": 200} == answers


def test_it_says_how_to_trust_the_authority_and_stops_in_spite_of_idle_clients(state: Path):
    with server_process("--tls", **{STATE: str(state)}) as served, ExitStack() as idle:
        context = trusting(authority_in(state))
        client = idle.enter_context(client_of(served, context))
        assert 200 == client.get("/_emulator/ready").status_code
        idle.enter_context(SocketClient(served, ssl=context))
        idle.enter_context(served.connect())  # sends nothing
        with pytest.raises(httpx.TransportError):
            httpx.get(served.url.replace("https", "http"), trust_env=False)

        assert (0, []) == (served.stop(signal.SIGTERM), unexpected_log_lines(served))
        assert re.fullmatch(r"listening on https://127\.0\.0\.1:[1-9]\d*\n", served.first_line)
        authority, how, *_ = served.process.stdout.read().splitlines()
        assert (f"certificate authority: {authority_in(state)}", True) == (
            authority,
            how.startswith("to trust it in a browser, run once: "),
        )


def test_two_first_starts_at_once_agree_and_a_third_keeps_the_authority(tmp_path: Path):
    with ExitStack() as stack:
        both = [stack.enter_context(server_process("--tls", **{STATE: str(tmp_path)})) for _ in range(2)]
        made = authority_in(tmp_path).read_bytes()
        both.append(stack.enter_context(server_process("--tls", **{STATE: str(tmp_path)})))
        context = trusting(authority_in(tmp_path))

        assert [200] * 3 == [client_of(each, context).get("/_emulator/ready").status_code for each in both]
        assert made == authority_in(tmp_path).read_bytes()
        folder = authority_in(tmp_path).parent
        assert {"authority.pem", "authority-key.pem", "lock"} == {each.name for each in folder.iterdir()}
        assert 0o600 == (folder / "authority-key.pem").stat().st_mode & 0o777


def test_a_damaged_authority_is_named(tmp_path: Path):
    folder = authority_in(tmp_path).parent
    folder.mkdir(parents=True)
    authority_in(tmp_path).write_text("nothing")

    with server_process("--tls", **{STATE: str(tmp_path)}) as served:
        assert 2 == served.process.wait(STOP_TIMEOUT)
        assert f"extcli serve: --tls: cannot use {folder}: " in served.process.stderr.read()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate, its key, the key in a passphrase, another key, and a text."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("files")

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True, timeout=60)

    curve = ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out"]
    openssl(*curve, "key.pem")
    openssl(*curve, "other.pem")
    openssl("ec", "-in", "key.pem", "-aes128", "-passout", "pass:secret", "-out", "encrypted.pem")
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    openssl("req", "-x509", "-key", "key.pem", "-days", "1", "-subj", "/CN=x", *names, "-out", "certificate.pem")
    (folder / "text.pem").write_text("a text\n")
    return folder


def test_files_of_the_user_are_served_without_advice(files: Path, tmp_path: Path):
    given = {"EXTCLI_SERVE_TLS_CERT": f"{files}/certificate.pem", "EXTCLI_SERVE_TLS_KEY": f"{files}/key.pem"}
    with server_process(**given, **{STATE: str(tmp_path)}) as served:
        context = ssl.create_default_context(cafile=files / "certificate.pem")
        assert 200 == client_of(served, context).get("/_emulator/ready").status_code
        assert (0, "") == (served.stop(signal.SIGTERM), served.process.stdout.read())
        assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("certificate", "key", "option", "cause"),
    [
        ("certificate.pem", None, "--tls-cert {}/certificate.pem", "needs --tls-key too"),
        (None, "key.pem", "--tls-key {}/key.pem", "needs --tls-cert too"),
        ("none.pem", "key.pem", "--tls-cert {}/none.pem", "No such file or directory"),
        ("certificate.pem", "none.pem", "--tls-key {}/none.pem", "No such file or directory"),
        ("text.pem", "key.pem", "--tls-cert {}/text.pem", "is not a certificate in PEM format"),
        ("certificate.pem", "text.pem", "--tls-key {}/text.pem", "is not an unencrypted key in PEM format"),
        ("certificate.pem", "encrypted.pem", "--tls-key {}/encrypted.pem", "is not an unencrypted key in PEM format"),
        ("certificate.pem", "other.pem", "--tls-key {}/other.pem", "is not the key of --tls-cert"),
    ],
)
def test_wrong_files_are_refused_in_one_line(
    files: Path, capsys: pytest.CaptureFixture[str], certificate: str | None, key: str | None, option: str, cause: str
):
    given = [f"--tls-cert={files}/{certificate}"] * bool(certificate) + [f"--tls-key={files}/{key}"] * bool(key)

    assert 2 == main(["serve", "--port", "0", *given])
    assert f"extcli serve: {option.format(files)}: {cause}\n" == capsys.readouterr().err
