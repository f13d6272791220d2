"""`extcli api`."""

from __future__ import annotations

import re

import pytest

from support.profile_files import write_profiles
from support.program import http_response


def test_a_path_without_a_leading_slash_is_below_v1_e(extcli):
    extcli("vote", "cast", "lunch", "--value", "3")

    assert 3 == extcli("api", "GET", "vote?id=lunch").json["stats"]["sum"]
    assert "ready" == extcli("api", "get", "/_emulator/ready", "--no-auth").json["status"]


def test_fields_make_a_json_body(extcli):
    assert 3 == extcli("api", "POST", "vote", "-f", "value=3").json["vote"]
    assert {"accepted": True} == extcli("api", "POST", "rank", "-f", 'key="5"').json
    assert {"accepted": True, "original": "5"} == extcli("api", "POST", "rank", "-f", "key=blue").json


def test_a_body_can_come_from_a_file_or_standard_input(extcli, tmp_path):
    (tmp_path / "body.json").write_text('{"value":1}')

    assert 1 == extcli("api", "POST", "vote", "--input", str(tmp_path / "body.json")).json["vote"]
    assert 2 == extcli("api", "POST", "vote", "--input", "-", input='{"value":2}').json["vote"]
    assert 2 == extcli("api", "POST", "vote", "--input", "-", "-f", "a=1").exit_code


def test_get_can_have_a_body(extcli, answering):
    url = answering(http_response("200 OK", '{"ok":true}'))

    result = extcli("api", "GET", "broadcast", "-f", "event=go", "-v", "--no-auth", "--url", url)

    assert {"ok": True} == result.json
    assert "> 14 bytes" in result.stderr


@pytest.mark.parametrize(("status", "exit_code"), [("404 Not Found", 4), ("503 Service Unavailable", 5)])
def test_an_error_prints_its_body_and_exits_4_or_5(extcli, answering, status, exit_code):
    url = answering(http_response(status, '{"reason":"No"}'))

    result = extcli("api", "GET", "vote", "--no-auth", "--url", url)

    assert (exit_code, '{"reason":"No"}\n') == (result.exit_code, result.stdout)
    assert status in result.stderr


def test_jsonl_has_one_line_for_each_item_of_an_array(extcli, answering):
    url = answering(http_response("200 OK", '[{"a": 1}, 2]'))

    assert [{"a": 1}, 2] == extcli("api", "GET", "x", "--no-auth", "--url", url, "-o", "jsonl").jsonl
    assert 1 == len(extcli("api", "GET", "vote?id=lunch", "-o", "jsonl").jsonl)


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("body", [b"<html>\n", b"\x00\xff\n\n"])
def test_a_body_that_is_not_json_is_printed_in_any_format(extcli, answering, form, body):
    url = answering(http_response("200 OK", body, "application/octet-stream"))

    printed = extcli("api", "GET", "x", "--no-auth", "--url", url, "-o", form, exits=0).stdout
    assert body.decode(errors="replace") == printed


@pytest.mark.parametrize("prefix", ["", "/_ns/y"])
def test_every_spelling_of_a_path_that_is_replaced_asks(extcli, live, prefix):
    write_profiles(live={"url": live.url + prefix, "production": True})

    for path in (
        *("channel_config", "config/channel", "config/extension", "//v1/e/config/channel", "/v1/e/config/channel/"),
        *("/v1//e/config//channel", "Config/Channel", "config%2Fchannel", "%63onfig/channel", "x/../config/channel"),
        *("./channel_config", "/_ns/x/v1/e/config/channel", "/_ns/x//v1/e/channel_state?a=b", "channel_config#x"),
        *("vote_config?id=lunch", "/v1/e//vote_config", "/_ns/x/_emulator/reset", "//_emulator/reset"),
        *("/_emulator/%72eset", "/v1/e/../../_emulator/reset", "/v1/e/json_store?id=a", "all_config/../json_store"),
    ):
        result = extcli("api", "post", path, "--input", "-", "-p", "live", "-v", input="{}", fails=2)
        assert "confirmation needed" in result.stderr, path
        assert not re.search("^> POST ", result.stderr, re.MULTILINE)
