"""Commands with many lines: `vote cast --from`, `rank submit --from`, `accumulate add --from`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from extcli.bulk.input_lines import records
from support.program import SECRET_BASE64, http_response


def ballots(extcli) -> dict[str, int]:
    return {row[0]: int(row[2]) for row in extcli("vote", "logs").rows}


@pytest.mark.parametrize(
    "content",
    [
        "U1,3\nU2,4\n",
        "user,value\nU1,3\nU2,4",
        "value,name,User\n3,Ada,U1\n4,Bob,U2\n",
        "\ufeffuser;value\r\nU1;3\r\n\r\nU2;4\r\n",
        "U1\t3\nU2\t4\n",
        '{"user":"U1","value":3}\n\n{"user":"U2","value":4}\n',
    ],
    ids=["plain", "heading", "other columns", "spreadsheet", "tabs", "json lines"],
)
def test_each_line_votes_as_its_user(extcli, file, content):
    result = extcli("vote", "cast", "--from", file(content))

    assert (0, [["3", "1"], ["4", "1"]]) == (result.exit_code, result.rows)
    assert "2 sent, 2 accepted, 0 refused" in result.stderr
    assert {"U1": 3, "U2": 4} == ballots(extcli)


def test_the_result_of_the_poll_is_printed_even_after_refused_lines(extcli, file):
    extcli("vote", "cast", "lunch", "--value", "7", "--as", "viewer:U9")

    result = extcli("vote", "cast", "lunch", "--from", file("U1,3\nU2,100\n"), "-o", "table", exits=4)

    assert "2 votes, mean 5" in result.stdout


def test_empty_input_exits_0(extcli):
    result = extcli("vote", "cast", "--from", "-", input="", exits=0)

    assert "0 sent" in result.stderr


def test_lines_of_one_user_in_two_spellings_are_applied_in_order(extcli, file):
    """Ruling A3: `7` and `U7` are one person."""
    users = [f"{prefix}{user}" for prefix in ("", "U") for user in range(1, 21)]
    lines = [(user, str(value)) for value in range(20) for user in users[:: (-1) ** value]]
    last = {f"U{user.removeprefix('U')}": value for user, value in lines}
    pairs = file("".join(f"{user},{value}\n" for user, value in lines))
    documents = file("".join(f'{{"user": "{user}", "n": {at}}}\n' for at, (user, _) in enumerate(lines)), "blobs")

    extcli("vote", "cast", "--from", pairs, exits=0)
    extcli("rank", "submit", "--from", pairs, exits=0)
    extcli("accumulate", "add", "--from", documents, "--user-field", "user", exits=0)

    assert {user: int(value) for user, value in last.items()} == {
        f"U{user.removeprefix('U')}": value for user, value in ballots(extcli).items()
    }
    assert [["19", "20"]] == extcli("rank", "get").rows
    blobs = [each["data"] for each in extcli("accumulate", "get", "-o", "jsonl").jsonl][::-1]
    for user in last:
        numbers = [each["n"] for each in blobs if f"U{each['user'].removeprefix('U')}" == user]
        assert 40 == len(numbers)
        assert sorted(numbers) == numbers, user


def test_tokens_for_many_users_take_several_requests(extcli, file):
    long = "x" * 150
    lines = "".join(f"{long}{user},1\n" for user in range(400))

    assert 0 == extcli("vote", "cast", "--from", file(lines)).exit_code

    assert [["1", "400"]] == extcli("vote", "get").rows


def test_refused_lines_are_named_by_number_and_exit_4(extcli, file):
    result = extcli("vote", "cast", "--from", file('U1,3\nU2,300\nU3\nU4,x\n,5\nU5,"7"\n\nU6,-5\n'))

    assert (4, [["-5", "1"], ["3", "1"], ["7", "1"]]) == (result.exit_code, result.rows)
    assert [
        "  line 2: 400 Bad Request: Value out of bounds: value: 300 is not within -99 to 99",
        "  line 3: invalid: 1 column; user and value are needed",
        "  line 4: invalid: not an integer: 'x'",
        "  line 5: invalid: the user is empty",
        "extcli: 4 of 7 lines were refused or invalid",
    ] == result.stderr.splitlines()[1:]
    assert "4 sent, 3 accepted, 1 refused, 3 invalid (" in result.stderr
    assert {"U1": 3, "U5": 7, "U6": -5} == ballots(extcli)


def test_json_counts_refused_and_invalid_lines_separately(extcli, file):
    counts = extcli("vote", "cast", "--from", file("U1,300\nU2,x\nU3\nU4,4\n"), "-o", "json").json

    assert [2, 1, 1, 2] == [counts[name] for name in ("sent", "accepted", "refused", "invalid")]


def test_twenty_refused_lines_are_named_and_the_others_counted(extcli, file):
    result = extcli("vote", "cast", "--from", file("U1,300\n" * 25))

    assert 20 == result.stderr.count("  line ")
    assert "and 5 more" in result.stderr


def test_jsonl_names_every_refused_line(extcli, file):
    result = extcli("vote", "cast", "--from", file("U1,300\n" * 24 + "?\n"), "-o", "jsonl", exits=4)

    assert list(range(1, 26)) == sorted(refusal["line"] for refusal in result.jsonl)
    assert {400, None} == {refusal["status"] for refusal in result.jsonl}


def test_quiet_still_names_refused_lines(extcli, file):
    result = extcli("-q", "vote", "cast", "--from", file("U1,300\nU2,x\nU3,3\n"))

    assert [
        "  line 1: 400 Bad Request: Value out of bounds: value: 300 is not within -99 to 99",
        "  line 2: invalid: not an integer: 'x'",
        "extcli: 2 of 3 lines were refused or invalid",
    ] == result.stderr.splitlines()


def test_quiet_does_not_repeat_refusals_that_json_contains(extcli, file):
    result = extcli("-q", "vote", "cast", "--from", file("U1,300\nU2,3\n"), "-o", "json")

    assert "  line 1" not in result.stderr
    assert [1] == [refusal["line"] for refusal in result.json["refusals"]]
    assert {"sent": 2, "accepted": 1, "refused": 1}.items() <= result.json.items()


@pytest.mark.parametrize("line", [b"U1,\xff3\n", b"\xff,3\n", b'{"user":"\xff","value":3}\n', b"{nonsense\n"])
def test_a_line_that_is_not_utf_8_or_json_is_refused_alone(extcli, file, line):
    first = b'{"user":"U1","value":3}\n' if line.startswith(b"{") else b"U1,3\n"

    result = extcli("vote", "cast", "--from", file(first + line), exits=4)

    assert "1 sent, 1 accepted, 0 refused, 1 invalid (" in result.stderr


def test_answers_can_contain_commas_and_quotes(extcli, file):
    extcli("rank", "submit", "colour", "--from", file('U1,"a, ""b"""\nU2,x\nU3,x\n'), exits=0)

    assert [{"key": "x", "score": 2}, {"key": 'a, "b"', "score": 1}] == extcli(
        "rank", "get", "colour", "-o", "jsonl"
    ).jsonl


