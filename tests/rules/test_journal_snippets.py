"""An entry of the journal as a command and as a test, where its texts look like parts of either."""

from __future__ import annotations

import ast
import shlex
import subprocess

import pytest

from emulator.control.journal.snippets import snippet_of
from emulator.core.callers import Caller, Role
from emulator.core.journal import REQUEST, Entry

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
    assert ["extcli", "api", "POST", "accumulate?id=log", "-f", 'a="run extcli now"'] == words[1:7]


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

    assert made.startswith("# the body is left out: it is not JSON, or it is null, and a test can send neither\n")


@pytest.mark.parametrize("body", [b"a\0b", b"-\0001%d%%\\n\\x41'\"\x01\n", b"\0", "ä\0\u200bz".encode()])
@pytest.mark.parametrize(("form", "reads"), [("curl", "--data-binary @-"), ("extcli", "--input -")])
def test_a_line_sends_all_bytes_of_a_body_with_nul(form: str, reads: str, body: bytes):
    printing, sending = snippet_of(entry("POST /v1/e/accumulate", "/v1/e/accumulate", body), form, URL).split(" | ")

    assert reads in sending
    assert body == subprocess.run(["bash", "-c", printing], capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"key":"a\\u0000b", "count": 1.50}', ["-f", 'key="a\\u0000b"', "-f", "count=1.50"]),
        (b'{"a": {"b": [1, "=x"]}}', ["-f", 'a={"b": [1, "=x"]}']),
        (b'{"-x": 1}', ["--input", "-"]),
        (b'{"a=b": 1}', ["--input", "-"]),
        (b"{}", ["--input", "-"]),
        (b"[1]", ["--input", "-"]),
        (b"", []),
    ],
)
def test_the_members_of_a_body_are_options_if_these_lose_nothing(body: bytes, words: list[str]):
    made = snippet_of(entry("POST /v1/e/rank", "/v1/e/rank?id=log", body), "extcli", URL)

    command = shlex.split(made.rpartition("extcli api POST ")[2])
    assert ["rank?id=log", *words, "--url", URL] == command[: 3 + len(words)]


@pytest.mark.parametrize("form", ["curl", "extcli"])
def test_a_command_does_not_control_the_terminal(form: str):
    made = snippet_of(entry("POST /v1/e/vote", "/v1/e/vote?id=%1B[201~%0Aid", b'{"a": "\x1b[31m"}'), form, URL)

    assert made.replace("\n", "").isprintable()
