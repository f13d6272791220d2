"""Exit codes and errors for services that are absent, broken, slow, or not extension services."""

from __future__ import annotations

import json
import re

import pytest

from support.program import http_response
from tools.layout_page import SRC
from tools.refusal_texts import declared


@pytest.fixture
def read(extcli):
    """Read a poll there with a token, which takes one request."""
    token = {"EXTCLI_TOKEN": "a.b.c"}
    return lambda *args, **settings: extcli("vote", "get", "--url", *args, env=token, **settings)


def test_without_a_service_at_the_default_url_serve_is_suggested(extcli, monkeypatch):
    monkeypatch.delenv("EXTCLI_URL")
    monkeypatch.setattr("extcli.config.settings.DEFAULT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("extcli.api.failures.DEFAULT_URL", "http://127.0.0.1:1")

    result = extcli("vote", "get", fails=3)

    assert result.stderr.startswith("extcli: cannot connect to http://127.0.0.1:1\n  connection refused\n")
    assert "`extcli serve`, or set --url or EXTCLI_URL" in result.stderr


def test_an_unknown_host_name_exits_3(read):
    assert "cannot connect to http://nowhere.invalid" in read("http://nowhere.invalid", fails=3).stderr


def test_a_slow_service_exits_3(read, answering):
    assert "in time" in read(answering(hold=True), "--timeout", "100ms", fails=3).stderr


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (b"220 mail.example ESMTP\r\n", 3, "does not speak HTTP"),
        (http_response("418 I'm a Teapot", ""), 4, "extcli: GET /v1/e/vote was refused: 418 I'm a Teapot\n"),
        (http_response("499 Whatever"), 4, "was refused: 499"),
        (
            http_response("302 Found", location="http://elsewhere.invalid/"),
            4,
            "it redirects to http://elsewhere.invalid/",
        ),
        (http_response("599 Whatever"), 5, "failed in the service: 599"),
        (http_response("500 Internal Server Error", '{"reason":"Internal"}'), 5, "/vote failed in the service: 500"),
        (
            http_response("503 Service Unavailable", '{"reason":"Broken"}', x_request_id="a1b2-7"),
            5,
            "the service's log has details under request id a1b2-7; the request itself was fine",
        ),
    ],
)
def test_a_response_that_is_no_success_gets_an_exit_code(read, answering, answer, code, words):
    stderr = read(answering(answer), fails=code).stderr

    assert words in stderr
    assert "418" not in stderr or stderr == words, "a response without a body has no reason"


@pytest.mark.parametrize(
    ("body", "content_type", "why"),
    [
        (
            '{"errors":[{"status":400,"title":"Bad Request","detail":"too big"}],"reason":"Bad","info":"too big"}',
            "",
            "Bad: too big",
        ),
        ('{"errors":[{"status":400,"title":"Bad Request","detail":"too big"}]}', "", "too big"),
        ('{"reason":"Value out of bounds"}', "", "Value out of bounds"),
        ('{"reason":"A","info":"B"}', "", "A: B"),
        ("no such thing\n", "text/plain", "no such thing"),
        ("\x1b[31mno such thing", "text/plain", "[31mno such thing"),
        ("<html><body>nope</body></html>", "text/html", "an HTML page"),
        ("\n<!DOCTYPE html>\n<title>nope</title>", "text/html", "an HTML page"),
        ('"just text"', "", "just text"),
        ("[1,2]", "", "[1, 2]"),
        ('{"errors":{"a":1},"reason":5}', "", '{"errors":{"a":1},"reason":5}'),
        (b"\xff\xfe", "application/octet-stream", "\ufffd\ufffd"),
        ("[" * 100_000, "", "[" * 299 + "…"),
    ],
)
def test_every_format_of_error_body_is_readable(read, answering, body, content_type, why):
    """Ruling W4, and bodies of real deployments."""
    result = read(answering(http_response("400 Bad Request", body, content_type or "application/json")))

    assert (4, "") == (result.exit_code, result.stdout)
    assert ["extcli: GET /v1/e/vote was refused: 400 Bad Request", f"  {why}"] == result.stderr.splitlines()[:2]


