"""`--watch` in every format: each result looks as it does without `--watch`, one below the other."""

from __future__ import annotations

import pytest

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
@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_watched_result_has_the_chosen_format(extcli, form: str, by: str):
    for command in ("vote get lunch", "rank get colour", "vote get lunch --query stats.count"):
        chosen, env = (("-o", form), {}) if by == "option" else ((), {"EXTCLI_OUTPUT": form})

        watched = extcli(*command.split(), *chosen, *SECONDS, env=env, exits=0).stdout

        assert extcli(*command.split(), *chosen, env=env).stdout == watched != ""


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("chosen", [(), ("-o", "json")])
def test_a_watched_result_is_a_line_of_json_unless_another_format_is_chosen(extcli, chosen):
    [document] = extcli("rank", "get", "colour", *chosen, *SECONDS, exits=0).jsonl

    assert ["blue", "red"] == sorted(each["key"] for each in document["data"])


def test_watched_csv_has_the_names_of_its_columns_once(extcli, shell):
    extcli("rank", "submit", "colour", "--key", "blue")
    process = shell("rank", "get", "colour", "--watch", "-o", "csv")
    first = [process.stdout.readline() for _ in range(2)]
    extcli("rank", "submit", "colour", "--key", "red", "--as", "viewer:U2")
    second = [process.stdout.readline() for _ in range(2)]
    process.terminate()
    rest, _ = process.communicate(timeout=20)

    assert [b"key,score\n", b"blue,1\n"] == first
    assert {b"blue,1\n", b"red,1\n"} == {*second}
    assert b"" == rest
