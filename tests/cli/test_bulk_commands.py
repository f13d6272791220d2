"""Commands with many lines: `vote cast --from`, `rank submit --from`, `accumulate add --from`."""

from __future__ import annotations

import os
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


def test_lines_of_one_user_in_two_spellings_are_applied_in_order(extcli, file):
    """Ruling A3: `7` and `U7` are one person."""
    users = [f"{prefix}{user}" for prefix in ("", "U") for user in range(1, 9)]
    lines = [(user, str(value)) for value in range(10) for user in users[:: (-1) ** value]]
    last = {f"U{user.removeprefix('U')}": value for user, value in lines}
    pairs = file("".join(f"{user},{value}\n" for user, value in lines))
    documents = file("".join(f'{{"user": "{user}", "n": {at}}}\n' for at, (user, _) in enumerate(lines)), "blobs")

    extcli("vote", "cast", "--from", pairs, exits=0)
    extcli("rank", "submit", "--from", pairs, exits=0)
    extcli("accumulate", "add", "--from", documents, "--user-field", "user", exits=0)

    assert {user: int(value) for user, value in last.items()} == {
        f"U{user.removeprefix('U')}": value for user, value in ballots(extcli).items()
    }
    assert [["9", "8"]] == extcli("rank", "get").rows
    blobs = [each["data"] for each in extcli("accumulate", "get", "-o", "jsonl").jsonl][::-1]
    for user in last:
        numbers = [each["n"] for each in blobs if f"U{each['user'].removeprefix('U')}" == user]
        assert 20 == len(numbers)
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
    quiet = extcli("-q", "vote", "cast", "--from", file("U1,3\nU2,300\n"), exits=4).stderr.splitlines()
    assert [result.stderr.splitlines()[1], "extcli: 1 of 2 lines were refused"] == quiet
    assert {"U1": 3, "U5": 7, "U6": -5} == ballots(extcli)


def test_json_has_the_counts_and_the_refused_lines(extcli, file):
    result = extcli("-q", "vote", "cast", "--from", file("U1,300\nU2,x\nU3\nU4,4\n"), "-o", "json")

    assert [2, 1, 1, 2] == [result.json[name] for name in ("sent", "accepted", "refused", "invalid")]
    assert [1, 2, 3] == sorted(refusal["line"] for refusal in result.json["refusals"])
    assert "  line 1" not in result.stderr


def test_jsonl_names_every_refused_line(extcli, file):
    source = file("U1,300\n" * 24 + "?\n")
    result = extcli("vote", "cast", "--from", source, "-o", "jsonl", exits=4)
    named = extcli("vote", "cast", "--from", source, exits=4).stderr

    assert (20, True) == (named.count("  line "), "and 5 more" in named)
    assert list(range(1, 26)) == sorted(refusal["line"] for refusal in result.jsonl)
    assert {400, None} == {refusal["status"] for refusal in result.jsonl}


@pytest.mark.parametrize("line", [b"U1,\xff3\n", b"\xff,3\n", b'{"user":"\xff","value":3}\n', b"{nonsense\n"])
def test_a_line_that_is_not_utf_8_or_json_is_refused_alone(extcli, file, line):
    first = b'{"user":"U1","value":3}\n' if line.startswith(b"{") else b"U1,3\n"

    result = extcli("vote", "cast", "--from", file(first + line), exits=4)

    assert "1 sent, 1 accepted, 0 refused, 1 invalid (" in result.stderr


def test_blobs_are_added_in_order_by_one_user(extcli, file):
    lines = "".join(f'{{"n":{index}}}\n' for index in range(100))

    assert 0 == extcli("accumulate", "add", "b", "--from", file(lines)).exit_code

    entries = extcli("accumulate", "get", "b", "-o", "jsonl").jsonl
    assert list(range(99, -1, -1)) == [entry["data"]["n"] for entry in entries]
    assert {"U1"} == {entry["user_id"] for entry in entries}


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


def test_lines_of_a_pipe_are_sent_when_they_arrive(monkeypatch):
    """`tail -f votes | extcli vote cast --from -` must not wait for more."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as stdin, os.fdopen(writer, "wb", buffering=0) as pipe:
        monkeypatch.setattr("sys.stdin", stdin)
        pipe.write(b"U1,3\n\n\nU2,")

        batches = iter(records(Path("-"), "value"))
        first = next(batches)
        pipe.write(b"4\n")
        second = next(batches)

    assert [["U1"], ["U2"]] == [[line.user for line in batch] for batch in (first, second)]
