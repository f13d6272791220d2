"""Services that run under a name: `serve --name`, `extcli status`, `extcli stop`."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from emulator.config.environment import SANDBOX
from support import preloaded
from support.exec_process import refuses
from support.process import STOP_TIMEOUT, server_process
from support.program import PROGRAM
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


def test_a_name_writes_one_private_file(runtime: Path, extcli: Run):
    with server_process("--name", "web") as served:
        [file] = runtime.iterdir()
        record = json.loads(file.read_text())
        modes = [each.stat().st_mode & 0o777 for each in (runtime, file)]
        assert 0 == served.stop(signal.SIGTERM)

    assert ("web.json", [0o700, 0o600]) == (file.name, modes)
    assert {
        "name": "web",
        "pid": served.process.pid,
        "started": record["started"],
        "url": served.url,
        "environment": SANDBOX.name,
        "data": "memory",
    } == record
    assert abs(record["started"] / 1000 - real_seconds()) < 60
    assert [] == list(runtime.iterdir())


def test_a_service_without_a_name_writes_nothing(runtime: Path, tmp_path: Path):
    with server_process() as served:
        assert [] == list(tmp_path.iterdir())
        served.stop(signal.SIGTERM)


def test_the_variable_sets_the_name(runtime: Path):
    with server_process(EXTCLI_SERVE_NAME="by-variable"):
        assert ["by-variable.json"] == [each.name for each in runtime.iterdir()]


def test_a_taken_name_is_refused_with_the_holder(runtime: Path):
    with server_process("--name", "web") as served:
        with preloaded.start(["serve", "--port", "0", "--name", "web"], os.environ) as second:
            printed, log = second.communicate()

        assert (2, "") == (second.returncode, printed)
        assert (
            f"extcli serve: --name web is taken by pid {served.process.pid}, {served.url}: "
            "stop it with `extcli stop web`\n"
        ) == log


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs a system that names the program")
@pytest.mark.parametrize(
    ("name", "how"), [(["--name", "web"], ", and `extcli stop web` stops it"), ([], "")], ids=["named", "nameless"]
)
def test_a_taken_port_is_refused_with_the_holder(extcli: Run, name: list[str], how: str):
    with server_process(*name) as served:
        port = urlsplit(served.url).port
        refused = extcli("serve", "--port", str(port))
        holder = f"(pid {served.process.pid}) on 127.0.0.1 has this one{how}\n"

    assert (2, "") == refused[:2]
    assert refused[2].startswith(
        f"extcli serve: --host 127.0.0.1 --port {port}: Address already in use; --port 0 takes a free port; "
    )
    assert refused[2].endswith(holder)


def test_a_directory_that_others_can_write_to_is_refused(runtime: Path):
    runtime.mkdir(parents=True)
    runtime.chmod(0o777)
    with preloaded.start(["serve", "--port", "0", "--name", "web"], os.environ) as process:
        _, log = process.communicate()

    assert 2 == process.returncode
    assert "others can write to it: chmod 700" in log


def test_status_lists_running_services_and_forgets_killed_ones(runtime: Path, extcli: Run):
    with server_process("--name", "one") as one, server_process("--name", "two") as two:
        started = {name: json.loads((runtime / f"{name}.json").read_text())["started"] for name in ("one", "two")}
        both = extcli("status", "-o", "plain")
        [first, second] = map(json.loads, extcli("status", "-o", "jsonl")[1].splitlines())
        as_json = json.loads(extcli("status", "-o", "json")[1])
        one.process.kill()
        one.process.wait(STOP_TIMEOUT)
        rest = json.loads(extcli("status", "-o", "json")[1])

        assert (
            0,
            f"one\t{one.process.pid}\t{one.url}\t{started['one']}\tsandbox\tmemory\n"
            f"two\t{two.process.pid}\t{two.url}\t{started['two']}\tsandbox\tmemory\n",
            "",
        ) == both
        assert {"services": [first, second]} == as_json
        assert {"services": [second]} == rest
        assert ["two.json"] == [each.name for each in runtime.iterdir()]


def test_a_file_with_the_id_of_another_process_is_forgotten(runtime: Path, extcli: Run):
    with server_process("--name", "one") as one:
        copied = (runtime / "one.json").read_text().replace('"one"', '"old"')
        (runtime / "old.json").write_text(copied)

        assert [one.url] == [each["url"] for each in json.loads(extcli("status", "-o", "json")[1])["services"]]
        assert ["one.json"] == [each.name for each in runtime.iterdir()]


def test_the_name_of_a_killed_service_is_free_again(runtime: Path):
    with server_process("--name", "web") as killed:
        killed.process.kill()
        killed.process.wait(STOP_TIMEOUT)
    with server_process("--name", "web") as served:
        assert served.process.pid == json.loads((runtime / "web.json").read_text())["pid"]


def test_status_prints_lines_for_a_shell(runtime: Path, extcli: Run):
    with server_process("--name", "one") as one:
        only = extcli("status", "-o", "env")
        with server_process("--name", "two") as two:
            several = extcli("status", "-o", "env")
            named = extcli("status", "two", "-o", "env")
        none = extcli("status", "three", "-o", "env")

    assert (0, f"export EXTCLI_URL={one.url}\nexport EXTCLI_CLIENT_ID=my-extension\n", "") == only
    assert (2, "", "extcli: 2 services are running\n  name one of them: one, two\n") == several
    assert (0, f"export EXTCLI_URL={two.url}\nexport EXTCLI_CLIENT_ID=my-extension\n", "") == named
    assert (7, "") == none[:2]
    assert none[2].startswith("extcli: no service 'three' is running\n")


def test_other_commands_refuse_the_format_env_before_they_send_anything(runtime: Path, extcli: Run):
    with server_process("--name", "one") as one:
        cast = extcli("vote", "cast", "--value", "1", "-o", "env", "--url", one.url)
        other = extcli("connect", "curl", "-o", "env")
        count = extcli("vote", "get", "-o", "plain", "--url", one.url)

    assert (2, "", "extcli: this command has no output format env\n  `status` and `connect env` have it\n") == cast
    assert (2, "") == other[:2]
    assert (0, "") == count[:2]


def test_without_services_status_reports_none_and_stop_fails(runtime: Path, extcli: Run):
    hint = "no service runs under a name: `extcli serve --name NAME` starts one\n"

    assert (0, "", hint) == extcli("status")
    assert (0, "", "") == extcli("status", "--quiet")
    assert (0, hint, "") == extcli("status", "-o", "table")
    assert (0, '{"services": []}\n', "") == extcli("status", "-o", "json")
    assert 7 == extcli("stop")[0]
    assert not runtime.exists()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_stop_returns_when_the_port_is_free(runtime: Path, extcli: Run, tmp_path: Path, workers: str):
    with server_process("--name", "web", "--workers", workers, "--data", f"sqlite:///{tmp_path}/data.db") as served:
        stopped = extcli("stop")
        port = urlsplit(served.url).port or 0
        with socket.create_server(("127.0.0.1", port)):
            pass  # free, and so nothing else needs to be waited for

        assert (0, "", "") == stopped
        assert refuses(port)
        assert 0 == served.process.wait(STOP_TIMEOUT)


def test_stop_needs_a_name_if_several_run(runtime: Path, extcli: Run):
    with server_process("--name", "one") as one, server_process("--name", "two") as two:
        assert (2, "") == extcli("stop")[:2]
        assert 0 == extcli("stop", "two")[0]
        assert (None, 0) == (one.process.poll(), two.process.wait(STOP_TIMEOUT))


def test_stop_reports_a_service_that_does_not_stop(runtime: Path, extcli: Run):
    with server_process("--name", "web") as served:
        served.process.send_signal(signal.SIGSTOP)
        code, _, log = extcli("stop", "--timeout", "100ms")
        served.process.send_signal(signal.SIGCONT)

    assert (3, f"extcli: web (pid {served.process.pid}) did not stop within 0.1 s") == (code, log.splitlines()[0])


def test_the_table_fits_into_80_columns(runtime: Path):
    with server_process("--name", "web"):
        shown = subprocess.run(
            ["script", "-qec", "stty cols 80; extcli status", os.devnull],
            env={**os.environ, "PATH": f"{preloaded.PROGRAM.parent}:{os.environ['PATH']}", "TERM": "dumb"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()

    assert ["name", "pid", "url", "up", "environment", "data"] == shown[0].split()
    assert 2 == len(shown)
    assert max(map(len, shown)) <= 80


def test_status_works_without_a_runtime_directory_of_the_session(extcli: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR")

    code, _, log = extcli("status")

    assert 0 == code
    assert "Warning" not in log


@pytest.mark.parametrize("is_on_path", [False, True])
def test_a_service_at_a_terminal_says_how_to_find_the_program(runtime: Path, is_on_path: bool):
    master, slave = pty.openpty()
    path = f"{PROGRAM.parent}:/usr/bin:/bin" if is_on_path else "/usr/bin:/bin"
    with subprocess.Popen(
        [PROGRAM, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "PATH": path}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"listening on ")
        process.terminate()
    os.close(slave)
    written = os.read(master, 1 << 16).decode()
    os.close(master)

    hints = re.findall(r"^extcli is not on your PATH; in each terminal, this puts it there: .*$", written, re.M)
    assert [] == hints if is_on_path else str(PROGRAM.parent) in hints[0]
