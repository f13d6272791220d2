"""Commands with many lines that end early: a closed pipe, a dead service, answers of another program."""

from __future__ import annotations

import pytest

from extcli import clock
from support.program import SECRET_BASE64, http_response

SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}


def test_a_closed_pipe_of_refusals_exits_0(shell):
    """`extcli vote cast --from - -o jsonl | head -1`"""
    process = shell("vote", "cast", "--from", "-", "-o", "jsonl")
    process.stdin.write(b"U1,300\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b'{"line":1')
    process.stdout.close()
    process.stdin.write(b"U1,300\n" * 2000)
    process.stdin.close()

    assert 0 == process.wait(timeout=20)
    assert b"" == process.stderr.read()


def test_a_service_that_dies_while_tokens_are_fetched_is_one_error(shell, tmp_path, answering):
    """The tokens for the seventh batch fail while six batches wait for the first vote to be accepted."""
    (tmp_path / "ballots.csv").write_text("U1,1\n" * 4000)
    tokens = [http_response("200 OK", '{"token":"a.b.c"}')] * 6
    url = answering(*tokens, http_response("503 Service Unavailable"), hold=True)
    arguments = ("--from", str(tmp_path / "ballots.csv"), "--url", url, "--concurrency", "1", "--timeout", "500ms")

    process = shell("vote", "cast", *arguments)
    _, stderr = process.communicate(timeout=20)

    assert 3 == process.returncode
    assert f"extcli: no answer from {url} in time" == stderr.decode().splitlines()[0]
    assert 2 == len(stderr.splitlines())


@pytest.mark.parametrize(
    ("body", "content_type"),
    [("<html>please log in</html>", "text/html"), ("[]", "application/json"), ("", "text/plain")],
    ids=["page", "list", "nothing"],
)
def test_success_without_a_json_object_is_not_accepted(extcli, answering, body, content_type):
    url = answering(http_response("200 OK"), http_response("200 OK", body, content_type))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\n" * 3, env=SIGNED, fails=5)

    assert "1 sent, 1 accepted, 0 refused" in result.stderr
    assert "stopped; all lines up to 1 are processed" in result.stderr
    assert "POST /v1/e/vote returned an unexpected answer" in result.stderr


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        (http_response("403 Forbidden"), "this identity may not do that: use another token, or another role with --as"),
        (http_response("302 Found", location="https://elsewhere.example"), "it redirects to https://elsewhere.example"),
        (http_response("500 Internal Server Error"), "send the remaining lines when the service works again"),
        (http_response("503 Service Unavailable"), "send the remaining lines when the service works again"),
    ],
    ids=["403", "302", "500", "503"],
)
def test_an_error_that_affects_every_line_ends_with_advice(extcli, answering, refusal, advice):
    result = extcli("vote", "cast", "--from", "-", "--url", answering(refusal), input="U1,1\n", env=SIGNED)

    *_, what, fix = [line for line in result.stderr.splitlines() if line != "  {}"]
    assert what.startswith("extcli: line 1: POST /v1/e/vote")
    assert fix.startswith(f"  {advice}")


def test_a_400_refuses_its_line_and_the_run_continues(extcli, answering):
    url = answering(http_response("400 Bad Request"), http_response("200 OK"))

    result = extcli("accumulate", "add", "--from", "-", "--url", url, input="1\n2\n", env=SIGNED, exits=4)

    assert "2 sent, 1 accepted, 1 refused" in result.stderr


def test_a_line_that_was_redirected_was_not_applied(extcli, answering):
    url = answering(http_response("300 Multiple Choices"))

    result = extcli("accumulate", "add", "--from", "-", "--url", url, "-o", "json", input="1\n", env=SIGNED)

    assert ([], [1]) == (result.json["unacknowledged"], result.json["not_sent"])


def test_the_reported_seconds_are_those_of_the_run(extcli):
    before = clock.elapsed()

    result = extcli("accumulate", "add", "--from", "-", "-o", "json", input="1\n")

    assert 0 < result.json["seconds"] <= clock.elapsed() - before


def test_refusals_after_the_twentieth_are_counted(extcli):
    result = extcli("vote", "cast", "--from", "-", input="U1,x\n" * 22)

    assert "  and 2 more (-o jsonl shows all)\n" in result.stderr
