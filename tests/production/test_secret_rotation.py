"""Rotating a secret while people vote, with the commands of the guide."""

from __future__ import annotations

import base64
import signal
import threading
from pathlib import Path
from queue import SimpleQueue

from extcli.main import main
from support.process import ServerProcess, server_process
from support.service import CLIENT_ID, Client, real_seconds


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
            while used.get(timeout=20) != second:
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
