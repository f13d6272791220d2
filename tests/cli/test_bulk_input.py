"""Which lines of an input are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from extcli.bulk.input_lines import documents
from extcli.errors import UsageError
from support.program import SECRET_BASE64, http_response


@pytest.mark.parametrize("line", ['U1,"blue', '"U1,blue', 'U1,"blue"!'], ids=["never closed", "of the user", "more"])
def test_a_stray_quote_invalidates_only_its_line(extcli, line):
    result = extcli("rank", "submit", "--from", "-", "-o", "jsonl", input=f"{line}\nU2,red\n", exits=4)

    assert [(1, None)] == [(refusal["line"], refusal["status"]) for refusal in result.jsonl]
    assert [["red", "1"]] == extcli("rank", "get").rows


@pytest.mark.parametrize("value", ["1_0", "\u0661", "1.0", "0x1", "", "+", "- 1", "9" * 5000])
def test_a_vote_must_be_a_plain_decimal_integer(extcli, value):
    result = extcli("vote", "cast", "--from", "-", input=f"U1,{value}\n", exits=4)

    assert "  line 1: invalid: not an integer: " in result.stderr


@pytest.mark.parametrize("value", ["7", " +7 ", "-7", "007"])
def test_an_integer_can_have_a_sign_and_surrounding_spaces(extcli, value):
    assert 0 == extcli("vote", "cast", "--from", "-", input=f"U1,{value}\n").exit_code
    assert [int(value)] == [int(row[2]) for row in extcli("vote", "logs").rows]


@pytest.mark.parametrize("user", ["null", "true", "1.5", "[1]", '{"id":1}'])
@pytest.mark.parametrize("command", [("vote", "cast"), ("accumulate", "add", "--user-field", "user")])
def test_a_user_must_be_text_or_an_integer(extcli, command, user):
    lines = f'{{"user":{user},"value":3}}\n{{"user":7,"value":4}}\n'

    result = extcli(*command, "--from", "-", input=lines, exits=4)

    assert "  line 1: invalid: the user is neither text nor an integer\n" in result.stderr
    assert "1 sent, 1 accepted, 0 refused, 1 invalid (" in result.stderr


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
    result = extcli(
        "vote", "cast", "a", "--from", "-", "--columns", "voter,choice", input="user,value\nU1,3\n", exits=2
    )

    assert "a heading without the columns voter and choice" in result.stderr
    assert 2 == extcli("vote", "cast", "a", "--from", "-", "--columns", "voter", input="").exit_code


def test_a_line_has_at_most_1_mib(tmp_path: Path):
    longest = tmp_path / "longest.jsonl"
    longest.write_text("1" * (1 << 20))
    too_long = tmp_path / "too_long.jsonl"
    too_long.write_text("1" * ((1 << 20) + 1))

    assert 1 == len(next(iter(documents(longest, None))))
    with pytest.raises(UsageError, match="longer than 1 MiB"):
        list(documents(too_long, None))


# A heading is never taken as data without a word, and data never as a heading


@pytest.mark.parametrize("command", ["rank submit", "vote cast"])
@pytest.mark.parametrize(
    "heading",
    [
        *("voter;text", "user_id\tanswer 1", "User Id,2nd answer", "\ufeffviewer,answer", '"viewer","answer"'),
        *("\nviewer,answer", "opaque_id,answer,7", "alice,blue"),
    ],
)
def test_a_heading_with_unknown_columns_is_refused_and_nothing_is_sent(extcli, command: str, heading: str):
    result = extcli(*command.split(), "--from", "-", input=f"{heading}\nU1,3\n", fails=2)

    assert "--columns USER,VALUE" in result.stderr
    assert "" == extcli("rank", "get").stdout + extcli("vote", "get").stdout


@pytest.mark.parametrize("first", ["U1,blue", "7;blue", 'U1,";;;"', "U1,;;;", "U1\t,,;", "A1b,name", "1,2"])
def test_a_first_line_with_an_id_is_data(extcli, first: str):
    extcli("rank", "submit", "--from", "-", input=f"{first}\n", exits=0)

    assert 1 == len(extcli("rank", "get").rows)


# The identity that many lines are sent with


CREDENTIALS = pytest.mark.parametrize("credentials", [{}, {"EXTCLI_SECRET": SECRET_BASE64}], ids=["sandbox", "secret"])


@CREDENTIALS
@pytest.mark.parametrize(
    ("command", "line", "who"),
    [
        (("vote", "cast", "--as", "broadcaster"), "U1,3\n", "broadcaster (--as)"),
        (("rank", "submit", "--as", "viewer:U9"), "U1,blue\n", "viewer:U9 (--as)"),
        (("accumulate", "add", "--user-field", "user"), '{"user":"U1"}\n', "viewer:U9 (EXTCLI_AS)"),
    ],
    ids=["vote", "rank", "accumulate"],
)
def test_one_user_cannot_send_lines_of_many_users(extcli, command, line, credentials, who):
    result = extcli(*command, "--from", "-", input=line, env=credentials | {"EXTCLI_AS": "viewer:U9"}, fails=2)

    assert result.stderr.startswith(f"extcli: {who} cannot act for many users\n")


@CREDENTIALS
@pytest.mark.parametrize("role", ["viewer", "backend"])
def test_a_role_without_a_user_sends_each_line_as_its_user(extcli, credentials, role):
    extcli("vote", "cast", "--from", "-", "--as", role, "--channel", "1001", input="U1,3\n", env=credentials, exits=0)

    assert [["U1", "3"]] == [[row[0], row[2]] for row in extcli("vote", "logs").rows]


@pytest.mark.parametrize(("identity", "user"), [("viewer:U9", "U9"), ("broadcaster", "1001")])
def test_blobs_without_a_user_field_are_sent_as_the_given_user(extcli, identity, user):
    assert 0 == extcli("accumulate", "add", "--from", "-", "--as", identity, input='{"n":1}\n').exit_code

    assert [user] == [entry["user_id"] for entry in extcli("accumulate", "get", "-o", "jsonl").jsonl]


def test_a_wrong_number_of_tokens_is_an_unexpected_response(extcli, answering):
    url = answering(http_response("200 OK", '{"tokens":["a.b.c"]}'))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,3\nU2,4\n", fails=5)

    assert "POST /v1/e/authtoken returned an unexpected response" in result.stderr
