"""A bulk run ends at the first refusal that is about the id of the poll, ranking or buffer, which all lines share."""

from __future__ import annotations

import pytest

from support.journal import entries_of
from support.program import http_response
from support.service import LiveServer

LINES = "".join(f"U{number},1\n" for number in range(50))
RUNS = [
    ("vote", "cast", "a b"),
    ("vote", "cast", "x" * 200),
    ("rank", "submit", "a\tb"),
    ("rank", "submit", "x" * 2_000),
    ("accumulate", "add", "a\tb"),
    ("accumulate", "add", "x" * 2_000),
]


@pytest.mark.parametrize(("noun", "verb", "id"), RUNS)
def test_an_id_that_is_refused_ends_the_run_at_its_first_line(extcli, live: LiveServer, noun: str, verb: str, id: str):
    lines = LINES if noun != "accumulate" else '{"a":1}\n' * 50

    result = extcli(noun, verb, "--from", "-", "--concurrency", "1", id, input=lines, exits=4)

    assert 1 == len([each for each in entries_of(live) if each["status"] == 400])
    assert "line 1: " in result.stderr


@pytest.mark.parametrize("info", ["id: must be 1 to 64 characters", "id: all channels share it"])
def test_the_error_of_such_a_run_is_that_of_the_service(extcli, answering, info: str):
    refusal = http_response("400 Bad Request", f'{{"reason": "Invalid poll id", "info": "{info}"}}')

    result = extcli("vote", "cast", "--from", "-", "--url", answering(refusal), input=LINES, exits=4)

    assert info in result.stderr


def test_a_refusal_of_one_line_does_not_end_the_run(extcli, live: LiveServer):
    result = extcli("vote", "cast", "--from", "-", "lunch", input="U1,1\nU2,100\nU3,2\n", exits=4)

    assert "3 sent, 2 accepted, 1 refused" in result.stderr


def test_a_closed_poll_ends_the_run(extcli, live: LiveServer):
    extcli("vote", "define", "lunch", "--options", "a,b")
    extcli("vote", "close", "lunch")

    result = extcli("vote", "cast", "--from", "-", "--concurrency", "1", "lunch", input="U1,1\nU2,1\nU3,1\n", exits=4)

    assert 1 == len([each for each in entries_of(live) if each["status"] == 400])
    assert "line 1: " in result.stderr
