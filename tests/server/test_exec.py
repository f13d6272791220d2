"""`extcli exec` as a process: when the command starts, what it finds, and what stays untouched."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from support.exec_process import ExecProcess, run_exec
from support.har import har_errors
from support.program import PROGRAM
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


def environment_in(*args: str, **settings: Any) -> dict[str, str]:
    """Return the environment of a command."""
    code, printed, log = run_exec("--quiet", *args, "--", *python(PRINT_ENVIRONMENT), **settings)
    assert (0, "") == (code, log)
    found: dict[str, str] = json.loads(printed)
    return found


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def process_named(name: str, parent: int) -> int:
    """Return the child of this process with this name."""
    [found] = [pid for pid in children_of(parent) if Path(f"/proc/{pid}/comm").read_text().strip() == name]
    return found


def authorization(**claims: str) -> str:
    payload = {"role": "viewer", "user_id": "1", "channel_id": CHANNEL, **claims}
    return f"{CLIENT_ID} {jwt.encode(payload, SECRET)}"


def test_the_service_responds_to_the_first_statement_of_the_command():
    for _ in range(3):
        assert (0, "HTTP/1.1 200 OK\n", "") == run_exec(
            "--quiet", "--", *python(VOTE), env={"AUTHORIZATION": authorization()}
        )


def test_the_command_finds_the_service_by_its_variables():
    found = environment_in("--env", "API={url}/v1", "--env", "PLACE={host}|{port}|{client_id}|{namespace}|{{x}}")
    url = httpx.URL(found["EXTCLI_URL"])

    assert ("http", "127.0.0.1", f"ws://127.0.0.1:{url.port}/ws") == (url.scheme, url.host, found["EXTCLI_WS_URL"])
    assert ("my-extension", f"{url}/v1") == (found["EXTCLI_CLIENT_ID"], found["API"])
    assert f"127.0.0.1|{url.port}|my-extension|default|{{x}}" == found["PLACE"]


def test_variables_of_the_caller_do_not_lead_the_command_astray(tmp_path: Path):
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
    }
    kept = {"EXTCLI_OUTPUT": "json", "EXTCLI_TIMEOUT": "5s", "OTHER": "x", "EXTCLI_SERVE_LEEWAY": "1"}
    found = environment_in(env=astray | kept)

    assert [] == [name for name, value in astray.items() if found.get(name) == value]
    assert {"EXTCLI_URL", "EXTCLI_WS_URL", "EXTCLI_CLIENT_ID", "EXTCLI_SECRET_FILE", "EXTCLI_CONFIG"} | {
        "EXTCLI_STATE_DIR"
    } == set(astray) & set(found)
    assert kept == {name: found[name] for name in kept}
    assert "7" == environment_in("--env", "EXTCLI_CHANNEL=7", env=astray)["EXTCLI_CHANNEL"]


def test_a_command_gets_the_control_token_of_its_own_service():
    token = "control-token-of-this-service"
    variables = {"EXTCLI_SERVE_CONTROL_TOKEN": token, "EXTCLI_CONTROL_TOKEN": "control-token-of-another-service"}

    assert token == environment_in(env=variables)["EXTCLI_CONTROL_TOKEN"]


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


def test_extcli_in_the_command_needs_no_configuration(tmp_path: Path):
    script = "extcli vote cast lunch --value 3 && extcli pin request | extcli pin login"
    places = {"HOME": str(tmp_path), "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}

    code, printed, _ = run_exec("--quiet", "--", "sh", "-c", script, env=places)
    assert (0, "3\t1\nchannel_id\t1001") == (code, "\n".join(printed.splitlines()[:2]))
    assert [] == list(tmp_path.iterdir())


def test_a_failed_run_leaves_a_report_and_a_successful_one_nothing(tmp_path: Path):
    reports = tmp_path / "reports" / "first"
    options = ("--quiet", "--on-failure", str(reports))

    assert 0 == run_exec(*options, "--", "true")[0]
    assert not reports.parent.exists()
    code, _, log = run_exec(*options, "--", "sh", "-c", "exit 7")
    assert (7, f"extcli exec: the report of this run is in {reports}\n") == (code, log)
    assert {"service.log", "metrics.txt", "snapshot.json", "journal.jsonl", "journal.har"} == {
        each.name for each in reports.iterdir()
    }
    assert (0o700, {0o600}) == (_mode(reports), {_mode(each) for each in reports.iterdir()})
    assert "serving: extcli" in (reports / "service.log").read_text()
    assert 'emulator_info{environment="sandbox"' in (reports / "metrics.txt").read_text()


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_report_has_the_journal_of_each_namespace_that_the_command_left(tmp_path: Path):
    folder = tmp_path / "namespaces" / "blue"
    votes = f"{PROGRAM} vote cast lunch --value 3; EXTCLI_URL=$EXTCLI_URL/_ns/blue {PROGRAM} vote cast lunch --value 3"
    run_exec("--quiet", "--on-failure", str(tmp_path), "--", "sh", "-c", f"{votes}; exit 1")

    assert [folder] == list(folder.parent.iterdir())
    for each in (tmp_path, folder):
        entries = [json.loads(line) for line in (each / "journal.jsonl").read_text().splitlines()]
        assert [("POST /v1/e/vote", 200)] == [(entry["endpoint"], entry["status"]) for entry in entries]
        assert [] == har_errors(json.loads((each / "journal.har").read_text()))
    assert "lunch" in (folder / "snapshot.json").read_text()
    assert (0o700, {0o600}) == (_mode(folder), {_mode(each) for each in folder.iterdir()})


def test_the_report_of_the_next_run_replaces_only_its_own_files(tmp_path: Path):
    use = f"EXTCLI_URL=$EXTCLI_URL/_ns/$NAME {PROGRAM} --quiet vote cast lunch --value 3; exit 1"
    for name in ("blue", "red"):
        run_exec("--quiet", "--on-failure", str(tmp_path), "--", "sh", "-c", use, env={"NAME": name})
    (tmp_path / "namespaces" / "red" / "notes.txt").touch()
    run_exec("--quiet", "--on-failure", str(tmp_path), "--", "false")

    assert ["notes.txt"] == [each.name for each in (tmp_path / "namespaces").rglob("*") if each.is_file()]


def test_a_run_that_a_signal_ends_leaves_a_report(tmp_path: Path):
    run = ExecProcess("--quiet", "--on-failure", str(tmp_path / "report"), "--", "sh", "-c", "echo on; exec sleep 60")
    assert "on" == run.line()
    run.process.terminate()

    assert 143 == run.end()[0]
    assert "stopped" in (tmp_path / "report" / "service.log").read_text()


def test_a_report_that_cannot_be_written_keeps_the_exit_code(tmp_path: Path):
    (tmp_path / "file").touch()
    code, _, log = run_exec("--quiet", "--on-failure", str(tmp_path / "file" / "report"), "--", "sh", "-c", "exit 7")

    assert 7 == code
    assert f"extcli exec: cannot write {tmp_path / 'file' / 'report'}: " in log


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
    [service] = set(children_of(run.process.pid)) - {process_named("sh", run.process.pid)}
    os.kill(service, signal.SIGKILL)
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
    runs = [ExecProcess("--quiet", "--", "sh", "-c", "echo $EXTCLI_URL; read end", env=places) for _ in range(8)]
    urls = [run.line() for run in runs]
    headers = {"authorization": authorization()}
    counts = [httpx.post(f"{url}/v1/e/vote", json={"value": 1}, headers=headers).json()["count"] for url in urls]
    ends = [run.end() for run in runs]

    assert 8 == len(set(urls))
    assert [1] * 8 == counts
    assert [(1, "", "")] * 8 == ends  # `read` at the end of the input exits 1
    assert sorted(places) == sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*"))


def test_the_command_knows_the_report_of_its_own_run_only(tmp_path: Path):
    command = ("--", "sh", "-c", "echo $EXTCLI_ON_FAILURE")
    of_another_run = {"EXTCLI_ON_FAILURE": "/elsewhere"}
    _, with_report, _ = run_exec("--quiet", "--on-failure", str(tmp_path), *command, env=of_another_run)
    _, without_report, _ = run_exec("--quiet", *command, env=of_another_run)

    assert (f"{tmp_path}\n", "\n") == (with_report, without_report)
