"""No token, PIN, code, secret or body stands in anything that the service or the program writes, at any level."""

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
from support.leak_detector import LeakDetector
from support.otlp_collector import Collector
from support.process import COMMAND
from support.scenario import Scenario
from support.service import CHANNEL, CLIENT_ID, RunningService
from support.socket_client import SocketClient

PROGRAM = COMMAND[0]
KEY = b"the secret of the extension in the tests"
SAYS_ALL = ("--log-level", "debug", "--log-requests")
"""What has a service write as much as it can."""
PASSWORD = "the-password-of-the-tests"


class Written:
    """A service whose output, all of it, goes to a file: that of its workers too."""

    def __init__(self, folder: Path, *args: str, **environment: str) -> None:
        self._out, self._err = folder / "out.txt", folder / "err.txt"
        self.cwd = folder / "cwd"
        self.cwd.mkdir()
        self._pipe = self._out.open("wb"), self._err.open("wb")
        self.process = subprocess.Popen(
            [*COMMAND, "--port", "0", *SAYS_ALL, *args],
            stdout=self._pipe[0],
            stderr=self._pipe[1],
            cwd=self.cwd,
            env={**os.environ, **environment},
        )

    def url(self) -> str:
        while not (line := self._out.read_text()):
            assert self.process.poll() is None, self._err.read_text()
        return line.removeprefix("listening on ").strip()

    def everything(self) -> str:
        """All that was written, once the service has ended; it leaves no file behind."""
        self.process.send_signal(signal.SIGTERM)
        assert 0 == self.process.wait(5)
        assert [] == list(self.cwd.iterdir())
        return self._out.read_text() + self._err.read_text()

    def until(self, text: str) -> None:
        """Wait until the log has it."""
        while text not in self._err.read_text():
            assert self.process.poll() is None


@contextmanager
def running(folder: Path, *args: str, **environment: str) -> Iterator[tuple[Written, RunningService]]:
    written = Written(folder, *args, **environment)
    try:
        yield written, RunningService(written.url())
    finally:
        written.process.kill()
        written.process.wait()


@pytest.fixture
def seen() -> LeakDetector:
    seen = LeakDetector()
    seen.add_key(KEY, "the extension's secret")
    return seen


@pytest.fixture
def register(tmp_path: Path) -> Path:
    file = tmp_path / "extensions.toml"
    file.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{base64.b64encode(KEY).decode()}"]\n')
    return file


def spoil(register: Path, seen: LeakDetector) -> None:
    """Have the file be none that can be taken, with secrets in the line that is wrong."""
    secret = base64.b64encode(seen.make("a secret of a broken file").encode()).decode()
    register.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{seen.add(secret, "a broken secret")}!"]\n')


@pytest.mark.parametrize("shape", ["text", "json"])
def test_a_sandbox_that_is_asked_everything_says_none_of_it(tmp_path: Path, seen: LeakDetector, shape: str):
    with running(tmp_path, "--log-format", shape) as (written, service):
        Scenario(service, seen, b"whatever signs it in a sandbox, 32 bytes").live()
        text = written.everything()

    assert text.count("emulator.requests") > 80
    assert set() == seen.found_in(text)


@pytest.mark.parametrize("shape", ["text", "json"])
def test_workers_in_production_with_traces_and_a_broken_file_say_none_of_it(
    tmp_path: Path, seen: LeakDetector, register: Path, shape: str
):
    production = ("--production", "--extensions", str(register), "--workers", "2", "--otel")
    with Collector() as collector, running(
        tmp_path, *production, "--data", f"sqlite:///{tmp_path}/data.db", "--log-format", shape,
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
    ) as (written, service):  # fmt: skip
        life = Scenario(service, seen, KEY)
        life.live()
        spoil(register, seen)
        written.process.send_signal(signal.SIGHUP)
        written.until("stay as they were")
        life.features()
        text = written.everything() + b"".join(collector.payloads).decode("latin-1")

    assert text.count("POST /v1/e/vote") > 4  # in the log and in spans
    assert set() == seen.found_in(text)


def test_storage_that_is_lost_is_complained_of_without_its_password_or_what_was_asked(
    tmp_path: Path, seen: LeakDetector, register: Path
):
    seen.add(PASSWORD, "the password of Redis")
    with RedisServer(tmp_path, "--user", "app", "on", f">{PASSWORD}", "~*", "&*", "+@all") as redis:
        url = redis.url().replace("redis://", f"redis://app:{PASSWORD}@")
        with running(tmp_path, "--production", "--extensions", str(register), "--data", url) as (written, service):
            life = Scenario(service, seen, KEY)
            life.live()
            viewer, admin = life.as_one("viewer"), life.as_one("admin")
            with SocketClient(service) as game:
                redis.kill()
                statuses = {
                    viewer.post("accumulate", json={"x": seen.make("a lost text")}).status_code,
                    admin.put("codes", json={"codes": [[seen.make("a lost code")]], "names": ["a"]}).status_code,
                    life.http.post("/v1/e/pin", json={"identifier": CLIENT_ID}).status_code,
                }
                game.error("authenticate", data={"client_id": CLIENT_ID, "pin": seen.make("a PIN that comes too late")})
            text = written.everything()

    assert {503} == statuses
    assert "storage failed in POST /v1/e/accumulate" in text
    assert set() == seen.found_in(text)


