"""Commands with many lines: which lines are valid, as whom each is sent, and what is printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from extcli.bulk.input_lines import read_documents, read_records
from extcli.errors import UsageError
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


def test_json_has_the_counts_and_jsonl_names_every_refused_line(extcli, file):
    result = extcli("-q", "vote", "cast", "--from", file("U1,300\nU2,x\nU3\nU4,4\n"), "-o", "json")
    assert [2, 1, 1, 2] == [result.json[name] for name in ("sent", "accepted", "refused", "invalid")]
    assert [1, 2, 3] == sorted(refusal["line"] for refusal in result.json["refusals"])
    assert "  line 1" not in result.stderr

    source = file("U1,300\n" * 24 + "?\n")
    refusals = extcli("vote", "cast", "--from", source, "-o", "jsonl", exits=4).jsonl
    named = extcli("vote", "cast", "--from", source, exits=4).stderr
    assert (20, True) == (named.count("  line "), "and 5 more" in named)
    assert list(range(1, 26)) == sorted(refusal["line"] for refusal in refusals)
    assert {400, None} == {refusal["status"] for refusal in refusals}


def test_a_line_that_is_not_utf_8_or_json_is_refused_alone(extcli, file):
    for lines in (
        b"U1,3\nU1,\xff3\n\xff,3\n",
        b'{"user":"U1","value":3}\n{"user":"\xff","value":3}\n{nonsense\n',
    ):
        said = extcli("vote", "cast", "--from", file(lines), exits=4).stderr
        assert "1 sent, 1 accepted, 0 refused, 2 invalid (" in said


SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}


def test_with_a_secret_tokens_are_signed_locally_and_a_wrong_one_stops_at_the_first_line(extcli, production, file):
    where = ("--url", production.url)

    extcli("vote", "cast", "signed", "--from", file("U1,3\nU2,4\n"), *where, env=SIGNED, exits=0)

    assert [["3", "1"], ["4", "1"]] == extcli("vote", "get", "signed", *where, env=SIGNED).rows
    wrong = extcli("vote", "cast", "--from", file("U1,3\n" * 100), *where, env={"EXTCLI_SECRET": "d3Jvbmc="}, fails=4)
    assert "401 Unauthorized" in wrong.stderr
    assert "check that EXTCLI_SECRET" in wrong.stderr


def test_expired_tokens_are_signed_again_by_the_service_s_clock(extcli, live, file):
    live.advance(8 * 86_400_000)

    extcli("vote", "cast", "--from", file("U1,3\nU2,4\n"), env=SIGNED, exits=0)

    assert {"U1": 3, "U2": 4} == ballots(extcli)


def test_a_given_token_cannot_send_lines_of_many_users(extcli, file):
    result = extcli("vote", "cast", "--from", file("U1,3\n"), env={"EXTCLI_TOKEN": "a.b.c"}, exits=2)

    assert "set EXTCLI_SECRET" in result.stderr


def test_a_service_that_vanishes_exits_3_and_reports_the_progress(extcli, answering, file):
    where = ("--url", answering(http_response("200 OK"), http_response("200 OK")), "--concurrency", "1")

    result = extcli("vote", "cast", "--from", file("U1,1\n" * 10), *where, env=SIGNED, fails=3)

    assert "2 sent, 2 accepted, 0 refused" in result.stderr
    assert "stopped; all lines up to 2 are processed" in result.stderr


def test_lines_of_a_pipe_are_sent_when_they_arrive(monkeypatch):
    """`tail -f votes | extcli vote cast --from -` must not wait for more."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as stdin, os.fdopen(writer, "wb", buffering=0) as pipe:
        monkeypatch.setattr("sys.stdin", stdin)
        pipe.write(b"U1,3\n\n\nU2,")

        batches = iter(read_records(Path("-"), "value"))
        first = next(batches)
        pipe.write(b"4\n")
        second = next(batches)

    assert [["U1"], ["U2"]] == [[line.user for line in batch] for batch in (first, second)]


# Which lines of an input are valid


@pytest.mark.parametrize("line", ['U1,"blue', '"U1,blue', 'U1,"blue"!'], ids=["never closed", "of the user", "more"])
def test_a_stray_quote_invalidates_only_its_line(extcli, line):
    result = extcli("rank", "submit", "--from", "-", "-o", "jsonl", input=f"{line}\nU2,red\n", exits=4)

    assert [(1, None)] == [(refusal["line"], refusal["status"]) for refusal in result.jsonl]
    assert [["red", "1"]] == extcli("rank", "get").rows


def test_a_vote_is_a_plain_decimal_integer_with_a_sign_and_surrounding_spaces(extcli):
    wrong = ("1_0", "\u0661", "1.0", "0x1", "", "+", "- 1", "9" * 5000)
    lines = [f"U{at},{value}" for at, value in enumerate([*wrong, "7", " +7 ", "-7", "007"], 1)]

    said = extcli("vote", "cast", "--from", "-", input="\n".join(lines), exits=4).stderr

    named = [line for line in said.splitlines() if "invalid: not an integer: " in line]
    assert [f"  line {at}" for at in range(1, 9)] == [line.partition(":")[0] for line in named]
    assert [7, 7, -7, 7] == [
        int(row[2]) for row in sorted(extcli("vote", "logs").rows, key=lambda row: int(row[0][1:]))
    ]


