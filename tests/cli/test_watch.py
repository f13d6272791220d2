"""`--watch`: redraws a terminal, and prints one JSON line per change in a pipe."""

from __future__ import annotations

import json

import pytest

from support.listen_process import TIMEOUT
from support.terminal import Terminal

pytestmark = pytest.mark.slow


def test_a_pipe_gets_a_json_line_for_each_change(extcli, shell):
    process = shell("vote", "get", "lunch", "--watch")
    first = json.loads(process.stdout.readline())
    extcli("vote", "cast", "lunch", "--value", "3")
    second = json.loads(process.stdout.readline())
    process.kill()
    rest, _ = process.communicate(timeout=TIMEOUT)

    assert (0, 1, b"") == (first["stats"]["count"], second["stats"]["count"], rest)


def test_a_query_selects_what_is_watched(extcli, shell):
    process = shell("rank", "get", "fruit", "--watch", "--query", "data[].key")
    lines = [process.stdout.readline()]
    for key in ("apple", "pear"):
        extcli("rank", "submit", "fruit", "--key", key, "--as", f"viewer:{key}")
        lines.append(process.stdout.readline())
    process.kill()
    process.communicate(timeout=TIMEOUT)

    assert [[], ["apple"], ["apple", "pear"]] == [json.loads(line) for line in lines]


def test_a_watch_ends_after_its_timeout(extcli):
    result = extcli("vote", "get", "lunch", "--watch", "--timeout", "1s")

    assert (0, 1) == (result.exit_code, len(result.stdout.splitlines()))


def test_a_watch_ends_if_the_service_is_gone(extcli):
    assert 3 == extcli("vote", "get", "--watch", "--url", "http://127.0.0.1:1").exit_code


def test_a_terminal_is_redrawn(extcli):
    with Terminal("vote", "get", "lunch", "--watch", TERM="xterm") as terminal:
        terminal.read_until("no votes yet")
        extcli("vote", "cast", "lunch", "--value", "3")
        terminal.read_until("1 vote, mean 3")
