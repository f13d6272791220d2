"""`extcli exec` as a process: when the command starts, what it finds, and what stays untouched."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import sys
from pathlib import Path

import httpx
import jwt
import psutil
import pytest

from support.exec_process import ExecProcess, run_exec
from support.har import har_errors
from support.preloaded import put_program
from support.service import CHANNEL, CLIENT_ID, SECRET

pytestmark = pytest.mark.slow

VOTE = """
import os, socket
host, port = os.environ["EXTCLI_URL"].removeprefix("http://").split(":")
body = b'{"value":1}'
with socket.create_connection((host, int(port))) as connection:
    connection.sendall(
        b"POST /v1/e/vote HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\ncontent-length: %d\\r\\n"
        b"authorization: %s\\r\\n\\r\\n%s" % (len(body), os.environ["AUTHORIZATION"].encode(), body)
    )
    print(connection.makefile().readline().strip())
"""
PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def python(program: str) -> list[str]:
    return [sys.executable, "-IS", "-c", program]


def authorization(**claims: str) -> str:
    payload = {"role": "viewer", "user_id": "1", "channel_id": CHANNEL, **claims}
    return f"{CLIENT_ID} {jwt.encode(payload, SECRET)}"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The variable `PATH` with an `extcli` that starts fast."""
    folder = tmp_path_factory.mktemp("bin")
    put_program(folder)
    return f"{folder}:{os.environ['PATH']}"


def test_the_service_responds_to_the_first_statement_of_the_command():
    assert (0, "HTTP/1.1 200 OK\n", "") == run_exec(
        "--quiet", "--", *python(VOTE), env={"AUTHORIZATION": authorization()}
    )


def test_the_command_finds_the_service_by_its_variables_and_is_not_led_astray(tmp_path: Path):
    astray = {
        "EXTCLI_PROFILE": "live",
        "EXTCLI_URL": "http://elsewhere",
        "EXTCLI_WS_URL": "ws://elsewhere/ws",
        "EXTCLI_TOKEN": "token",
        "EXTCLI_CONTROL_TOKEN": "control-token-of-another-service",
        "EXTCLI_CONTROL_TOKEN_FILE": "control.token",
        "EXTCLI_SECRET": "secret",
        "EXTCLI_SECRET_FILE": "live.secret",
        "EXTCLI_CLIENT_ID": "other",
        "EXTCLI_AS": "admin",
        "EXTCLI_CHANNEL": "5",
        "EXTCLI_PIN_PATH": "elsewhere",
        "EXTCLI_BROADCAST_METHOD": "POST",
        "EXTCLI_CONFIG": str(tmp_path / "config.toml"),
        "EXTCLI_STATE_DIR": str(tmp_path),
        "EXTCLI_ON_FAILURE": "/elsewhere",
    }
    kept = {"EXTCLI_OUTPUT": "json", "EXTCLI_TIMEOUT": "5s", "OTHER": "x", "EXTCLI_SERVE_LEEWAY": "1"}
    own = {"EXTCLI_SERVE_CONTROL_TOKEN": "control-token-of-this-service"}
    given = ("API={url}/v1", "PLACE={host}|{port}|{client_id}|{namespace}|{{x}}", "EXTCLI_CHANNEL=7")
    options = [word for each in given for word in ("--env", each)]
    code, printed, log = run_exec("--quiet", *options, "--", *python(PRINT_ENVIRONMENT), env=astray | kept | own)
    found: dict[str, str] = json.loads(printed)
    url = httpx.URL(found["EXTCLI_URL"])

    assert (0, "") == (code, log)
    assert ("http", "127.0.0.1", f"ws://127.0.0.1:{url.port}/ws") == (url.scheme, url.host, found["EXTCLI_WS_URL"])
    assert ("my-extension", f"{url}/v1") == (found["EXTCLI_CLIENT_ID"], found["API"])
    assert f"127.0.0.1|{url.port}|my-extension|default|{{x}}" == found["PLACE"]
    assert ("7", "control-token-of-this-service") == (found["EXTCLI_CHANNEL"], found["EXTCLI_CONTROL_TOKEN"])
    assert [] == [name for name, value in astray.items() if found.get(name) == value]
    places = {f"EXTCLI_{name}" for name in ("URL", "WS_URL", "CLIENT_ID", "SECRET_FILE", "CONFIG", "STATE_DIR")}
    assert places | {"EXTCLI_CHANNEL", "EXTCLI_CONTROL_TOKEN"} == set(astray) & set(found)
    assert kept == {name: found[name] for name in kept}


