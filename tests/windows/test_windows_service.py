"""`extcli serve` on Windows: the rules, data in a file, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from support.program import PROGRAM, SECRET_BASE64
from support.service import CLIENT_ID
from windows.conftest import TIMEOUT, Windows
from windows.voters import Voters

KILLS = 20
ENOUGH = 30
"""Votes that a killed service has acknowledged, at least."""
EXTENSIONS = f'[extensions.{CLIENT_ID}]\nsecrets = ["{SECRET_BASE64}"]\n'
ELSEWHERE = {"only in production", "only in sandbox", "needs the control API of an emulator"}


@pytest.mark.parametrize("data", ["memory", "file"])
@pytest.mark.parametrize("mode", ["sandbox", "production"])
def test_the_service_keeps_all_rules(windows: Windows, data: str, mode: str):
    """The rules are checked from Linux, over loopback."""
    (windows.folder / "extensions.toml").write_text(EXTENSIONS, newline="\r\n")
    options = ["--extensions", "extensions.toml"]
    options += ["--production"] if mode == "production" else []
    options += ["--data", "sqlite:///" + windows.path("data.db")] if data == "file" else []
    with windows.service(*options) as service:
        checked = ("conform", "--writes", "--yes", "--whole-extension", "--url", service.url, "-o", "json")
        environment = {**os.environ, "EXTCLI_SECRET": SECRET_BASE64}
        result = subprocess.run([PROGRAM, *checked], capture_output=True, env=environment, timeout=TIMEOUT)

    rules = json.loads(result.stdout)["rules"]
    assert [] == [each for each in rules if each["status"] not in ("pass", "skipped")]
    assert {each["reason"] for each in rules if "reason" in each} <= ELSEWHERE


def test_the_same_rules_are_checked_on_windows(windows: Windows):
    with windows.service() as service:
        printed = windows.extcli("conform", "--url", service.url, "-o", "json")

    assert [] == [each for each in json.loads(printed)["rules"] if each["status"] not in ("pass", "skipped")]


def test_a_killed_service_loses_no_acknowledged_vote(windows: Windows):
    acknowledged: dict[str, int] = {}
    for number in range(KILLS):
        with windows.service("--data", "sqlite:///./data.db") as service:
            voters = Voters(service, str(number))
            voters.wait_for(ENOUGH, TIMEOUT)
            windows.terminate(int((windows.folder / "data.db-lock").read_bytes()[1:]))
            voters.join()
        acknowledged |= voters.acknowledged

    with windows.service("--data", "sqlite:///./data.db") as service:
        entries = service.client("backend", channel="777").get("vote_logs").json()["result"]
    kept = {entry["identifier"]: entry["value"] for entry in entries}

    assert {} == {user: value for user, value in acknowledged.items() if kept.get(user) != value}
    assert len(acknowledged) >= KILLS * ENOUGH


def test_a_second_service_on_a_file_or_a_port_is_refused(windows: Windows):
    with windows.service("--data", "sqlite:///./data.db") as service:
        port = service.url.rpartition(":")[2]
        same_file = windows.extcli("serve", "--port", "0", "--data", "sqlite:///./data.db", fails=2)
        same_port = windows.extcli("serve", "--port", port, fails=2)

    assert "in use by another extcli serve" in same_file
    assert "--port 0 chooses a free port" in same_port


def test_ctrl_c_stops_a_service_and_keeps_its_data(windows: Windows):
    with windows.service("--data", "sqlite:///./data.db", "--export-on-exit", "out é.json") as service:
        service.client("viewer", user="1", channel="777").post("vote", json={"value": 3}).raise_for_status()
        code, log = service.interrupt()

    assert (0, "stopped") == (code, log.splitlines()[-1].rpartition(" ")[2])
    assert '"choice":"3"' in (windows.folder / "out é.json").read_text("utf-8")


def test_a_backup_is_restored(windows: Windows):
    data = ("--data", "sqlite:///./data.db")
    with windows.service(*data) as service:
        service.client("viewer", user="1", channel="777").post("vote", json={"value": 3}).raise_for_status()
        windows.extcli("data", "backup", "saved.db", *data)
        service.client("viewer", user="2", channel="777").post("vote", json={"value": 3}).raise_for_status()
        refused = windows.extcli("data", "restore", "saved.db", *data, fails=2)
        service.interrupt()
    windows.extcli("data", "restore", "saved.db", *data)

    with windows.service(*data) as service:
        poll = service.client("backend", channel="777").get("vote").json()
    assert "in use by another extcli serve" in refused
    assert 1 == poll["stats"]["count"]


def test_a_service_with_a_name_is_listed_and_stopped(windows: Windows):
    with windows.service("--name", "web", "--data", "sqlite:///./data.db", "--export-on-exit", "out.json") as service:
        [listed] = json.loads(windows.extcli("status", "-o", "json"))["services"]
        taken = windows.extcli("serve", "--port", "0", "--name", "web", fails=2)
        windows.extcli("stop", "web")
        service.process.wait(TIMEOUT)

    assert ("web", service.url) == (listed["name"], listed["url"])
    assert "--name web is taken by pid" in taken
    assert (windows.folder / "out.json").exists()
    assert {"services": []} == json.loads(windows.extcli("status", "-o", "json", fails=0))


def test_a_killed_service_is_listed_no_more(windows: Windows):
    with windows.service("--name", "web") as service:
        [listed] = json.loads(windows.extcli("status", "-o", "json"))["services"]
        windows.terminate(listed["pid"])
        service.process.wait(TIMEOUT)

        assert {"services": []} == json.loads(windows.extcli("status", "-o", "json"))
