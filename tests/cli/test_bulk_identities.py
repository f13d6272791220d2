"""The identity that many lines are sent with."""

from __future__ import annotations

import pytest

from support.program import SECRET_BASE64, http_response

CREDENTIALS = pytest.mark.parametrize("credentials", [{}, {"EXTCLI_SECRET": SECRET_BASE64}], ids=["sandbox", "secret"])
COMMANDS = pytest.mark.parametrize(
    ("command", "line"),
    [
        (("vote", "cast"), "U1,3\n"),
        (("rank", "submit"), "U1,blue\n"),
        (("accumulate", "add", "--user-field", "user"), '{"user":"U1"}\n'),
    ],
    ids=["vote", "rank", "accumulate"],
)


@CREDENTIALS
@COMMANDS
def test_a_broadcaster_cannot_send_lines_of_many_users(extcli, command, line, credentials):
    result = extcli(*command, "--from", "-", "--as", "broadcaster", input=line, env=credentials, fails=2)

    assert [
        "extcli: broadcaster (--as) cannot send lines that name their users",
        "  a broadcaster is one user, the owner of the channel",
        "  use --as viewer",
    ] == result.stderr.splitlines()


@CREDENTIALS
@COMMANDS
def test_a_user_in_as_conflicts_with_users_on_lines(extcli, command, line, credentials):
    result = extcli(*command, "--from", "-", "--as", "viewer:U9", input=line, env=credentials, fails=2)

    assert result.stderr.startswith("extcli: viewer:U9 (--as) names a user, but so does each line\n")


def test_a_user_in_the_environment_conflicts_with_users_on_lines(extcli):
    result = extcli("vote", "cast", "--from", "-", input="U1,3\n", env={"EXTCLI_AS": "viewer:U9"}, exits=2)

    assert "viewer:U9 (EXTCLI_AS)" in result.stderr


@CREDENTIALS
@pytest.mark.parametrize("role", ["viewer", "backend"])
def test_a_role_without_a_user_sends_each_line_as_its_user(extcli, credentials, role):
    extcli("vote", "cast", "--from", "-", "--as", role, "--channel", "1001", input="U1,3\n", env=credentials, exits=0)

    assert [["U1", "3"]] == [[row[0], row[2]] for row in extcli("vote", "logs").rows]


@pytest.mark.parametrize(("identity", "user"), [("viewer:U9", "U9"), ("broadcaster", "1001")])
def test_blobs_without_a_user_field_are_sent_as_the_given_user(extcli, identity, user):
    assert 0 == extcli("accumulate", "add", "--from", "-", "--as", identity, input='{"n":1}\n').exit_code

    assert [user] == [entry["user_id"] for entry in extcli("accumulate", "get", "-o", "jsonl").jsonl]


def test_count_and_from_exclude_each_other(extcli):
    result = extcli("vote", "cast", "--from", "-", "--count", "3", input="U1,3\n", fails=2)

    assert "--count and --from exclude each other" in result.stderr


def test_user_field_requires_from(extcli):
    result = extcli("accumulate", "add", '{"user":"U1"}', "--user-field", "user", fails=2)

    assert "--user-field requires --from" in result.stderr


def test_a_wrong_number_of_tokens_is_an_unexpected_answer(extcli, answering):
    url = answering(http_response("200 OK", '{"tokens":["a.b.c"]}'))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,3\nU2,4\n", fails=5)

    assert "POST /v1/e/authtoken returned an unexpected answer" in result.stderr