@pytest.mark.parametrize("body", ["", "<html>", "[]", "{}", '{"stats":null}', '{"stats":{"specific":[1]}}', "null"])
def test_a_success_with_an_unexpected_body_exits_5(read, answering, body):
    result = read(answering(http_response("200 OK", body)), "-o", "table")

    assert (5, "") == (result.exit_code, result.stdout)
    assert "unexpected response" in result.stderr


@pytest.mark.parametrize(
    "command", [("vote", "get"), ("vote", "logs"), ("vote", "rm"), ("state", "set", "channel", "{}")]
)
@pytest.mark.parametrize("form", ["table", "plain", "json", "jsonl"])
@pytest.mark.parametrize("body", ["", "  ", "<html>", b"\xff"])
def test_a_success_that_is_not_json_exits_5_in_every_format(extcli, answering, command, form, body):
    url = answering(*[http_response("200 OK", body, "text/html")] * 3)  # a deletion first asks what and whether it is

    result = extcli(*command, "--url", url, "-o", form, env={"EXTCLI_TOKEN": "a.b.c"}, fails=5)

    assert "check that --url (EXTCLI_URL) is an extension service" in result.stderr


def test_a_stream_of_json_is_printed_byte_for_byte(extcli, answering):
    url = answering(http_response("200 OK", ' \n {"result": [ ] }\n\n'))

    result = extcli("vote", "logs", "--url", url, "-o", "json", env={"EXTCLI_TOKEN": "a.b.c"})

    assert (0, ' \n {"result": [ ] }\n\n') == (result.exit_code, result.stdout)


@pytest.mark.parametrize("body", ["<html>", '{"result":[{"a":1}]}', '{"result":[{"identifier":"U1",'])
def test_an_unexpected_stream_exits_5(extcli, answering, body):
    url = answering(http_response("200 OK", body))

    extcli("vote", "logs", "--url", url, env={"EXTCLI_TOKEN": "a.b.c"}, exits=5)


CHECK_THE_URL = "check that --url (EXTCLI_URL) is an extension service"
NOT_THE_BASE = "is --url (EXTCLI_URL) the base address of an extension service, without /v1/e?"
SET_A_SECRET = "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN"


@pytest.mark.parametrize(
    ("answer", "code", "advice"),
    [
        (http_response("500 Internal Server Error", '{"reason":"Broken"}'), 5, "the service's log has details"),
        *((http_response("200 OK", body), 5, CHECK_THE_URL) for body in ("<html>", "{}", '{"token":""}')),
        (http_response("404 Not Found", "<html>", "text/html"), 4, NOT_THE_BASE),
        (http_response("405 Method Not Allowed", "<html>", "text/html"), 4, NOT_THE_BASE),
        (http_response("301 Moved", location="https://else.invalid/"), 4, "it redirects to https://else.invalid/"),
        (http_response("401 Unauthorized", '{"reason":"No"}'), 4, SET_A_SECRET),
        (http_response("403 Forbidden", '{"reason":"No"}'), 4, SET_A_SECRET),
    ],
)
def test_a_failed_token_request_gets_advice(extcli, answering, answer, code, advice):
    stderr = extcli("vote", "get", "--url", answering(answer), fails=code).stderr

    assert advice in stderr
    assert (advice is SET_A_SECRET) == ("EXTCLI_SECRET" in stderr)


def test_a_url_that_ends_with_the_api_path_gets_advice(extcli, live):
    result = extcli("vote", "get", "--url", f"{live.url}/v1/e", fails=4)

    assert NOT_THE_BASE in result.stderr
    assert "EXTCLI_SECRET" not in result.stderr


def test_an_incomplete_stream_exits_3(extcli, answering):
    url = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + b'{"result":[')

    extcli("vote", "logs", "-o", "jsonl", "--url", url, env={"EXTCLI_TOKEN": "a.b.c"}, exits=3)


def test_with_json_output_an_error_is_json(read, answering):
    result = read(answering(http_response("400 Bad Request", '{"reason":"No","extra":1}')), "-o", "json")

    error = json.loads(result.stderr)["error"]
    assert (4, 400, "No", {"reason": "No", "extra": 1}) == (
        error["exit_code"],
        error["status"],
        error["why"],
        error["body"],
    )


