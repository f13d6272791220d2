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

    assert [
        "extcli: cannot connect to http://127.0.0.1:1",
        "  connection refused",
        "  start a service with `extcli serve`, or set --url or EXTCLI_URL to a running one",
    ] == result.stderr.splitlines()


def test_an_unknown_host_name_exits_3(read):
    result = read("http://nowhere.invalid")

    assert 3 == result.exit_code
    assert "cannot connect to http://nowhere.invalid" in result.stderr


def test_a_slow_service_exits_3(read, answering):
    result = read(answering(hold=True), "--timeout", "100ms")

    assert 3 == result.exit_code
    assert "in time" in result.stderr


def test_a_server_that_does_not_speak_http_exits_3(read, answering):
    result = read(answering(b"220 mail.example ESMTP\r\n"))

    assert 3 == result.exit_code
    assert "does not speak HTTP" in result.stderr


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


def test_an_error_without_a_body_prints_its_status(read, answering):
    result = read(answering(http_response("418 I'm a Teapot", "")))

    assert 4 == result.exit_code
    assert ["extcli: GET /v1/e/vote was refused: 418 I'm a Teapot"] == result.stderr.splitlines()


def test_a_failure_of_the_service_exits_5(read, answering):
    result = read(answering(http_response("500 Internal Server Error", '{"reason":"Internal Service Error"}')))

    assert (5, "") == (result.exit_code, result.stdout)
    assert "GET /v1/e/vote failed in the service: 500" in result.stderr


def test_an_unknown_status_gets_an_exit_code(read, answering):
    assert 4 == read(answering(http_response("499 Whatever"))).exit_code
    assert 5 == read(answering(http_response("599 Whatever"))).exit_code


def test_a_redirect_is_not_followed(read, answering):
    result = read(answering(http_response("302 Found", location="http://elsewhere.invalid/")))

    assert 4 == result.exit_code
    assert "it redirects to http://elsewhere.invalid/" in result.stderr


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


def test_a_failed_token_request_exits_5_without_advice_on_credentials(extcli, answering):
    result = extcli(
        "vote", "get", "--url", answering(http_response("500 Internal Server Error", '{"reason":"Broken"}')), fails=5
    )

    assert "the service's log has details" in result.stderr
    assert "EXTCLI_SECRET" not in result.stderr


def test_a_failure_prints_the_request_id_of_the_service_s_log(extcli, answering):
    url = answering(http_response("503 Service Unavailable", '{"reason":"Broken"}', x_request_id="a1b2-7"))

    result = extcli("vote", "get", "--url", url, env={"EXTCLI_TOKEN": "a.b.c"}, exits=5)

    assert "the service's log has details under request id a1b2-7; the request itself was fine" in result.stderr


@pytest.mark.parametrize("body", ["<html>", "{}", '{"token":""}'])
def test_a_success_without_a_token_suggests_checking_the_url(extcli, answering, body):
    result = extcli("vote", "get", "--url", answering(http_response("200 OK", body)), fails=5)

    assert "check that --url (EXTCLI_URL) is an extension service" in result.stderr
    assert "EXTCLI_SECRET" not in result.stderr


def test_a_url_that_ends_with_the_api_path_gets_advice(extcli, live):
    result = extcli("vote", "get", "--url", f"{live.url}/v1/e", fails=4)

    assert "is --url (EXTCLI_URL) the base address of an extension service, without /v1/e?" in result.stderr
    assert "EXTCLI_SECRET" not in result.stderr


@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed"])
def test_a_refusal_by_another_server_suggests_checking_the_url(extcli, answering, status):
    result = extcli("vote", "get", "--url", answering(http_response(status, "<html>", "text/html")), fails=4)

    assert "the base address of an extension service" in result.stderr


def test_a_redirect_of_the_token_request_is_reported(extcli, answering):
    result = extcli(
        "vote", "get", "--url", answering(http_response("301 Moved", location="https://elsewhere.invalid/")), exits=4
    )

    assert "it redirects to https://elsewhere.invalid/" in result.stderr


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
def test_a_refused_token_request_suggests_a_secret(extcli, answering, status):
    result = extcli("vote", "get", "--url", answering(http_response(status, '{"reason":"No"}')), exits=4)

    assert "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN" in result.stderr


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