@pytest.mark.parametrize("shape", ["text", "json"])
def test_a_failure_that_nobody_expected_shows_where_it_was_and_not_what_was_at_hand(
    tmp_path: Path, seen: LeakDetector, shape: str
):
    with running(tmp_path, "--data", f"sqlite:///{tmp_path}/data.db", "--log-format", shape) as (written, service):
        life = Scenario(service, seen, KEY)
        viewer = life.as_one("viewer")
        viewer.post("viewer_state", json={"x": 1}).raise_for_status()
        with sqlite3.connect(tmp_path / "data.db") as spoiled:
            spoiled.execute("UPDATE documents SET value = ?", (f'{{"x": {seen.make("what is kept")}'.encode(),))
        spoiled.close()
        statuses = {viewer.patch("viewer_state", json={"y": seen.make("a patch")}).status_code}
        text = written.everything()

    assert {500} == statuses
    assert "Traceback" in text
    assert set() == seen.found_in(text)


@pytest.mark.parametrize("url", ["redis://app:%s@127.0.0.1:1/0", "redis://app:%s/@127.0.0.1/0", "resid://:%s@here/0"])
def test_data_that_cannot_be_opened_is_complained_of_without_its_password(seen: LeakDetector, url: str):
    ended = subprocess.run(
        [*COMMAND, "--port", "0", *SAYS_ALL, "--data", url % seen.add(PASSWORD, "the password of Redis")],
        capture_output=True,
        text=True,
        timeout=20,
    )

    assert (2, 1, "") == (ended.returncode, len(ended.stderr.splitlines()), ended.stdout)
    assert set() == seen.found_in(ended.stderr)


def test_the_program_shows_what_it_does_without_a_secret(tmp_path: Path, seen: LeakDetector, register: Path):
    codes = [seen.make("a code") for _ in range(3)]
    (tmp_path / "hats.txt").write_text("".join(f"{code}\n" for code in codes))
    secret = base64.b64encode(KEY).decode()
    said: list[str] = []
    exits: list[int] = []

    with running(tmp_path, "--production", "--extensions", str(register)) as (written, service):
        life = Scenario(service, seen, KEY)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
        variables |= {
            "EXTCLI_URL": service.url,
            "EXTCLI_STATE_DIR": str(tmp_path / "state"),
            "EXTCLI_CLIENT_ID": CLIENT_ID,
        }

        def extcli(*args: str, given: str = "", **more: str) -> str:
            """Run a command with all it has to say, and return its result, which may be a secret."""
            ended = subprocess.run(
                [PROGRAM, *args, "-v"], input=given, capture_output=True, text=True, timeout=20,
                env={**variables, "EXTCLI_SECRET": secret, "EXTCLI_CHANNEL": CHANNEL, **more},
            )  # fmt: skip
            said.append(ended.stderr)
            exits.append(ended.returncode)
            return ended.stdout

        extcli("vote", "cast", "rps", "--value", "1")
        extcli("vote", "cast", "rps", "--value", "1", EXTCLI_TOKEN=life.token("viewer"))
        extcli("vote", "cast", "rps", "--value", "1", EXTCLI_TOKEN=seen.make("a bad token"))
        extcli("codes", "upload", "--set", f"Hat={tmp_path}/hats.txt", "--yes")
        extcli("codes", "mark-from-list", "--from", "-", "--prize", "0", given="U5\n")
        extcli("codes", "redeem", "0", "--as", "viewer:U5")
        pin = seen.add(extcli("pin", "request", "-o", "plain").strip(), "a PIN")
        extcli("pin", "login", given=pin)
        extcli("pin", "login", given=seen.add("7T7T7T", "a wrong PIN"))
        seen.add_token(extcli("token", "refresh").strip(), "an access token")
        extcli("socket", "send", "set", "state", "--data", '{"state_id": "channel", "state": {"x": 1}}')
        extcli("broadcast", "send", "e", f'"{codes[1]}"')
        kept = re.findall(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", (tmp_path / "state" / "links.json").read_text())
        for token in kept:
            seen.add_token(token, "a kept refresh token")
        text = written.everything()

    assert [0, 0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 0] == exits
    assert all(said)
    assert kept
    assert set() == seen.found_in("".join(said) + text)


def test_the_search_would_find_any_of_them(seen: LeakDetector):
    token, pin = seen.signed(KEY, "a token", role="viewer"), seen.add("3W3W3W", "a PIN")
    payload, signature = token.split(".")[1:]

    for leak in (f"x {token}", payload, f"{signature[:-1]}", pin, base64.b64encode(KEY).decode(), KEY.decode()):
        assert seen.found_in(f"…{leak}…"), leak
    assert set() == seen.found_in(token.split(".")[0])
