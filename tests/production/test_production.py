"""Token verification in production, also while a secret is rotated (Authentication 1-5; rulings A1, A2, A5)."""

from __future__ import annotations

import base64
import signal
import threading
from pathlib import Path
from queue import SimpleQueue

import pytest

from extcli.main import main
from support.authentication import authenticate
from support.process import ServerProcess, server_process
from support.service import (
    CLIENT_ID,
    Client,
    LiveServer,
    in_production,
    live_server,
    real_seconds,
)
from support.socket_client import SocketClient


def soon() -> int:
    return real_seconds() + 600


def test_the_log_recommends_exp_once_per_extension(production: LiveServer, caplog: pytest.LogCaptureFixture):
    production.service.tokens._warned_client_ids.clear()
    for number in range(3):
        production.client("backend", jti=f"{number}").get("user_info").raise_for_status()

    warnings = [record.message for record in caplog.records if "has no exp" in record.message]

    assert [f"{CLIENT_ID}: a backend token has no exp and never expires; sign tokens with exp"] == warnings


@pytest.mark.parametrize("stage", ["production", "testing", None])
def test_a_token_of_another_stage_is_accepted(production: LiveServer, stage: str | None):
    assert 200 == production.client("viewer", exp=soon(), allowed_stage=stage).get("user_info").status_code


def test_tokens_of_the_service_outlive_a_restart_and_open_no_other_service(production: LiveServer, tmp_path):
    # Tokens of the service outlive a restart
    settings = in_production(data=f"sqlite:///{tmp_path}/data.db")
    with live_server(settings) as live:
        token = _access_token(live)

    with live_server(settings) as live:
        record = live.bearer(token).get("user_info").json()

    assert ("broadcaster", "777") == (record["role"], record["channel_id"])

    # A token issued by another service gets 401
    with live_server(in_production(data=f"sqlite:///{tmp_path}/other.db")) as live:
        token = _access_token(live)
        here = live.bearer(token).get("user_info").status_code

    assert [200, 401] == [here, production.bearer(token).get("user_info").status_code]


def _access_token(live: LiveServer) -> str:
    """Return a token that the service issues to a game of channel 777."""
    broadcaster = live.client("broadcaster", user="777", channel="777", exp=soon())
    with SocketClient(live) as game:
        return str(authenticate(game, jwt=broadcaster.headers["Authorization"].split()[1])["jwt"])


def command(file: Path, verb: str, *args: str) -> bytes:
    """Run `extcli extension VERB`; return the newest secret."""
    assert 0 == main(["extension", verb, str(file), "--client-id", CLIENT_ID, "-q", *args])
    newest = max(file.parent.glob("*.secret"), key=lambda path: path.stat().st_mtime_ns)
    return base64.b64decode(newest.read_text())


def reload(served: ServerProcess) -> None:
    """Send SIGHUP and wait until the service has logged the reload."""
    served.process.send_signal(signal.SIGHUP)
    assert served.process.stderr is not None
    assert any("reloaded by process" in line for line in served.process.stderr)


def test_no_vote_is_refused_while_a_secret_is_rotated_and_retired(tmp_path: Path):
    file = tmp_path / "extensions.toml"
    data = f"sqlite:///{tmp_path}/data.db"
    first = command(file, "init")
    with server_process("--production", "--extensions", str(file), "--data", data) as served:
        done, statuses = threading.Event(), list[int]()
        issued, used = [first], SimpleQueue[bytes]()

        def client(secret: bytes) -> Client:
            return served.client("viewer", user="1", channel="777", key=secret, exp=real_seconds() + 600)

        def vote() -> None:
            while not done.is_set():
                secret = issued[-1]
                with client(secret) as voter:
                    statuses.extend(voter.post("vote", json={"value": 1}).status_code for _ in range(5))
                used.put(secret)

        voting = threading.Thread(target=vote)
        voting.start()
        try:
            second = command(file, "rotate")
            reload(served)
            both = [client(secret).get("vote").status_code for secret in (first, second)]
            issued.append(second)
            while used.get(timeout=60) != second:
                pass
            assert second == command(file, "retire")
            reload(served)
        finally:
            done.set()
            voting.join()
        after = [client(secret).get("vote").status_code for secret in (first, second)]

    assert {200} == set(statuses)
    assert [200, 200] == both
    assert [401, 200] == after