@pytest.mark.parametrize("command", [("vote", "cast"), ("accumulate", "add", "--user-field", "user")])
def test_a_user_must_be_text_or_an_integer(extcli, command):
    users = ("null", "true", "1.5", "[1]", '{"id":1}', "7")
    lines = "".join(f'{{"user":{user},"value":3}}\n' for user in users)

    said = extcli(*command, "--from", "-", input=lines, exits=4).stderr

    assert 5 == said.count(" invalid: the user is neither text nor an integer\n")
    assert "1 sent, 1 accepted, 0 refused, 5 invalid (" in said


@pytest.mark.parametrize("lines", ["user;value\nU1;3\nU2\n", '{"user":"U1","value":3}\n\n{"user":"U2"}\n'])
def test_line_numbers_count_blank_lines(extcli, lines):
    result = extcli("vote", "cast", "--from", "-", "-o", "jsonl", input=f"\n \n{lines}")

    assert [["U1", "3"]] == [[row[0], row[2]] for row in extcli("vote", "logs").rows]
    assert [5] == [refusal["line"] for refusal in result.jsonl]


def test_the_columns_of_a_file_can_be_named(extcli):
    table = "Choice,Voter\n3,U1\n4,U2\n"
    objects = '{"voter": "U1", "choice": 5}\n'

    assert 0 == extcli("vote", "cast", "a", "--from", "-", "--columns", "voter,choice", input=table).exit_code
    assert 0 == extcli("vote", "cast", "b", "--from", "-", "--columns", "voter, choice", input=objects).exit_code
    assert ("3\t1\n4\t1\n", "5\t1\n") == (extcli("vote", "get", "a").stdout, extcli("vote", "get", "b").stdout)


def test_a_named_column_must_exist(extcli):
    cast = ("vote", "cast", "a", "--from", "-", "--columns")

    result = extcli(*cast, "voter,choice", input="user,value\nU1,3\n", exits=2)

    assert "a heading without the columns voter and choice" in result.stderr
    extcli(*cast, "voter", input="", exits=2)


def test_a_line_has_at_most_1_mib(tmp_path: Path):
    longest = tmp_path / "longest.jsonl"
    longest.write_text("1" * (1 << 20))
    too_long = tmp_path / "too_long.jsonl"
    too_long.write_text("1" * ((1 << 20) + 1))

    assert 1 == len(next(iter(read_documents(longest, None))))
    with pytest.raises(UsageError, match="longer than 1 MiB"):
        list(read_documents(too_long, None))


# A heading is never taken as data without a word, and data never as a heading


def test_a_heading_with_unknown_columns_is_refused_and_nothing_is_sent(extcli):
    for heading in (
        *("voter;text", "user_id\tanswer 1", "User Id,2nd answer", "\ufeffviewer,answer", '"viewer","answer"'),
        *("\nviewer,answer", "opaque_id,answer,7", "alice,blue"),
    ):
        for command in ("rank submit", "vote cast"):
            result = extcli(*command.split(), "--from", "-", input=f"{heading}\nU1,3\n", fails=2)
            assert "--columns USER,VALUE" in result.stderr
    assert "" == extcli("rank", "get").stdout + extcli("vote", "get").stdout


def test_a_first_line_with_an_id_is_data(extcli):
    for at, first in enumerate(("U1,blue", "7;blue", 'U1,";;;"', "U1,;;;", "U1\t,,;", "A1b,name", "1,2")):
        extcli("rank", "submit", f"r{at}", "--from", "-", input=f"{first}\n", exits=0)
        assert 1 == len(extcli("rank", "get", f"r{at}").rows), first


# The identity that many lines are sent with


@pytest.mark.parametrize(
    ("command", "line", "who"),
    [
        (("vote", "cast", "--as", "broadcaster"), "U1,3\n", "broadcaster (--as)"),
        (("rank", "submit", "--as", "viewer:U9"), "U1,blue\n", "viewer:U9 (--as)"),
        (("accumulate", "add", "--user-field", "user"), '{"user":"U1"}\n', "viewer:U9 (EXTCLI_AS)"),
    ],
    ids=["vote", "rank", "accumulate"],
)
def test_one_user_cannot_send_lines_of_many_users(extcli, command, line, who):
    for credentials in ({}, {"EXTCLI_SECRET": SECRET_BASE64}):
        result = extcli(*command, "--from", "-", input=line, env=credentials | {"EXTCLI_AS": "viewer:U9"}, fails=2)
        assert result.stderr.startswith(f"extcli: {who} cannot act for many users\n")


@pytest.mark.parametrize("credentials", [{}, {"EXTCLI_SECRET": SECRET_BASE64}], ids=["sandbox", "secret"])
def test_a_role_without_a_user_sends_each_line_as_its_user(extcli, credentials):
    for role in ("viewer", "backend"):
        as_role = ("--as", role, "--channel", "1001")
        extcli("vote", "cast", role, "--from", "-", *as_role, input="U1,3\n", env=credentials, exits=0)
        assert [["U1", "3"]] == [[row[0], row[2]] for row in extcli("vote", "logs", role).rows]


@pytest.mark.parametrize(("identity", "user"), [("viewer:U9", "U9"), ("broadcaster", "1001")])
def test_blobs_without_a_user_field_are_sent_as_the_given_user(extcli, identity, user):
    assert 0 == extcli("accumulate", "add", "--from", "-", "--as", identity, input='{"n":1}\n').exit_code

    assert [user] == [entry["user_id"] for entry in extcli("accumulate", "get", "-o", "jsonl").jsonl]


def test_a_wrong_number_of_tokens_is_an_unexpected_response(extcli, answering):
    url = answering(http_response("200 OK", '{"tokens":["a.b.c"]}'))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,3\nU2,4\n", fails=5)

    assert "POST /v1/e/authtoken returned an unexpected response" in result.stderr
