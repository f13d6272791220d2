"""Services that run under a name: `serve --name`, `extcli status`, `extcli stop`."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from emulator.core.environment import SANDBOX
from support import preloaded
from support.exec_process import refuses
from support.process import STOP_TIMEOUT, server_process
from support.service import real_seconds

pytestmark = pytest.mark.slow
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the runtime files; everything else in the home of the user stays empty."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("EXTCLI_URL", raising=False)
    return tmp_path / "run" / "extcli"


@pytest.fixture
def extcli(runtime: Path) -> Run:
    """Run a command in a process of its own."""

    def run(*args: str) -> tuple[int, str, str]:
        with preloaded.start(args, os.environ) as process:
            printed, log = process.communicate()
        assert process.returncode is not None
        return process.returncode, printed, log

    return run


def test_a_name_writes_one_private_file_and_is_taken_until_the_service_ends(runtime: Path, extcli: Run):
    with server_process("--name", "web") as killed:
        killed.process.kill()
        killed.process.wait(STOP_TIMEOUT)
    with server_process("--name", "web") as served:
        [file] = runtime.glob("*.json")
        record = json.loads(file.read_text())
        modes = [each.stat().st_mode & 0o777 for each in (runtime, *runtime.iterdir())]
        code, printed, log = extcli("serve", "--port", "0", "--name", "web")
        assert 0 == served.stop(signal.SIGTERM)

    assert ("web.json", [0o700, 0o600, 0o600]) == (file.name, modes)
    assert {
        "name": "web",
        "pid": served.process.pid,
        "started": record["started"],
        "url": served.url,
        "environment": SANDBOX.name,
        "data": "memory",
    } == record
    assert abs(record["started"] / 1000 - real_seconds()) < 60
    assert (2, "") == (code, printed)
    assert f"--name web is taken by pid {served.process.pid}, {served.url}" in log
    assert [] == list(runtime.iterdir())


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs a system that names the program")
@pytest.mark.parametrize("name", [["--name", "web"], []], ids=["named", "nameless"])
def test_a_taken_port_is_refused_with_the_holder(extcli: Run, name: list[str]):
    with server_process(*name) as served:
        port = urlsplit(served.url).port
        code, printed, log = extcli("serve", "--port", str(port))

    assert (2, "") == (code, printed)
    assert log.startswith(f"extcli serve: --host 127.0.0.1 --port {port}: ")
    assert f"pid {served.process.pid}" in log
    assert bool(name) == ("extcli stop web" in log)


def test_a_directory_that_others_can_write_to_is_refused(runtime: Path, extcli: Run):
    runtime.mkdir(parents=True)
    runtime.chmod(0o777)
    code, _, log = extcli("serve", "--port", "0", "--name", "web")

    assert (2, True) == (code, "can write to it: use chmod 700" in log)


@contextmanager
def held_record(folder: Path, **differs: object) -> Iterator[subprocess.Popen[bytes]]:
    """Write and lock the record of a service whose process is an innocent program. Yield that program."""
    record = {"name": "web", "started": 0, "url": "", "environment": "", "data": ""}
    with subprocess.Popen(["sleep", "60"]) as innocent, (folder / ".web.json.lock").open("w") as lock:
        (folder / "web.json").write_text(json.dumps({**record, "pid": innocent.pid, **differs}))
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield innocent
        finally:
            innocent.kill()


def share(folder: Path) -> None:
    folder.chmod(0o777)


def link(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


def give_away(folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to give the folder to another user")
    os.chown(folder, 12345, -1)


@pytest.mark.parametrize(
    ("plant", "is_parent"), [(share, False), (share, True), (link, False), (link, True), (give_away, True)]
)
def test_no_record_is_believed_where_another_user_may_have_put_it(
    runtime: Path, extcli: Run, plant: Callable[[Path], None], is_parent: bool
):
    runtime.mkdir(parents=True, mode=0o700)
    (runtime / "other.json").write_text("{}")
    with held_record(runtime) as innocent:
        plant(runtime.parent if is_parent else runtime)
        done = [extcli(*args) for args in (["stop"], ["status"], ["serve", "--name", "mine", "--port", "0"])]

        assert [2, 2, 2] == [code for code, _, _ in done]
        assert all("another user" in log and str(runtime) in log for _, _, log in done)
        assert innocent.poll() is None
    assert (runtime / "other.json").exists(), "nothing was deleted there"


@pytest.mark.parametrize("differs", [{"pid": -1}, {"pid": True}, {"pid": "7"}, {"name": "../x"}, {"started": "x"}])
def test_a_record_that_no_service_wrote_is_not_listed(runtime: Path, extcli: Run, differs: dict[str, object]):
    runtime.mkdir(parents=True, mode=0o700)
    with held_record(runtime, **differs):
        assert (0, '{"services": []}\n', "") == extcli("status", "-o", "json")


def test_a_link_in_place_of_a_record_is_not_followed(runtime: Path, extcli: Run, tmp_path: Path):
    runtime.mkdir(parents=True, mode=0o700)
    target = tmp_path / "precious"
    target.write_text("as before")
    (runtime / "web.json").symlink_to(target)
    assert (0, '{"services": []}\n', "") == extcli("status", "-o", "json")
    (runtime / "web.json").symlink_to(target)
    with server_process("--name", "web"):
        assert not (runtime / "web.json").is_symlink()

    assert "as before" == target.read_text()


def test_no_name_is_kept_in_the_folder_for_temporary_files(
    extcli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "shared"))
    (tmp_path / "shared" / f"runtime-{os.getuid()}").mkdir(parents=True)
    if Path(f"/run/user/{os.getuid()}").exists():
        pytest.skip("this system has a folder for the session")
    with server_process("--name", "web") as served:
        [file] = tmp_path.rglob("web.json")
        assert [served.url] == [each["url"] for each in json.loads(extcli("status", "-o", "json")[1])["services"]]

    assert tmp_path / ".local/state/extcli/run" == file.parent


def test_status_lists_running_services_and_stop_needs_a_name_if_several_run(runtime: Path, extcli: Run):
    with server_process("--name", "one") as one:
        only = extcli("status", "-o", "env")
        with server_process("--name", "two") as two:
            started = {name: json.loads((runtime / f"{name}.json").read_text())["started"] for name in ("one", "two")}
            both = extcli("status", "-o", "plain")
            [first, second] = map(json.loads, extcli("status", "-o", "jsonl")[1].splitlines())
            assert {"services": [first, second]} == json.loads(extcli("status", "-o", "json")[1])
            several, named = extcli("status", "-o", "env"), extcli("status", "two", "-o", "env")
            assert (2, "") == extcli("stop")[:2]
            one.process.kill()
            one.process.wait(STOP_TIMEOUT)
            assert {"services": [second]} == json.loads(extcli("status", "-o", "json")[1])
            assert {"two.json", ".two.json.lock"} == {each.name for each in runtime.iterdir()}
            assert (7, "") == extcli("status", "three", "-o", "env")[:2]
            assert 0 == extcli("stop", "two")[0]
            assert 0 == two.process.wait(STOP_TIMEOUT)

    assert (
        0,
        f"one\t{one.process.pid}\t{one.url}\t{started['one']}\tsandbox\tmemory\n"
        f"two\t{two.process.pid}\t{two.url}\t{started['two']}\tsandbox\tmemory\n",
        "",
    ) == both
    assert (0, f"export EXTCLI_URL={one.url}\nexport EXTCLI_CLIENT_ID=my-extension\n", "") == only
    assert (2, "") == several[:2]
    assert (0, f"export EXTCLI_URL={two.url}\nexport EXTCLI_CLIENT_ID=my-extension\n", "") == named


def test_without_services_status_reports_none_and_stop_fails(runtime: Path, extcli: Run):
    assert (0, "", "") == extcli("status", "--quiet")
    assert (0, '{"services": []}\n', "") == extcli("status", "-o", "json")
    assert 7 == extcli("stop")[0]
    assert not runtime.exists()


def test_stop_returns_when_the_port_is_free(runtime: Path, extcli: Run, tmp_path: Path):
    with server_process("--name", "web", "--data", f"sqlite:///{tmp_path}/data.db") as served:
        stopped = extcli("stop")
        port = urlsplit(served.url).port or 0
        with socket.create_server(("127.0.0.1", port)):
            pass  # free, and so nothing else needs to be waited for

        assert (0, "", "") == stopped
        assert refuses(port)
        assert 0 == served.process.wait(STOP_TIMEOUT)


def test_stop_reports_a_service_that_does_not_stop(runtime: Path, extcli: Run):
    with server_process("--name", "web") as served:
        served.process.send_signal(signal.SIGSTOP)
        code, _, log = extcli("stop", "--timeout", "100ms")
        served.process.send_signal(signal.SIGCONT)

    assert (3, True) == (code, f"pid {served.process.pid}" in log)
