"""Responses that no extension service sends: too large, endless, compressed, or of another shape. Each is one error."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from extcli import bounded_json
from extcli.api.bodies import RESPONSE
from extcli.errors import reason_of
from extcli.reading import streams
from support.program import SECRET_BASE64, http_response

SIGNED = {"EXTCLI_SECRET": SECRET_BASE64, "EXTCLI_CLIENT_ID": "my-extension"}
READS = [("ns", "list"), ("vote", "get"), ("vote", "list"), ("logs", "show", "latest"), ("clock", "now")]


def compressed(body: bytes, encoding: str = "gzip") -> bytes:
    return http_response("200 OK", gzip.compress(body, 1), content_encoding=encoding)


@pytest.mark.parametrize("command", [("ns", "list"), ("vote", "get")])
def test_a_response_that_grows_when_decompressed_is_refused(extcli, answering, command):
    bomb = compressed(b" " * (RESPONSE + 1))
    assert len(bomb) < 1 << 20

    result = extcli(*command, "--url", answering(bomb), env=SIGNED, fails=5)

    assert "is too large\n  over 67,108,864 bytes" in result.stderr


def test_a_compressed_response_is_read(extcli, answering):
    result = extcli("ns", "list", "--url", answering(compressed(b'{"namespaces":["blue"]}')), "-o", "json")

    assert (0, ["blue"]) == (result.exit_code, result.json["namespaces"])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (compressed(b'{"namespaces":[]}')[:-6], "closed the connection"),
        (http_response("200 OK", b"\x1f\x8bnonsense", content_encoding="gzip"), "damaged or incomplete"),
        (http_response("200 OK", gzip.compress(b"{}")[:-8], content_encoding="gzip"), "damaged or incomplete"),
        (compressed(b"{}", "br"), "content-encoding br; extcli accepts gzip"),
    ],
)
def test_a_response_that_cannot_be_decompressed_is_one_error(extcli, answering, answer, why):
    result = extcli("ns", "list", "--url", answering(answer))

    assert result.exit_code in (3, 5)
    assert why in result.stderr


def test_a_body_without_an_end_is_refused(extcli, answering):
    url = answering(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * (RESPONSE + 1))

    result = extcli("ns", "list", "--url", url, exits=5)

    assert "is too large" in result.stderr


def test_each_line_of_a_stream_is_bounded(extcli, answering, monkeypatch):
    monkeypatch.setattr(streams, "LARGEST_ITEM", 1_000)
    page = http_response("200 OK", json.dumps({"entries": [], "mark": 0, "lost": 0, "next": None, "run": "a"}))
    stream = http_response("200 OK", '{"number": "' + "1" * 5_000)

    result = extcli("logs", "-f", "--timeout", "20s", "--url", answering(page, *[stream] * 9))

    assert result.exit_code == 5
    assert "a line in the journal is too large\n  over 1,000 bytes" in result.stderr


def test_each_item_of_a_log_of_votes_is_bounded(extcli, answering, monkeypatch):
    monkeypatch.setattr(streams, "LARGEST_ITEM", 1_000)
    url = answering(http_response("200 OK", '{"result": [{"identifier": "' + "1" * 5_000 + '"}]}'))

    result = extcli("vote", "logs", "--url", url, "-o", "plain", env=SIGNED, exits=5)

    assert "an item in /v1/e/vote_logs is too large" in result.stderr


@pytest.mark.parametrize("command", READS)
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 500 + b"1" + b"}" * 500, b"1" * 5_000, b'{"entries": 1}'])
def test_a_response_with_wrong_fields_is_one_error(extcli, answering, command, body):
    url = answering(*[http_response("200 OK", body)] * 9)

    result = extcli(*command, "--url", url, "-o", "plain", env=SIGNED)

    assert result.exit_code in (2, 4, 5, 7), result.stderr
    assert "bug in extcli" not in result.stderr


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"mark": "x"}, "mark must be a whole number, not a text"),
        ({"entries": None}, "entries must be an array, not null"),
        ({"entries": [{"number": 1}]}, "entries[0] has no field 'kind'"),
    ],
)
def test_the_error_names_the_field_the_expected_type_and_the_received_value(
    extcli, answering, change: dict[str, Any], problem
):
    page = {"entries": [], "mark": 0, "lost": 0, "next": None, "run": "a", **change}
    url = answering(*[http_response("200 OK", json.dumps(page))] * 2)

    result = extcli("logs", "export", "--jsonl", "-", "--url", url, exits=5)

    assert f"GET /_emulator/journal returned an unexpected response\n  status 200, application/json: {problem}\n" in (
        result.stderr
    )


def test_a_page_that_leads_to_itself_ends_the_list(extcli, answering):
    page = http_response("200 OK", json.dumps({"polls": [], "next": "5"}))

    result = extcli("vote", "list", "--url", answering(*[page] * 9), env=SIGNED, exits=5)

    assert "next must be another cursor, not '5'" in result.stderr


@pytest.mark.parametrize(
    ("command", "of_page"),
    [(("vote", "list"), {"polls": []}), (("user", "list"), {"results": []})],
    ids=["vote", "user"],
)
def test_pages_that_lead_back_end_the_list(extcli, answering, command, of_page):
    pages = [http_response("200 OK", json.dumps({**of_page, "next": cursor})) for cursor in "565656"]

    result = extcli(*command, "--url", answering(*pages), "-o", "jsonl", "-v", env=SIGNED, exits=5)

    assert "next must be another cursor, not '5'" in result.stderr
    assert 3 == result.stderr.count("> GET ")


@pytest.mark.parametrize("body", ["{}", '{"namespaces": null}'])
def test_a_malformed_list_of_namespaces_deletes_nothing(extcli, answering, body):
    result = extcli("ns", "rm", "blue", "-o", "table", "-v", "--url", answering(http_response("200 OK", body)), exits=5)

    assert "namespaces" in result.stderr
    assert "DELETE" not in result.stderr


@pytest.fixture
def few_values(monkeypatch):
    """Let a document have 100 values."""
    monkeypatch.setattr(bounded_json, "LARGEST_UNCOUNTED", 10)
    monkeypatch.setattr(bounded_json, "MOST_VALUES", 100)


def test_json_that_is_printed_as_it_is_has_a_limit_of_values(extcli, answering, few_values):
    url = answering(http_response("200 OK", "[" + "[]," * 100 + "[]]"))

    result = extcli("vote", "get", "-o", "json", "--url", url, env=SIGNED, exits=5)

    assert "returned an unexpected response" in result.stderr


def test_the_body_of_an_error_has_a_limit_of_values(few_values):
    few, many = (b'{"reason": "Busy", "info": [%s 1]}' % (b"1," * count) for count in (9, 100))

    assert "Busy" == reason_of(few)
    assert reason_of(many).startswith('{"reason": "Busy", ')  # as text


@pytest.mark.parametrize("token", ["caf\u00e9", "a b", "a\nb", "\u202e"])
def test_a_token_that_no_header_can_carry_is_not_sent(extcli, answering, token):
    url = answering(http_response("200 OK", json.dumps({"token": token})), http_response("200 OK"))

    result = extcli("vote", "get", "--url", url, exits=5)

    assert "a token must be printable ASCII without spaces" in result.stderr


def test_a_cursor_that_is_not_unicode_is_one_error(extcli, answering):
    page = http_response("200 OK", '{"polls": [], "next": "\\ud800"}')

    result = extcli("vote", "list", "--url", answering(page, page), env=SIGNED, exits=2)

    assert "cannot build this request" in result.stderr


@pytest.mark.parametrize(
    "body", ["[" * 100_000, f'{{"result": [{"9" * 5_000}]}}', '{"result": [1e99999999999999999999]}']
)
def test_a_stream_that_cannot_be_parsed_is_one_error(extcli, answering, body):
    result = extcli("vote", "logs", "--url", answering(http_response("200 OK", body)), env=SIGNED, exits=5)

    assert "returned an unexpected response" in result.stderr


def test_malformed_options_of_a_question_are_one_error(extcli, answering):
    url = answering(http_response("200 OK", '{"options": 5}'), http_response("200 OK"))

    result = extcli("trivia", "define-option", "q1", "red", "--name", "Red", "--url", url, env=SIGNED, exits=5)

    assert "options must be an array, not a whole number" in result.stderr