def test_blobs_are_added_in_order_by_one_user(extcli, file):
    lines = "".join(f'{{"n":{index}}}\n' for index in range(100))

    assert 0 == extcli("accumulate", "add", "b", "--from", file(lines)).exit_code

    entries = extcli("accumulate", "get", "b", "-o", "jsonl").jsonl
    assert list(range(99, -1, -1)) == [entry["data"]["n"] for entry in entries]
    assert {"U1"} == {entry["user_id"] for entry in entries}


def test_user_field_names_the_user_of_each_blob(extcli, file):
    extcli("accumulate", "add", "--from", file('{"who":"U7","n":1}\n{"who":8,"n":2}\n'), "--user-field", "who")

    entries = extcli("accumulate", "get", "-o", "jsonl").jsonl

    assert {("U7", 1), ("8", 2)} == {(entry["user_id"], entry["data"]["n"]) for entry in entries}


def test_with_a_secret_tokens_are_signed_locally(extcli, production, file):
    variables = {"EXTCLI_URL": production.url, "EXTCLI_SECRET": SECRET_BASE64}

    extcli("vote", "cast", "signed", "--from", file("U1,3\nU2,4\n"), env=variables, exits=0)

    assert [["3", "1"], ["4", "1"]] == extcli("vote", "get", "signed", env=variables).rows


