"""`extcli api`."""

from __future__ import annotations

import pytest

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


def test_a_body_is_printed_unchanged(extcli, answering):
    url = answering(http_response("200 OK", b"\x00\xff\n\n", "application/octet-stream"))

    result_bytes = b"\x00\xff\n\n".decode(errors="replace")
    result = extcli("api", "GET", "x", "--no-auth", "--url", url, "-o", "json", exits=0)

    assert result_bytes == result.stdout


def test_no_auth_sends_no_credentials(extcli):
    result = extcli("api", "GET", "vote", "--no-auth", exits=4)

    assert "401" in result.stderr


def test_a_table_shows_indented_json(extcli):
    extcli("vote", "cast", "lunch", "--value", "3")

    stdout = extcli("api", "GET", "vote?id=lunch", "-o", "table").stdout

    assert '  "mean": 3.0,' in stdout.splitlines()
    assert "[0, 0, 0, 1, 0" in stdout


def test_jsonl_has_one_line_for_each_item_of_an_array(extcli, answering):
    url = answering(http_response("200 OK", '[{"a": 1}, 2]'))

    assert [{"a": 1}, 2] == extcli("api", "GET", "x", "--no-auth", "--url", url, "-o", "jsonl").jsonl
    assert 1 == len(extcli("api", "GET", "vote?id=lunch", "-o", "jsonl").jsonl)


@pytest.mark.parametrize("form", ["table", "jsonl"])
def test_a_body_that_is_not_json_is_printed_in_any_format(extcli, answering, form):
    url = answering(http_response("200 OK", "<html>", "text/html"))

    assert "<html>\n" == extcli("api", "GET", "x", "--no-auth", "--url", url, "-o", form).stdout


def test_a_refused_get_does_not_say_that_nothing_was_changed(extcli):
    assert "nothing was changed" not in extcli("accumulate", "get", "x" * 65).stderr
    assert "nothing was changed" in extcli("vote", "cast", "--value", "100").stderr
