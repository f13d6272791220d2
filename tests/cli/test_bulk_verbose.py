"""`--verbose` in commands with many lines."""

from __future__ import annotations

import re

from support.program import SECRET_BASE64


def test_verbose_shows_the_request_of_each_line(extcli):
    result = extcli("vote", "cast", "lunch", "--from", "-", "-v", input="U1,3\nU1,300\n")

    lines = [line for line in result.stderr.splitlines() if re.match(r"[<>] line ", line)]
    trace = [re.sub(r"http://[^/]*|, [\d.]+ ms", "", line) for line in lines]
    assert [
        "> line 1: POST /v1/e/vote?id=lunch",
        "> line 1: authorization: my-extension ***",
        "> line 1: 11 bytes",
        "< line 1: 200 OK",
        "> line 2: POST /v1/e/vote?id=lunch",
        "> line 2: authorization: my-extension ***",
        "> line 2: 13 bytes",
        "< line 2: 400 Bad Request",
    ] == trace


def test_verbose_shows_the_request_for_tokens(extcli):
    result = extcli("vote", "cast", "--from", "-", "-v", "-o", "json", input="U1,3\nU2,4\n")

    assert 1 == len(re.findall(r"^> POST http://\S+/v1/e/authtoken$", result.stderr, re.MULTILINE))


def test_verbose_shows_no_secrets(extcli):
    for variables in ({}, {"EXTCLI_SECRET": SECRET_BASE64}):
        result = extcli("vote", "cast", "--from", "-", "-v", input="U1,3\n", env=variables)

        assert "> line 1: authorization: my-extension ***" in result.stderr
        assert SECRET_BASE64 not in result.stderr
        assert "eyJ" not in result.stderr


def test_without_verbose_nothing_is_traced(extcli):
    assert 1 == len(extcli("vote", "cast", "--from", "-", input="U1,3\n").stderr.splitlines())