def test_variables_of_serve_apply_except_those_that_runs_would_share(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        shared = {
            "EXTCLI_SERVE_PORT": str(taken.getsockname()[1]),
            "EXTCLI_SERVE_DATA": f"sqlite:///{tmp_path}/data.db",
            "EXTCLI_SERVE_NAME": "shared",
            "EXTCLI_SERVE_LOG_FORMAT": "json",
        }
        code, _, log = run_exec("--", "true", env=shared)

    assert (0, "data in memory") == (code, json.loads(log.splitlines()[0])["message"].split(", ")[2])
    assert not (tmp_path / "data.db").exists()


def test_the_secret_file_signs_tokens_of_a_registered_extension(tmp_path: Path):
    file = tmp_path / "extensions.toml"
    secret = base64.b64encode(SECRET).decode()
    (tmp_path / "second.txt").write_text(f"{secret}\n")
    file.write_text(f'[extensions.one]\nsecrets = ["{secret}"]\n[extensions.two]\nsecret_files = ["second.txt"]\n')
    file.chmod(0o600)
    show = 'stat -c %a "$EXTCLI_SECRET_FILE" "$(dirname "$EXTCLI_SECRET_FILE")"; cat "$EXTCLI_SECRET_FILE"; '
    options = ("--quiet", "--production", "--extensions", str(file))

    for name, chosen in (("one", ()), ("two", ("--client-id", "two"))):
        command = ("sh", "-c", f"{show} echo $EXTCLI_CLIENT_ID")
        assert (0, f"600\n700\n{secret}\n{name}\n", "") == run_exec(*options, *chosen, "--", *command)


def test_extcli_in_the_command_needs_no_configuration(tmp_path: Path, programs: str):
    script = "extcli vote cast lunch --value 3 && extcli pin request | extcli pin login"

    code, printed, _ = run_exec("--quiet", "--", "sh", "-c", script, env={"HOME": str(tmp_path), "PATH": programs})
    assert (0, "3\t1\nchannel_id\t1001") == (code, "\n".join(printed.splitlines()[:2]))
    assert [] == list(tmp_path.iterdir())


def test_a_failed_run_leaves_a_report_of_each_namespace_until_the_next_run(tmp_path: Path, programs: str):
    report = tmp_path / "reports" / "first"
    folders = [report, report / "namespaces" / "blue", report / "namespaces" / "red"]
    options = ("--quiet", "--on-failure", str(report))
    vote = "extcli --quiet vote cast lunch --value 3 >/dev/null"
    script = f"{vote}; for name in blue red; do EXTCLI_URL=$EXTCLI_URL/_ns/$name {vote}; done; echo $EXTCLI_ON_FAILURE"

    assert 0 == run_exec(*options, "--", "true")[0]
    assert not report.parent.exists()
    done = run_exec(*options, "--", "sh", "-c", f"{script}; exit 7", env={"PATH": programs})
    assert (7, f"{report}\n", f"extcli exec: the report of this run is in {report}\n") == done
    of_each = {"snapshot.json", "journal.jsonl", "journal.har"}
    assert {"service.log", "metrics.txt", "namespaces", *of_each} == {each.name for each in report.iterdir()}
    assert set(folders[1:]) == set((report / "namespaces").iterdir())
    for each in folders:
        entries = [json.loads(line) for line in (each / "journal.jsonl").read_text().splitlines()]
        assert [("POST /v1/e/vote", 200)] == [(entry["endpoint"], entry["status"]) for entry in entries]
        assert [] == har_errors(json.loads((each / "journal.har").read_text()))
        assert "lunch" in (each / "snapshot.json").read_text()
        assert (0o700, {0o600}) == (_mode(each), {_mode(file) for file in each.iterdir() if file.is_file()})
    assert "serving: extcli" in (report / "service.log").read_text()
    assert 'emulator_info{environment="sandbox"' in (report / "metrics.txt").read_text()

    (folders[2] / "notes.txt").touch()
    run_exec(*options, "--", "false")
    assert ["notes.txt"] == [each.name for each in (report / "namespaces").rglob("*") if each.is_file()]

    of_a_file = folders[2] / "notes.txt" / "report"
    code, _, log = run_exec("--quiet", "--on-failure", str(of_a_file), "--", "sh", "-c", "exit 7")
    assert (7, True) == (code, f"extcli exec: cannot write {of_a_file}: " in log)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_run_that_a_signal_ends_leaves_a_report(tmp_path: Path):
    run = ExecProcess("--quiet", "--on-failure", str(tmp_path / "report"), "--", "sh", "-c", "echo on; exec sleep 60")
    assert "on" == run.line()
    run.process.terminate()

    assert 143 == run.end()[0]
    assert "stopped" in (tmp_path / "report" / "service.log").read_text()


def test_a_service_that_does_not_start_ends_the_run_with_its_code_and_line(tmp_path: Path):
    code, printed, log = run_exec("--quiet", "--data", "nonsense", "--", "echo", "started")

    assert (2, "") == (code, printed)
    assert re.fullmatch(r"extcli serve: --data: cannot keep data in 'nonsense': .*\n", log)


def test_a_signal_before_the_command_starts_ends_the_run(tmp_path: Path):
    endless = tmp_path / "extensions.toml"
    os.mkfifo(endless)
    run = ExecProcess("--quiet", "--extensions", str(endless), "--", "echo", "started")
    with endless.open("w"):  # opens once the service reads it
        run.process.terminate()
        code, printed, log = run.end()

    assert (143, "", "", []) == (code, printed, log, run.left())


def test_a_service_that_dies_ends_the_command_at_once():
    """The command would go on for an hour."""
    run = ExecProcess("--quiet", "--", "sh", "-c", "echo on; sleep 3600; true")
    assert "on" == run.line()
    [service] = [each for each in psutil.Process(run.process.pid).children() if each.name() != "sh"]
    service.kill()
    code, _, log = run.end()

    assert 5 == code
    assert "exit code 137" in log
    assert " emulator: serving: extcli " in log
    assert [] == run.left()


@pytest.mark.long
def test_runs_side_by_side_share_no_port_and_touch_no_files(tmp_path: Path):
    places = {name: str(tmp_path / name) for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")}
    for each in places.values():
        Path(each).mkdir(mode=0o700)
    runs = [ExecProcess("--quiet", "--", "sh", "-c", "echo $EXTCLI_URL; exec sleep 60", env=places) for _ in range(4)]
    urls = [run.line() for run in runs]
    headers = {"authorization": authorization()}
    counts = [httpx.post(f"{url}/v1/e/vote", json={"value": 1}, headers=headers).json()["count"] for url in urls]
    for run in runs:
        run.process.terminate()

    assert 4 == len(set(urls))
    assert [1] * 4 == counts
    assert [(143, "", "")] * 4 == [run.end() for run in runs]
    assert sorted(places) == sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*"))
