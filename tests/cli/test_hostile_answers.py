"""Responses that no extension service sends: too large, endless, compressed, or of another shape. Each is one error."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from extcli import bounded_json
from extcli import reading as streams
from extcli.api.http import RESPONSE
from support.program import SECRET_BASE64, http_response

SIGNED = {"EXTCLI_SECRET": SECRET_BASE64, "EXTCLI_CLIENT_ID": "my-extension"}


def compressed(body: bytes, encoding: str = "gzip") -> bytes:
    return http_response("200 OK", gzip.compress(body, 1), content_encoding=encoding)


@pytest.mark.parametrize("command", [("ns", "list"), ("vote", "get")])
@pytest.mark.parametrize(
    "answer",
    [compressed(b" " * (RESPONSE + 1)), b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * (RESPONSE + 1)],
    ids=["compressed", "without an end"],
)
def test_a_response_without_an_end_is_refused(extcli, answering, command, answer):
    assert "too large" in extcli(*command, "--url", answering(answer), env=SIGNED, fails=5).stderr


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (compressed(b'{"namespaces":["blue"],"details":[{"name":"blue"}]}'), 0),
        (compressed(b'{"namespaces":[]}')[:-6], 3),
        (http_response("200 OK", b"\x1f\x8bnonsense", content_encoding="gzip"), 5),
        (compressed(b"{}", "br"), 5),
    ],
    ids=["gzip", "cut off", "not gzip", "brotli"],
)
def test_a_compressed_response_is_read_or_one_error(extcli, answering, answer, code):
    result = extcli("ns", "list", "--url", answering(answer), exits=code)

    assert ("blue\n" if code == 0 else "") == result.stdout


@pytest.mark.parametrize(
    ("command", "of_page"),
    [(("vote", "list"), {"polls": []}), (("user", "list"), {"results": []})],
    ids=["vote", "user"],
)
@pytest.mark.parametrize(("cursors", "reads"), [("555555", 2), ("565656", 3)])
def test_pages_that_lead_back_end_the_list(extcli, answering, command, of_page, cursors, reads):
    pages = [http_response("200 OK", json.dumps({**of_page, "next": cursor})) for cursor in cursors]

    result = extcli(*command, "--url", answering(*pages), "-o", "jsonl", "-v", env=SIGNED, exits=5)

    assert reads == result.stderr.count("> GET ")


def test_json_that_is_printed_as_it_is_has_a_limit_of_values(extcli, answering, monkeypatch):
    monkeypatch.setattr(bounded_json, "LARGEST_UNCOUNTED", 10)
    monkeypatch.setattr(bounded_json, "MOST_VALUES", 100)
    url = answering(http_response("200 OK", "[" + "[]," * 100 + "[]]"))

    extcli("vote", "get", "-o", "json", "--url", url, env=SIGNED, exits=5)


@pytest.mark.parametrize("token", ["caf\u00e9", "a b", "a\nb", "\u202e"])
def test_a_token_that_no_header_can_carry_is_not_sent(extcli, answering, token):
    url = answering(http_response("200 OK", json.dumps({"token": token})), http_response("200 OK"))

    assert "> GET" not in extcli("vote", "get", "-v", "--url", url, exits=5).stderr


EMPTY_PAGE = {"entries": [], "mark": 0, "lost": 0, "next": None, "run": "a"}
WRONG = {
    **{
        line: ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "1" * 5_000, '{"entries": 1}']
        for line in ("ns list", "vote get", "logs show latest", "clock now")
    },
    "vote get -o table": ["[]", "{}", '{"stats":null}', '{"stats":{"specific":[1]}}', "null"],
    "vote list": ['{"polls": [], "next": "\\ud800"}'],
    "vote logs": ["[" * 100_000, '{"result":[{"a":1}]}', '{"result":[{"identifier":"U1",',
                  f'{{"result": [{"9" * 5_000}]}}', '{"result": [1e99999999999999999999]}',
                  '{"result": [{"identifier": "' + "1" * 5_000 + '"}]}'],
    "logs -f --timeout 20s": ['{"number": "' + "1" * 5_000],
    "logs export --jsonl -": [
        json.dumps(EMPTY_PAGE | change) for change in ({"mark": "x"}, {"entries": None}, {"entries": [{"number": 1}]})
    ],
    "trivia define-option q1 red --name Red": ['{"options": 5}'],
    "codes list": ['{"names":["A"],"indices":[1,2]}'],
    "codes redeemed": ["[]"],
    "codes redeem 0": ["<html>", '{"code":""}'],
}  # fmt: skip
"""Commands, and bodies that none of them can read."""


@pytest.mark.parametrize("line", WRONG)
def test_a_malformed_document_is_one_error_and_nothing_more_is_written(extcli, answering, monkeypatch, line):
    monkeypatch.setattr(streams, "LARGEST_ITEM", 1_000)
    first = [http_response("200 OK", json.dumps(EMPTY_PAGE))] if "-f" in line else []
    for body in WRONG[line]:
        url = answering(*first, *[http_response("200 OK", body)] * 9)

        result = extcli(*line.split(), "-v", "--url", url, env=SIGNED)

        assert result.exit_code in (2, 4, 5, 7), (body[:50], result.stderr)
        assert "bug in extcli" not in result.stderr
        assert "redeem" in line or not re.search("^> (POST|PUT|DELETE)", result.stderr, re.MULTILINE)
        assert "export" not in line or re.search(r": (mark|entries(\[0\])?) ", result.stderr)
