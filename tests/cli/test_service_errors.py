"""Exit codes and errors for services that are absent, broken, slow, or not extension services."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from extcli import bounded_json
from extcli import reading as streams
from extcli.api.http import RESPONSE
from support.program import SECRET_BASE64, http_response


@pytest.fixture
def read(extcli):
    """Read a poll there with a token, which takes one request."""
    token = {"EXTCLI_TOKEN": "a.b.c"}
    return lambda *args, **settings: extcli("vote", "get", "--url", *args, env=token, **settings)


def test_a_slow_service_exits_3(read, answering):
    assert "in time" in read(answering(hold=True), "--timeout", "100ms", fails=3).stderr


@pytest.mark.parametrize(
    ("answer", "code", "named"),
    [
        (b"220 mail.example ESMTP\r\n", 3, "HTTP"),
        (http_response("499 Whatever", ""), 4, "499"),
        (http_response("403 Forbidden", '{"reason":"No"}'), 4, "--as"),
        (http_response("302 Found", location="http://elsewhere.invalid/"), 4, "http://elsewhere.invalid/"),
        (http_response("413 Request Entity Too Large", "<html>", "text/html"), 4, "an HTML page"),
        (http_response("429 Too Many Requests", '{"reason":"Rate limit"}', retry_after="3"), 4, "retry in 3 s"),
        (http_response("599 Whatever"), 5, "599"),
        (http_response("502 Bad Gateway", "<html>nginx</html>", "text/html"), 5, "--url"),
        (http_response("503 Service Unavailable", '{"reason":"Broken"}', x_request_id="a1b2-7"), 5, "a1b2-7"),
    ],
)
def test_a_response_that_is_no_success_gets_an_exit_code(read, answering, answer, code, named):
    assert named in read(answering(answer), fails=code).stderr


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('{"errors":[{"status":400,"detail":"too big"}],"reason":"Bad","info":"too big"}', "Bad: too big"),
        ('{"errors":[{"status":400,"title":"Bad Request","detail":"too big"}]}', "too big"),
        ('{"reason":"Value out of bounds"}', "Value out of bounds"),
        ("no such thing\n", "no such thing"),
        ("\x1b[31mno such thing", "[31mno such thing"),
        ('"just text"', "just text"),
        ("[1,2]", "[1, 2]"),
        ('{"errors":{"a":1},"reason":5}', '{"errors":{"a":1},"reason":5}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("[" * 100_000, "[" * 299 + "…"),
    ],
)
def test_every_format_of_error_body_is_readable(read, answering, body, why):
    """Ruling W4, and bodies of real deployments."""
    result = read(answering(http_response("400 Bad Request", body)), fails=4)

    assert f"  {why}" == result.stderr.splitlines()[1]


def test_a_json_error_has_the_response(read, answering):
    result = read(answering(http_response("400 Bad Request", '{"reason":"No","extra":1}')), "-o", "json", fails=4)

    error = json.loads(result.stderr)["error"]
    assert (400, "No", {"reason": "No", "extra": 1}) == tuple(error[name] for name in ("status", "why", "body"))


def test_ids_are_percent_encoded(extcli):
    extcli("rank", "submit", "a b&c=d#e?ü/%20", "--key", "x")

    assert [["x", "1"]] == extcli("rank", "get", "a b&c=d#e?ü/%20").rows


def test_a_production_service_has_no_control(extcli, production):
    for command in ("clock advance 1d --yes", "ns list", "ns rm blue --yes"):
        extcli(*command.split(), "--url", production.url, exits=4)


@pytest.mark.parametrize("line", ["vote get", "vote logs", "vote rm", "state set channel {}"])
@pytest.mark.parametrize("form", ["table", "plain", "json", "jsonl"])
def test_a_success_that_is_not_json_exits_5_in_every_format(extcli, answering, line, form):
    for body in ("", "  ", "<html>", b"\xff"):
        url = answering(*[http_response("200 OK", body, "text/html")] * 3)  # a deletion first asks whether it is there
        said = extcli(*line.split(), "--url", url, "-o", form, env={"EXTCLI_TOKEN": "a.b.c"}, fails=5).stderr
        assert "--url" in said


def test_a_stream_of_json_is_printed_byte_for_byte(extcli, answering):
    url = answering(http_response("200 OK", ' \n {"result": [ ] }\n\n'))

    result = extcli("vote", "logs", "--url", url, "-o", "json", env={"EXTCLI_TOKEN": "a.b.c"})

    assert (0, ' \n {"result": [ ] }\n\n') == (result.exit_code, result.stdout)


@pytest.mark.parametrize(
    ("answer", "code", "advice"),
    [
        (http_response("500 Internal Server Error", '{"reason":"Broken"}'), 5, "log"),
        *((http_response("200 OK", body), 5, "--url") for body in ("<html>", "{}", '{"token":""}')),
        (http_response("404 Not Found", "<html>", "text/html"), 4, "/v1/e"),
        (http_response("301 Moved", location="https://else.invalid/"), 4, "https://else.invalid/"),
        (http_response("403 Forbidden", '{"reason":"No"}'), 4, "EXTCLI_SECRET"),
    ],
)
def test_a_failed_token_request_gets_advice(extcli, answering, answer, code, advice):
    stderr = extcli("vote", "get", "--url", answering(answer), fails=code).stderr

    assert advice in stderr
    assert (advice == "EXTCLI_SECRET") == ("EXTCLI_SECRET" in stderr)


def test_https_to_a_plain_http_server_gets_advice(read, live):
    assert f"use {live.url}" in read(live.url.replace("http:", "https:"), fails=3).stderr


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_errors_are_json_in_both_json_formats(extcli, form):
    for line, code, env in (
        (f"vote config none -o {form}", 4, {}),
        (f"vote get --url http://127.0.0.1:1 -o{form}", 3, {}),
        (f"vote gett --output={form}", 2, {}),
        (f"vote get --nonsense -o {form}", 2, {}),
        ("vote cast lunch x", 2, {"EXTCLI_OUTPUT": form}),
        (f"expect poll lunch -o {form}", 7, {}),
        (f"config get url --url nonsense -o {form}", 2, {}),
    ):
        error = json.loads(extcli(*line.split(), env=env, exits=code).stderr)["error"]
        assert ["exit_code", "what"] == list(error)[:2]
        assert code == error["exit_code"]


def test_requests_to_this_machine_use_no_proxy(extcli):
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    variables = dict.fromkeys(names, "http://127.0.0.1:1") | {"NO_PROXY": ""}

    for command in ("vote get", "vote cast --from -", "socket send subscribe authentication"):
        extcli(*command.split(), env=variables, input="U1,1\n", exits=0)


def test_serve_suggests_port_0_only_if_the_port_is_taken(extcli, live):
    taken = extcli("serve", "--port", live.url.rpartition(":")[2], fails=2)
    elsewhere = extcli("serve", "--host", "192.0.2.1", fails=2)

    assert "--port 0 chooses a free port" in taken.stderr
    assert "--port 0" not in elsewhere.stderr


# Responses that no extension service sends: too large, endless, compressed, or of another shape. Each is one error


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
