"""SIGHUP reloads `--extensions` and leaves connections open (operations, Starting)."""

from __future__ import annotations

import base64
import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from support.process import (
    COMMAND,
    STOP_TIMEOUT,
    ServerProcess,
    server_process,
    unexpected_log_lines,
    wait_until,
    worker_pids,
)
from support.service import CLIENT_ID, SECRET, Client, real_seconds
from support.socket_client import SocketClient

FRESH = b"a fresh secret that is long enough for HS256"
ADDED = "added-extension"
WORKERS = pytest.mark.parametrize("workers", [1, 2], ids=["one process", "two workers"])


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


def production(file: ExtensionsFile, workers: int = 1) -> tuple[str, ...]:
    data = f"sqlite:///{file.path.parent}/data.db"
    return ("--production", "--extensions", str(file.path), "--data", data, "--workers", str(workers))


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
    """Return the status that each client gets, 0 if it varies, over enough connections to reach every worker."""
    statuses = []
    for client in clients:
        seen = {client.get("user_info", headers={"Connection": "close"}).status_code for _ in range(6)}
        statuses.append(seen.pop() if len(seen) == 1 else 0)
    return statuses


@WORKERS
def test_new_secrets_verify_at_once_and_removed_ones_do_not(file: ExtensionsFile, workers: int):
    with server_process(*production(file, workers)) as served:
        old, new = client(served, SECRET), client(served, FRESH)
        before = statuses(old, new)

        file.write(my_extension=(FRESH, SECRET))
        hang_up(served, "reloaded by process", workers + (workers > 1))
        both = statuses(old, new)
        file.write(my_extension=(FRESH,))
        hang_up(served, "reloaded by process", workers + (workers > 1))

        assert [200, 401] == before
        assert [200, 200] == both
        assert [401, 200] == statuses(old, new)


@WORKERS
def test_new_extensions_are_admitted_and_removed_ones_refused(file: ExtensionsFile, workers: int):
    with server_process(*production(file, workers)) as served:
        ours, added = client(served, SECRET), client(served, FRESH, ADDED)
        before = statuses(ours, added)

        file.write(added_extension=(FRESH,))
        hang_up(served, "reloaded by process", workers + (workers > 1))

        assert [200, 401] == before
        assert [401, 200] == statuses(ours, added)
        link = Client(base_url=f"{served.url}/v1/e/")
        assert [401, 200] == [
            link.post("link/pin", headers={"Authorization": client_id}).status_code for client_id in (CLIENT_ID, ADDED)
        ]


@WORKERS
def test_an_invalid_file_is_logged_without_secrets_and_ignored(file: ExtensionsFile, workers: int):
    with server_process(*production(file, workers)) as served:
        ours, secret = client(served, SECRET), base64.b64encode(FRESH).decode()
        file.path.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{secret}", "{secret}!"]\n')

        invalid = hang_up(served, "stay as they were")
        kept = statuses(ours)
        file.path.unlink()
        absent = hang_up(served, "stay as they were")
        file.write(my_extension=(FRESH,))
        repaired = hang_up(served, "reloaded by process", workers + (workers > 1))

        (line,) = invalid
        assert re.search(r" ERROR emulator: .*extensions\.toml:2:76: extensions\.my-extension\.secrets\[1\]: ", line)
        assert 1 == len(absent)
        assert secret not in "".join([*invalid, *absent, *repaired])
        assert ([200], [401, 200]) == (kept, statuses(ours, client(served, FRESH)))
        assert 0 == served.stop(signal.SIGTERM)


def test_a_rotation_closes_no_connection_and_no_socket(file: ExtensionsFile):
    claims = {"role": "broadcaster", "channel_id": "777", "user_id": "777", "exp": real_seconds() + 600}
    with server_process(*production(file)) as served, SocketClient(served) as game, client(served, SECRET) as kept:
        game.data("authenticate", "", {"client_id": CLIENT_ID, "jwt": jwt.encode(claims, SECRET)})
        address = _local_address(kept)

        file.write(my_extension=(FRESH, SECRET))
        hang_up(served, "reloaded by process")

        assert 200 == kept.get("user_info").status_code
        assert address == _local_address(kept)
        assert {} == game.data("get", "state", {"state_id": "channel"})["state"]


