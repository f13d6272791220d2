"""`--watch`: each result looks as it does without it, one below the other; a terminal is redrawn."""

from __future__ import annotations

import json

import pytest

from support.listen_process import TIMEOUT
from support.terminal import Terminal

SECONDS = ("--watch", "--timeout", "100ms")


@pytest.fixture
def filled(extcli) -> None:
    for line in (
        "vote cast lunch 1",
        "rank submit colour --key blue",
        "rank submit colour --key red --as viewer:U2",
        "trivia define q1",
        "trivia define-option q1 red",
    ):
        extcli(*line.split())


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("form", ["table", "plain", "csv", "jsonl"])
def test_a_watched_result_has_the_chosen_format(extcli, form: str):
    for command in ("vote get lunch", "rank get colour", "vote get lunch --query stats.count"):
        watched = extcli(*command.split(), "-o", form, *SECONDS, exits=0).stdout
        assert extcli(*command.split(), env={"EXTCLI_OUTPUT": form}).stdout == watched != ""


def test_watched_csv_has_the_names_of_its_columns_once(extcli, shell):
    extcli("rank", "submit", "colour", "--key", "blue")
    process = shell("rank", "get", "colour", "--watch", "-o", "csv")
    first = [process.stdout.readline() for _ in range(2)]
    extcli("rank", "submit", "colour", "--key", "red", "--as", "viewer:U2")
    second = [process.stdout.readline() for _ in range(2)]
    process.terminate()
    rest, _ = process.communicate(timeout=60)

    assert [b"key,score\n", b"blue,1\n"] == first
    assert {b"blue,1\n", b"red,1\n"} == {*second}
    assert b"" == rest


@pytest.mark.slow
def test_a_pipe_gets_a_json_line_for_each_change(extcli, shell):
    process = shell("vote", "get", "lunch", "--watch", "--query", "stats.specific[3]")
    seen = [json.loads(process.stdout.readline())]
    extcli("vote", "cast", "lunch", "--value", "3")
    seen.append(json.loads(process.stdout.readline()))
    process.kill()
    rest, _ = process.communicate(timeout=TIMEOUT)

    assert ([0, 1], b"") == (seen, rest)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code", "lines"), [("--timeout 200ms", 0, 1), ("--url http://127.0.0.1:1", 3, 0)])
def test_a_watch_ends_after_its_timeout_or_without_a_service(extcli, words, code, lines):
    assert lines == len(extcli("vote", "get", "lunch", "--watch", *words.split(), exits=code).stdout.splitlines())


@pytest.mark.slow
def test_a_terminal_is_redrawn(extcli):
    with Terminal("vote", "get", "lunch", "--watch", TERM="xterm") as terminal:
        terminal.read_until("no votes yet")
        extcli("vote", "cast", "lunch", "--value", "3")
        terminal.read_until("1 vote")
