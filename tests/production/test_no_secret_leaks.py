"""Neither the service nor `extcli` writes a token, PIN, code, secret or body, at any log level."""

from __future__ import annotations

import base64
import os
import re
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from production.leak_detector import LeakDetector
from production.logged_service import running
from production.scenario import Scenario
from support.otlp_collector import Collector
from support.preloaded import put_program
from support.service import CHANNEL, CLIENT_ID
from support.socket_client import SocketClient

KEY = b"the secret of the extension in the tests"
PASSWORD = "the-password-of-the-tests"


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


@pytest.mark.long
def test_production_logs_and_traces_no_secret_also_when_its_storage_fails(
    tmp_path: Path, seen: LeakDetector, extensions_file: Path
):
    seen.add(PASSWORD, "the password of Redis")
    with (
        Collector() as collector,
        RedisServer(tmp_path, "--user", "app", "on", f">{PASSWORD}", "~*", "&*", "+@all") as redis,
        running(
            tmp_path,
            *("--production", "--extensions", str(extensions_file), "--otel", "--log-format", "json"),
            *("--data", redis.url().replace("redis://", f"redis://app:{PASSWORD}@")),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        ) as service,
    ):
        scenario = Scenario(service, seen, KEY)
        scenario.run()
        corrupt(extensions_file, seen)
        service.process.send_signal(signal.SIGHUP)
        service.wait_for("stay as they were")
        scenario.features()
        viewer, admin = scenario.client("viewer"), scenario.client("admin")
        with SocketClient(service) as game:
            redis.kill()
            statuses = {
                viewer.post("accumulate", json={"x": seen.make("a lost text")}).status_code,
                admin.put("codes", json={"codes": [[seen.make("a lost code")]], "names": ["a"]}).status_code,
                scenario.http.post("/v1/e/pin", json={"identifier": CLIENT_ID}).status_code,
            }
            game.error("authenticate", data={"client_id": CLIENT_ID, "pin": seen.make("a late PIN")})
        text = service.output() + b"".join(collector.payloads).decode("latin-1")

    assert {503} == statuses
    assert text.count("POST /v1/e/vote") > 4  # in the log and in spans
    assert text.count("emulator.audit") > 16
    assert "storage failed in POST /v1/e/accumulate" in text
    assert set() == seen.found_in(text)


@pytest.mark.long
def test_an_unexpected_failure_logs_a_traceback_without_data(tmp_path: Path, seen: LeakDetector):
    with running(tmp_path, "--data", f"sqlite:///{tmp_path}/data.db") as service:
        scenario = Scenario(service, seen, KEY)
        viewer = scenario.client("viewer")
        viewer.post("viewer_state", json={"x": 1}).raise_for_status()
        with sqlite3.connect(tmp_path / "data.db") as database:
            stored = f'{{"x": {seen.make("a stored text")}'.encode()
            database.execute("UPDATE documents SET value = ? WHERE kind = 'viewer_state'", (stored,))
        database.close()
        statuses = {viewer.patch("viewer_state", json={"y": seen.make("a patch")}).status_code}
        text = service.output()

    assert {500} == statuses
    assert "Traceback" in text
    assert set() == seen.found_in(text)


@pytest.mark.long
def test_verbose_commands_show_no_secret(tmp_path: Path, seen: LeakDetector, extensions_file: Path):
    codes = [seen.make("a code") for _ in range(3)]
    (tmp_path / "hats.txt").write_text("".join(f"{code}\n" for code in codes))
    secret = base64.b64encode(KEY).decode()
    put_program(tmp_path)
    errors: list[str] = []
    exits: list[int] = []

    with running(tmp_path, "--production", "--extensions", str(extensions_file)) as service:
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
                [tmp_path / "extcli", *args, "-v"], input=given, capture_output=True, text=True, timeout=60,
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
        text = service.output()

    assert [0, 0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 0] == exits
    assert all(errors)
    assert kept
    assert set() == seen.found_in("".join(errors) + text)