def test_a_url_can_have_a_path_and_a_final_slash(extcli, answering):
    url = answering(http_response("200 OK", '{"stats":{"specific":[1]}}'))

    result = extcli("vote", "get", "-v", "--url", f"{url}/_ns/mine/", env={"EXTCLI_TOKEN": "a.b.c"})

    assert f"> GET {url}/_ns/mine/v1/e/vote?id=default" in result.stderr


def test_https_to_a_plain_http_server_gets_advice(read, live):
    result = read(live.url.replace("http:", "https:"))

    assert 3 == result.exit_code
    assert "does not use TLS" in result.stderr
    assert f"use {live.url}" in result.stderr


def test_ids_are_percent_encoded(extcli):
    extcli("rank", "submit", "a b&c=d#e?ü/%20", "--key", "x")

    assert [["x", "1"]] == extcli("rank", "get", "a b&c=d#e?ü/%20").rows


def test_requests_to_this_machine_use_no_proxy(extcli):
    variables = {"HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1", "NO_PROXY": ""}

    assert 0 == extcli("vote", "get", env=variables).exit_code
    assert 0 == extcli("vote", "cast", "--from", "-", input="U1,1\n", env=variables).exit_code


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        (["vote", "rm", "--as", "viewer", "--yes"], "admin, backend, broadcaster"),
        (["codes", "list", "--as", "broadcaster"], "admin, backend"),
        (["vote", "rm", "global-lunch", "--as", "broadcaster", "--yes"], "admin, backend"),
        (["socket", "send", "set", "state", "--data", '{"state_id":"extension","state":{}}'], "admin, backend"),
        (["api", "GET", "viewer_state?user_ids=1", "--as", "viewer"], "admin"),
    ],
)
def test_a_403_names_the_roles_that_may_and_how_to_choose_one(extcli, live, command, allowed):
    result = extcli(*command)

    assert (4, True) == (result.exit_code, f"allowed: {allowed}\n" in result.stderr)
    assert "use another token, or another role with --as" in result.stderr


def test_every_code_that_a_command_advises_by_is_declared():
    lines = [line for path in (SRC / "extcli").rglob("*.py") for line in path.read_text().splitlines()]
    compared = [line for line in lines if re.search(r"(\.code|\(CODE\)) (==|in) ", line)]
    codes = {code for line in compared for code in re.findall(r'"(\w+\.\w+)"', line)}

    assert len(codes) > 4
    assert set() == codes - declared().keys()


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (
            http_response("413 Content Too Large", '{"reason":"Body too large","info":"the limit is 65536"}'),
            ["was refused: 413 Content Too Large", "Body too large: the limit is 65536"],
        ),
        (
            http_response("413 Request Entity Too Large", "<html>nginx</html>", "text/html"),
            ["was refused: 413 Content Too Large", "an HTML page"],
        ),
        (
            http_response("429 Too Many Requests", '{"reason":"Rate limit"}', retry_after="3"),
            ["was refused: 429 Too Many Requests", "Rate limit", "retry in 3 s, at a lower rate"],
        ),
        (
            http_response("502 Bad Gateway", "<html>nginx</html>", "text/html"),
            [
                "failed in the service: 502 Bad Gateway",
                "an HTML page",
                "a proxy or another web server answered: check --url (EXTCLI_URL), and that the service runs",
            ],
        ),
    ],
    ids=["413", "413 of a proxy", "429", "502 of a proxy"],
)
def test_any_command_prints_a_refusal_as_a_clear_text(extcli, answering, answer, lines):
    for args in (("accumulate", "add", "b", "1"), ("api", "POST", "accumulate", "-f", "a=1")):
        result = extcli(*args, "--url", answering(answer), env={"EXTCLI_TOKEN": "a.b.c"})

        first, *others = result.stderr.splitlines()
        assert lines == [first.removeprefix("extcli: POST /v1/e/accumulate "), *(line.strip() for line in others)]
