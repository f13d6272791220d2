"""`extcli logs -f`: follows the journal, and says what was lost."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from emulator.config.settings import Settings
from support.listen_process import TIMEOUT, read_until
from support.process import server_process
from support.service import CHANNEL, live_server


def test_follow_shows_entries_as_they_happen(shell, viewer):
    process = shell("logs", "-f", "--path", "vote", "-o", "plain", "--limit", "1", "--count", "3")
    assert process.stdout is not None
    seen = []
    for number in range(3):
        viewer().get(f"vote?id={number}")
        seen.append(process.stdout.readline().decode().split("\t")[2])

    assert [f"GET /v1/e/vote?id={number}" for number in range(3)] == seen
    assert 0 == process.wait(TIMEOUT)


def test_follow_begins_with_the_latest_entries(extcli, filled):
    lines = extcli("logs", "-f", "--limit", "2", "--count", "2", "-o", "jsonl").jsonl

    assert ["/v1/e/vote_logs", "/v1/e/polls"] == [entry["path"] for entry in lines]


def test_follow_ends_at_the_timeout(extcli, filled):
    result = extcli("logs", "-f", "--since", "0", "--path", "/v1/e/", "--timeout", "300ms", "-o", "jsonl")

    assert (0, 3) == (result.exit_code, sum("lost" not in line for line in result.jsonl))


def test_follow_says_how_many_entries_were_lost(extcli, environment):
    with live_server(Settings(journal=50_000)) as small:
        voter = small.client("viewer", user="1", channel=CHANNEL)
        for _ in range(200):
            voter.get("vote")

        result = extcli("logs", "-f", "--since", "0", "--timeout", "300ms", "-o", "jsonl", "--url", small.url)

    lost, *entries = result.jsonl
    assert {"lost": 200 - len(entries)} == lost
    assert re.search(rf"gap: {lost['lost']} entries were lost before 20\d\d-", result.stderr)


def test_follow_resumes_after_a_lost_connection_and_says_the_gap(shell, tmp_path: Path):
    port = ""
    with server_process() as first:
        port = first.url.rpartition(":")[2]
        process = shell("logs", "-f", "--path", "/v1/e/", "-o", "jsonl", "--count", "2", "--url", first.url)
        assert process.stdout is not None
        first.client("viewer", user="1", channel=CHANNEL).get("vote?id=before")
        assert "id=before" in json.loads(process.stdout.readline())["path"]
        first.process.send_signal(signal.SIGKILL)
        assert read_until(process, "lost: ")
    with server_process(EXTCLI_SERVE_PORT=port) as second:
        second.client("viewer", user="1", channel=CHANNEL).get("vote?id=after")
        assert "id=after" in json.loads(process.stdout.readline())["path"]

    assert 0 == process.wait(TIMEOUT)
    assert process.stderr is not None
    stderr = process.stderr.read().decode()
    assert "gap: the service was restarted; entries that it had not sent are lost" in stderr
    assert "connected again after" in stderr


def test_count_is_for_following(extcli):
    assert 2 == extcli("logs", "--count", "1").exit_code
