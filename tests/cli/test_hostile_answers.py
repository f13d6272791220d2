"""Responses that no extension service sends: too large, endless, compressed, or of another shape. Each is one error."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from extcli import bounded_json
from extcli.api.http import RESPONSE
from extcli.reading import streams
from support.program import SECRET_BASE64, http_response

SIGNED = {"EXTCLI_SECRET": SECRET_BASE64, "EXTCLI_CLIENT_ID": "my-extension"}
READS = [("ns", "list"), ("vote", "get"), ("vote", "list"), ("logs", "show", "latest"), ("clock", "now")]


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
        (compressed(b'{"namespaces":["blue"]}'), 0),
        (compressed(b'{"namespaces":[]}')[:-6], 3),
        (http_response("200 OK", b"\x1f\x8bnonsense", content_encoding="gzip"), 5),
        (compressed(b"{}", "br"), 5),
    ],
    ids=["gzip", "cut off", "not gzip", "brotli"],
)
def test_a_compressed_response_is_read_or_one_error(extcli, answering, answer, code):
    result = extcli("ns", "list", "--url", answering(answer), exits=code)

    assert ("blue\n" if code == 0 else "") == result.stdout


def test_each_line_of_a_stream_is_bounded(extcli, answering, monkeypatch):
    monkeypatch.setattr(streams, "LARGEST_ITEM", 1_000)
    page = http_response("200 OK", json.dumps({"entries": [], "mark": 0, "lost": 0, "next": None, "run": "a"}))
    stream = http_response("200 OK", '{"number": "' + "1" * 5_000)

    extcli("logs", "-f", "--timeout", "20s", "--url", answering(page, *[stream] * 9), exits=5)


def test_each_item_of_a_log_of_votes_is_bounded(extcli, answering, monkeypatch):
    monkeypatch.setattr(streams, "LARGEST_ITEM", 1_000)
    url = answering(http_response("200 OK", '{"result": [{"identifier": "' + "1" * 5_000 + '"}]}'))

    extcli("vote", "logs", "--url", url, "-o", "plain", env=SIGNED, exits=5)


@pytest.mark.parametrize("command", READS)
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 500 + b"1" + b"}" * 500, b"1" * 5_000, b'{"entries": 1}'])
def test_a_response_with_wrong_fields_is_one_error(extcli, answering, command, body):
    url = answering(*[http_response("200 OK", body)] * 9)

    result = extcli(*command, "--url", url, "-o", "plain", env=SIGNED)

    assert result.exit_code in (2, 4, 5, 7), result.stderr
    assert "bug in extcli" not in result.stderr


@pytest.mark.parametrize(
    ("change", "field"),
    [({"mark": "x"}, "mark"), ({"entries": None}, "entries"), ({"entries": [{"number": 1}]}, "entries[0]")],
)
def test_the_error_names_the_field(extcli, answering, change: dict[str, Any], field):
    page = {"entries": [], "mark": 0, "lost": 0, "next": None, "run": "a", **change}
    url = answering(*[http_response("200 OK", json.dumps(page))] * 2)

    result = extcli("logs", "export", "--jsonl", "-", "--url", url, exits=5)

    assert f": {field} " in result.stderr


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


@pytest.mark.parametrize("body", ["{}", '{"namespaces": null}'])
def test_a_malformed_list_of_namespaces_deletes_nothing(extcli, answering, body):
    result = extcli("ns", "rm", "blue", "-o", "table", "-v", "--url", answering(http_response("200 OK", body)), exits=5)

    assert "namespaces" in result.stderr
    assert "DELETE" not in result.stderr


def test_json_that_is_printed_as_it_is_has_a_limit_of_values(extcli, answering, monkeypatch):
    monkeypatch.setattr(bounded_json, "LARGEST_UNCOUNTED", 10)
    monkeypatch.setattr(bounded_json, "MOST_VALUES", 100)
    url = answering(http_response("200 OK", "[" + "[]," * 100 + "[]]"))

    extcli("vote", "get", "-o", "json", "--url", url, env=SIGNED, exits=5)


@pytest.mark.parametrize("token", ["caf\u00e9", "a b", "a\nb", "\u202e"])
def test_a_token_that_no_header_can_carry_is_not_sent(extcli, answering, token):
    url = answering(http_response("200 OK", json.dumps({"token": token})), http_response("200 OK"))

    assert "> GET" not in extcli("vote", "get", "-v", "--url", url, exits=5).stderr


def test_a_cursor_that_is_not_unicode_is_one_error(extcli, answering):
    page = http_response("200 OK", '{"polls": [], "next": "\\ud800"}')

    extcli("vote", "list", "--url", answering(page, page), env=SIGNED, exits=2)


@pytest.mark.parametrize(
    "body", ["[" * 100_000, f'{{"result": [{"9" * 5_000}]}}', '{"result": [1e99999999999999999999]}']
)
def test_a_stream_that_cannot_be_parsed_is_one_error(extcli, answering, body):
    extcli("vote", "logs", "--url", answering(http_response("200 OK", body)), env=SIGNED, exits=5)


def test_malformed_options_of_a_question_are_one_error(extcli, answering):
    url = answering(http_response("200 OK", '{"options": 5}'), http_response("200 OK"))

    extcli("trivia", "define-option", "q1", "red", "--name", "Red", "--url", url, env=SIGNED, exits=5)
