"""Neither the service nor `extcli` writes a token, PIN, code, secret or body, at any log level."""

from __future__ import annotations

import base64
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from production.leak_detector import LeakDetector
from production.scenario import Scenario
from support.otlp_collector import Collector
from support.process import COMMAND
from support.service import CHANNEL, CLIENT_ID, RunningService
from support.socket_client import SocketClient

pytestmark = pytest.mark.long

PROGRAM = COMMAND[0]
KEY = b"the secret of the extension in the tests"
VERBOSE = ("--log-level", "debug", "--log-requests")
PASSWORD = "the-password-of-the-tests"


class LoggedService:
    """A service whose whole output goes to files."""

    def __init__(self, folder: Path, *args: str, **environment: str) -> None:
        self._out, self._err = folder / "out.txt", folder / "err.txt"
        self.cwd = folder / "cwd"
        self.cwd.mkdir()
        self._pipe = self._out.open("wb"), self._err.open("wb")
        self.process = subprocess.Popen(
            [*COMMAND, "--port", "0", *VERBOSE, *args],
            stdout=self._pipe[0],
            stderr=self._pipe[1],
            cwd=self.cwd,
            env={**os.environ, **environment},
        )

    def url(self) -> str:
        while not (line := self._out.read_text()):
            assert self.process.poll() is None, self._err.read_text()
        return line.removeprefix("listening on ").strip()

    def stop(self) -> str:
        """Stop the service and return its output; assert that it left no file behind."""
        self.process.send_signal(signal.SIGTERM)
        assert 0 == self.process.wait(5)
        assert [] == list(self.cwd.iterdir())
        return self._out.read_text() + self._err.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until the log contains the text."""
        while text not in self._err.read_text():
            assert self.process.poll() is None


@contextmanager
def running(folder: Path, *args: str, **environment: str) -> Iterator[tuple[LoggedService, RunningService]]:
    logged = LoggedService(folder, *args, **environment)
    try:
        yield logged, RunningService(logged.url())
    finally:
        logged.process.kill()
        logged.process.wait()


@pytest.fixture
def seen() -> LeakDetector:
    seen = LeakDetector()
    seen.add_key(KEY, "the extension's secret")
    return seen


@pytest.fixture
def extensions_file(tmp_path: Path) -> Path:
    file = tmp_path / "extensions.toml"
    file.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{base64.b64encode(KEY).decode()}"]\n')
    return file


def corrupt(extensions_file: Path, seen: LeakDetector) -> None:
    """Make the file invalid, in a line that contains a secret."""
    secret = base64.b64encode(seen.make("a secret of an invalid file").encode()).decode()
    extensions_file.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{seen.add(secret, "an invalid secret")}!"]\n')


def test_a_sandbox_logs_no_secret(tmp_path: Path, seen: LeakDetector):
    with running(tmp_path) as (logged, service):
        Scenario(service, seen, b"any key signs tokens in a sandbox, 32 B+").run()
        text = logged.stop()

    assert text.count("emulator.requests") > 80
    assert text.count("emulator.audit") > 8
    assert set() == seen.found_in(text)


def test_production_with_traces_logs_no_secret(tmp_path: Path, seen: LeakDetector, extensions_file: Path):
    production = ("--production", "--extensions", str(extensions_file), "--otel")
    with Collector() as collector, running(
        tmp_path, *production, "--data", f"sqlite:///{tmp_path}/data.db", "--log-format", "json",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
    ) as (logged, service):  # fmt: skip
        scenario = Scenario(service, seen, KEY)
        scenario.run()
        corrupt(extensions_file, seen)
        logged.process.send_signal(signal.SIGHUP)
        logged.wait_for("stay as they were")
        scenario.features()
        text = logged.stop() + b"".join(collector.payloads).decode("latin-1")

    assert text.count("POST /v1/e/vote") > 4  # in the log and in spans
    assert text.count("emulator.audit") > 16
    assert set() == seen.found_in(text)


def test_a_storage_failure_logs_no_password_and_no_body(tmp_path: Path, seen: LeakDetector, extensions_file: Path):
    seen.add(PASSWORD, "the password of Redis")
    with RedisServer(tmp_path, "--user", "app", "on", f">{PASSWORD}", "~*", "&*", "+@all") as redis:
        url = redis.url().replace("redis://", f"redis://app:{PASSWORD}@")
        with running(tmp_path, "--production", "--extensions", str(extensions_file), "--data", url) as (
            logged,
            service,
        ):
            scenario = Scenario(service, seen, KEY)
            scenario.run()
            viewer, admin = scenario.client("viewer"), scenario.client("admin")
            with SocketClient(service) as game:
                redis.kill()
                statuses = {
                    viewer.post("accumulate", json={"x": seen.make("a lost text")}).status_code,
                    admin.put("codes", json={"codes": [[seen.make("a lost code")]], "names": ["a"]}).status_code,
                    scenario.http.post("/v1/e/pin", json={"identifier": CLIENT_ID}).status_code,
                }
                game.error("authenticate", data={"client_id": CLIENT_ID, "pin": seen.make("a late PIN")})
            text = logged.stop()

    assert {503} == statuses
    assert "storage failed in POST /v1/e/accumulate" in text
    assert set() == seen.found_in(text)


def test_an_unexpected_failure_logs_a_traceback_without_data(tmp_path: Path, seen: LeakDetector):
    with running(tmp_path, "--data", f"sqlite:///{tmp_path}/data.db") as (logged, service):
        scenario = Scenario(service, seen, KEY)
        viewer = scenario.client("viewer")
        viewer.post("viewer_state", json={"x": 1}).raise_for_status()
        with sqlite3.connect(tmp_path / "data.db") as database:
            stored = f'{{"x": {seen.make("a stored text")}'.encode()
            database.execute("UPDATE documents SET value = ? WHERE kind = 'viewer_state'", (stored,))
        database.close()
        statuses = {viewer.patch("viewer_state", json={"y": seen.make("a patch")}).status_code}
        text = logged.stop()

    assert {500} == statuses
    assert "Traceback" in text
    assert set() == seen.found_in(text)


def test_verbose_commands_show_no_secret(tmp_path: Path, seen: LeakDetector, extensions_file: Path):
    codes = [seen.make("a code") for _ in range(3)]
    (tmp_path / "hats.txt").write_text("".join(f"{code}\n" for code in codes))
    secret = base64.b64encode(KEY).decode()
    errors: list[str] = []
    exits: list[int] = []

    with running(tmp_path, "--production", "--extensions", str(extensions_file)) as (logged, service):
        scenario = Scenario(service, seen, KEY)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
        variables |= {
            "EXTCLI_URL": service.url,
            "EXTCLI_STATE_DIR": str(tmp_path / "state"),
            "EXTCLI_CLIENT_ID": CLIENT_ID,
        }

        def extcli(*args: str, given: str = "", **more: str) -> str:
            """Run a verbose command; return its standard output, which may be a secret."""
            ended = subprocess.run(
                [PROGRAM, *args, "-v"], input=given, capture_output=True, text=True, timeout=60,
                env={**variables, "EXTCLI_SECRET": secret, "EXTCLI_CHANNEL": CHANNEL, **more},
            )  # fmt: skip
            errors.append(ended.stderr)
            exits.append(ended.returncode)
            return ended.stdout

        extcli("vote", "cast", "rps", "--value", "1")
        extcli("vote", "cast", "rps", "--value", "1", EXTCLI_TOKEN=scenario.token("viewer"))
        extcli("vote", "cast", "rps", "--value", "1", EXTCLI_TOKEN=seen.make("a bad token"))
        extcli("codes", "upload", "--set", f"Hat={tmp_path}/hats.txt", "--yes")
        extcli("codes", "mark-from-list", "--from", "-", "--prize", "0", given="U5\n")
        extcli("codes", "redeem", "0", "--as", "viewer:U5")
        pin = seen.add(extcli("pin", "request", "-o", "plain").strip(), "a PIN")
        extcli("pin", "login", given=pin)
        extcli("pin", "login", given=seen.add("7T7T7T", "a wrong PIN"))
        seen.add_token(extcli("link", "token").strip(), "an access token")
        extcli("socket", "send", "set", "state", "--data", '{"state_id": "channel", "state": {"x": 1}}', "--yes")
        extcli("broadcast", "send", "e", f'"{codes[1]}"')
        kept = re.findall(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", (tmp_path / "state" / "links.json").read_text())
        for token in kept:
            seen.add_token(token, "a kept refresh token")
        text = logged.stop()

    assert [0, 0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 0] == exits
    assert all(errors)
    assert kept
    assert set() == seen.found_in("".join(errors) + text)