def test_expired_tokens_are_signed_again_by_the_service_s_clock(extcli, live, file):
    live.advance(8 * 86_400_000)

    extcli("vote", "cast", "--from", file("U1,3\nU2,4\n"), env={"EXTCLI_SECRET": SECRET_BASE64}, exits=0)

    assert {"U1": 3, "U2": 4} == ballots(extcli)


def test_a_wrong_secret_stops_at_the_first_line(extcli, production, file):
    variables = {"EXTCLI_URL": production.url, "EXTCLI_SECRET": "d3Jvbmc="}

    result = extcli("vote", "cast", "--from", file("U1,3\n" * 100), env=variables, fails=4)

    assert "401 Unauthorized" in result.stderr
    assert "is EXTCLI_SECRET" in result.stderr


def test_a_given_token_cannot_send_lines_of_many_users(extcli, file):
    result = extcli("vote", "cast", "--from", file("U1,3\n"), env={"EXTCLI_TOKEN": "a.b.c"}, exits=2)

    assert "set EXTCLI_SECRET" in result.stderr


SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}


def test_a_service_that_vanishes_exits_3_and_reports_the_progress(extcli, answering, file):
    url = answering(http_response("200 OK"), http_response("200 OK"))

    result = extcli(
        "vote", "cast", "--from", file("U1,1\n" * 10), "--url", url, "--concurrency", "1", env=SIGNED, fails=3
    )

    assert "2 sent, 2 accepted, 0 refused" in result.stderr
    assert "stopped; all lines up to 2 are processed" in result.stderr


def test_a_service_may_close_each_connection(extcli, answering, file):
    url = answering(*[http_response("200 OK", connection="close")] * 3)

    extcli("vote", "cast", "--from", file("U1,1\n" * 3), "--url", url, env=SIGNED, exits=0)


def test_a_service_that_never_responds_exits_3(extcli, answering, file):
    url = answering(hold=True)

    result = extcli("vote", "cast", "--from", file("U1,1\n"), "--url", url, "--timeout", "200ms", env=SIGNED, exits=3)

    assert "in time" in result.stderr


def test_an_unreachable_service_exits_3(extcli, file):
    result = extcli("vote", "cast", "--from", file("U1,1\n"), "--url", "http://127.0.0.1:1", env=SIGNED, exits=3)

    assert "cannot connect to http://127.0.0.1:1" in result.stderr


def test_lines_of_a_pipe_are_sent_when_they_arrive(monkeypatch):
    """`tail -f votes | extcli vote cast --from -` must not wait for more."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as stdin, os.fdopen(writer, "wb", buffering=0) as pipe:
        monkeypatch.setattr("sys.stdin", stdin)
        pipe.write(b"U1,3\nU2,")

        batches = iter(records(Path("-"), "value"))
        first = next(batches)
        pipe.write(b"4\n")
        second = next(batches)

    assert [["U1"], ["U2"]] == [[line.user for line in batch] for batch in (first, second)]


def test_a_large_input_is_read_in_batches(file):
    batches = records(Path(file("U1,3\n" * 200_000)), "value")

    first = next(iter(batches))

    assert len(first) <= 500
    assert batches.input.consumed <= 1 << 16


def test_an_interrupt_exits_130_and_reports_the_progress(shell):
    process = shell("vote", "cast", "--from", "-", "-o", "jsonl")
    process.stdin.write(b"U1,3\nU1,300\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b'{"line":2')

    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)

    assert 130 == process.returncode
    assert b"interrupted; all lines up to 2 are processed" in stderr
    assert b"Traceback" not in stderr


def test_concurrency_without_a_user_field_is_said_to_have_no_effect(extcli, file):
    documents = file('{"user": "U1"}\n{"user": "U2"}\n')
    note = "--concurrency has no effect without --user-field: the documents are added in order\n"

    alone = extcli("accumulate", "add", "--from", documents)
    chosen = extcli("accumulate", "add", "--from", documents, "--concurrency", "8")
    by_user = extcli("accumulate", "add", "--from", documents, "--concurrency", "8", "--user-field", "user")

    assert [0, 0, 0] == [each.exit_code for each in (alone, chosen, by_user)]
    assert [False, True, False] == [note in each.stderr for each in (alone, chosen, by_user)]
