"""An entry of the journal as a command and as a test, where its texts look like parts of either."""

from __future__ import annotations

import ast
import shlex

from emulator.callers import Caller, Role
from emulator.control.journal.snippets import snippet_of
from emulator.journal import REQUEST, Entry

URL = "http://localhost:1"
ANONYMOUS = Caller("ext", Role.VIEWER, "777", None, "A-own-id")


def entry(name: str, path: str, body: bytes, caller: Caller = ANONYMOUS) -> Entry:
    return Entry(REQUEST, 0, 0, "id", caller, name, path, 200, request=body, request_size=len(body))


def test_the_token_stands_before_the_command_whatever_the_body_contains():
    line = snippet_of(
        entry("POST /v1/e/accumulate", "/v1/e/accumulate?id=log", b'{"a":"run extcli now"}'), "extcli", URL
    )
    words = shlex.split(line)
    assert words[0].startswith("EXTCLI_TOKEN=")
    assert ["extcli", "accumulate", "add", "log", '{"a": "run extcli now"}'] == words[1:6]


def test_the_token_stands_after_the_pipe_of_a_body_that_no_command_sends():
    line = snippet_of(entry("POST /v1/e/accumulate", "/v1/e/accumulate", b'"run extcli now"'), "extcli", URL)

    assert line.startswith('printf %s \'"run extcli now"\' | EXTCLI_TOKEN="$(extcli token sandbox ')
    assert ')" extcli api POST accumulate --input - ' in line


def test_a_parameter_with_the_name_of_a_keyword_makes_a_valid_test():
    made = snippet_of(entry("GET /v1/e/vote", "/v1/e/vote?from=1&id=rps", b""), "pytest", URL)

    ast.parse(made)
    assert "id='rps', **{'from': '1'}" in made


def test_a_comment_says_that_a_test_cannot_send_a_body_that_is_not_json():
    made = snippet_of(entry("POST /v1/e/vote", "/v1/e/vote", b"{"), "pytest", URL)

    assert made.startswith("# the body is left out: a test can send JSON only, and not null\n")
