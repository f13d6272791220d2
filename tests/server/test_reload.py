"""SIGHUP reloads `--extensions` and leaves connections open (operations, Starting)."""

from __future__ import annotations

import base64
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from support.process import (
    ServerProcess,
    server_process,
)
from support.pusher_client import PusherClient, pusher_channel
from support.service import CLIENT_ID, SECRET, Client, real_seconds
from support.socket_client import SocketClient

FRESH = b"a fresh secret that is long enough for HS256"
ADDED = "added-extension"


class ExtensionsFile:
    """The file that `--extensions` names."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **secrets: tuple[bytes, ...]) -> None:
        """Write these extensions and secrets; each `_` in a name becomes `-`."""
        tables = [
            f"[extensions.{name.replace('_', '-')}]\nsecrets = {[base64.b64encode(key).decode() for key in keys]}\n"
            for name, keys in secrets.items()
        ]
        self.path.write_text("".join(tables))
        self.path.chmod(0o600)


@pytest.fixture
def file(tmp_path: Path) -> ExtensionsFile:
    file = ExtensionsFile(tmp_path / "extensions.toml")
    file.write(my_extension=(SECRET,))
    return file


def production(file: ExtensionsFile) -> tuple[str, ...]:
    data = f"sqlite:///{file.path.parent}/data.db"
    return ("--production", "--extensions", str(file.path), "--data", data)


def client(served: ServerProcess, key: bytes, client_id: str = CLIENT_ID) -> Client:
    return served.client("admin", user="1", channel="777", client_id=client_id, key=key, exp=real_seconds() + 600)


def log_lines(served: ServerProcess) -> Iterator[str]:
    assert served.process.stderr is not None
    return iter(served.process.stderr.readline, "")


def hang_up(served: ServerProcess, expected: str, times: int = 1) -> list[str]:
    """Send SIGHUP; return the log up to the `times`th line that contains `expected`."""
    served.process.send_signal(signal.SIGHUP)
    lines: list[str] = []
    for line in log_lines(served):
        if "emulator: serving: " in line:
            continue
        lines.append(line)
        times -= expected in line
        if not times:
            return lines
    raise AssertionError(f"the service stopped: {lines}")


def statuses(*clients: Client) -> list[int]:
    """Return the status that each client gets, 0 if it varies, over several connections."""
    statuses = []
    for client in clients:
        seen = {client.get("user_info", headers={"Connection": "close"}).status_code for _ in range(6)}
        statuses.append(seen.pop() if len(seen) == 1 else 0)
    return statuses


def test_production_reloads_a_valid_file_without_closing_a_connection_and_ignores_others(file: ExtensionsFile):
    file.write(my_extension=(SECRET,), same_extension=(SECRET,), gone_extension=(SECRET,))
    with server_process(*production(file)) as served, client(served, SECRET) as kept:
        game, address = _game(served, "/ws", CLIENT_ID, SECRET), _local_address(kept)
        secret = base64.b64encode(FRESH).decode()
        file.path.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{secret}", "{secret}!"]\n')
        (line,) = hang_up(served, "stay as they were")
        assert re.search(r" ERROR emulator: .*extensions\.toml:2:76: extensions\.my-extension\.secrets\[1\]: ", line)
        file.path.unlink()
        (absent,) = hang_up(served, "stay as they were")

        assert 200 == kept.get("user_info").status_code
        file.write(my_extension=(FRESH, SECRET), same_extension=(SECRET,), added_extension=(FRESH,))
        logged = "".join(hang_up(served, "reloaded by process"))
        assert "extension changed: extension my-extension, 2 secrets" in logged
        assert "extension changed: extension added-extension, 1 secret" in logged
        assert "extension removed: extension gone-extension" in logged
        assert "same-extension" not in logged
        texts = [text for key in (FRESH, SECRET) for text in (key.decode(), base64.b64encode(key).decode())]
        assert not any(text in line + absent + logged for text in texts)
        assert (200, address) == (kept.get("user_info").status_code, _local_address(kept))
        assert {} == game.data("get", "state", {"state_id": "channel"})["state"]

        file.write(my_extension=(FRESH,))
        hang_up(served, "reloaded by process")
        assert [401, 200] == statuses(client(served, SECRET), client(served, FRESH))
        file.write(my_extension=(b"short",))
        *_, warning = hang_up(served, "shorter than the 32 bytes")
        assert "my-extension" in warning
        assert 0 == served.stop(signal.SIGTERM)


def _local_address(client: Client) -> object:
    """Return the local port of the client's connection."""
    answer = client.get("user_info")
    return answer.extensions["network_stream"].get_extra_info("client_addr")


def test_a_sandbox_reloads_its_extensions_for_all_namespaces(file: ExtensionsFile):
    with server_process("--registered-only", "--extensions", str(file.path)) as served:
        callers = [served.client("viewer", client_id=each) for each in (CLIENT_ID, ADDED)]
        paths = ("user_info", f"{served.url}/_ns/blue/v1/e/user_info")
        before = [[caller.get(path).status_code for caller in callers] for path in paths]

        file.write(added_extension=(FRESH,))
        hang_up(served, "reloaded by process")

        assert [[200, 401]] * 2 == before
        assert [[401, 200]] * 2 == [[caller.get(path).status_code for caller in callers] for path in paths]


def test_retiring_a_secret_closes_the_sockets_of_all_namespaces(file: ExtensionsFile):
    file.write(my_extension=(SECRET,), added_extension=(FRESH,))
    with server_process("--strict", "--extensions", str(file.path)) as served:
        games = [_game(served, f"{where}/ws", CLIENT_ID, SECRET) for where in ("", "/_ns/blue", "/_ns/red")]
        spared = [_game(served, f"{where}/ws", ADDED, FRESH) for where in ("", "/_ns/blue")]
        page = PusherClient(served, path="/_ns/blue/app/key")
        page.subscribe(pusher_channel(), auth=f"{CLIENT_ID} {_broadcaster_token(SECRET)}")
        kept = client(served, SECRET)
        address = _local_address(kept)

        file.write(my_extension=(FRESH,), added_extension=(FRESH,))
        logged = hang_up(served, "reloaded by process")

        assert [1008] * 4 == [each.close_code() for each in (*games, page)]
        assert [{}] * 2 == [game.data("get", "state", {"state_id": "channel"})["state"] for game in spared]
        assert "closed 4 sockets" in "".join(logged)
        assert (401, address) == (kept.get("user_info").status_code, _local_address(kept))


def _game(served: ServerProcess, path: str, client_id: str, key: bytes) -> SocketClient:
    """Return a client that has authenticated by a broadcaster's token."""
    game = SocketClient(served, path)
    game.data("authenticate", "", {"client_id": client_id, "jwt": _broadcaster_token(key)})
    return game


def _broadcaster_token(key: bytes) -> str:
    claims = {"role": "broadcaster", "channel_id": "777", "user_id": "777", "exp": real_seconds() + 600}
    return jwt.encode(claims, key)