def test_a_reload_logs_the_number_of_secrets_of_each_changed_extension(file: ExtensionsFile):
    file.write(my_extension=(SECRET,), same_extension=(SECRET,), gone_extension=(SECRET,))
    with server_process(*production(file)) as served:
        file.write(my_extension=(FRESH, SECRET), same_extension=(SECRET,), added_extension=(FRESH,))
        logged = "".join(hang_up(served, "reloaded by process"))

    assert "INFO emulator.audit: extension changed: extension my-extension, 2 secrets; operator\n" in logged
    assert "INFO emulator.audit: extension changed: extension added-extension, 1 secret; operator\n" in logged
    assert "INFO emulator.audit: extension removed: extension gone-extension; operator\n" in logged
    assert "same-extension" not in logged
    assert not any(text in logged for key in (FRESH, SECRET) for text in (key.decode(), base64.b64encode(key).decode()))


@WORKERS
def test_retiring_a_secret_closes_its_sockets_but_no_connection(file: ExtensionsFile, workers: int):
    claims = {"role": "broadcaster", "channel_id": "777", "user_id": "777", "exp": real_seconds() + 600}
    with server_process(*production(file, workers)) as served, client(served, SECRET) as kept:
        games = [SocketClient(served) for _ in range(6)]
        for game in games:
            game.data("authenticate", "", {"client_id": CLIENT_ID, "jwt": jwt.encode(claims, SECRET)})
        address = _local_address(kept)

        file.write(my_extension=(FRESH,))
        logged = hang_up(served, "reloaded by process", workers + (workers > 1))

        assert [1008] * 6 == [game.close_code() for game in games]
        assert 401 == kept.get("user_info").status_code
        assert address == _local_address(kept)
        assert 6 == sum(int(count) for count in re.findall(r"closed (\d+) sockets", "".join(logged)))


def _local_address(client: Client) -> object:
    """Return the local port of the client's connection."""
    answer = client.get("user_info")
    return answer.extensions["network_stream"].get_extra_info("client_addr")


def test_a_replacement_worker_has_the_reloaded_extensions(file: ExtensionsFile):
    with server_process(*production(file, 2)) as served:
        old = worker_pids(served)
        file.write(my_extension=(FRESH,))
        hang_up(served, "reloaded by process", 3)
        file.path.write_text("half written")

        for pid in old:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not old & worker_pids(served) and len(worker_pids(served)) == 2)

        assert [401, 200] == statuses(client(served, SECRET), client(served, FRESH))


@WORKERS
def test_without_a_file_every_process_ignores_hangups(tmp_path: Path, workers: int):
    with server_process("--data", f"sqlite:///{tmp_path}/data.db", "--workers", str(workers)) as served:
        for pid in [served.process.pid, *worker_pids(served)] * 3:
            os.kill(pid, signal.SIGHUP)
            served.client("viewer", user="1", channel="777").get("vote").raise_for_status()

        assert (0, []) == (served.stop(signal.SIGTERM), unexpected_log_lines(served))


def test_hangups_while_workers_start_kill_none_of_them(tmp_path: Path):
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", "--data", f"sqlite:///{tmp_path}/data.db", "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_until(lambda: bool(children.read_text()))
        while select.select([process.stdout], [], [], 0.01) == ([], [], []):
            os.killpg(process.pid, signal.SIGHUP)
        process.terminate()
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on ")
        log = process.stderr.read() if process.stderr else ""
        assert (0, ["serving", "stopped"]) == (process.wait(STOP_TIMEOUT), re.findall(r" INFO emulator: (\w+)", log))
        assert 2 == len(log.splitlines())


def test_a_sandbox_reloads_its_extensions_for_all_namespaces(file: ExtensionsFile):
    with server_process("--registered-only", "--extensions", str(file.path)) as served:
        callers = [served.client("viewer", client_id=each) for each in (CLIENT_ID, ADDED)]
        paths = ("user_info", f"{served.url}/_ns/blue/v1/e/user_info")
        before = [[caller.get(path).status_code for caller in callers] for path in paths]

        file.write(added_extension=(FRESH,))
        hang_up(served, "reloaded by process")

        assert [[200, 401]] * 2 == before
        assert [[401, 200]] * 2 == [[caller.get(path).status_code for caller in callers] for path in paths]


def test_a_reload_warns_of_short_secrets(file: ExtensionsFile):
    with server_process(*production(file)) as served:
        file.write(my_extension=(b"short",))

        lines = hang_up(served, "shorter than the 32 bytes")

        assert 3 == len(lines)
        assert "my-extension" in lines[-1]
