"""The first line of a file: a heading is never taken as data without a word, and data never as a heading."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("command", ["rank submit", "vote cast"])
@pytest.mark.parametrize(
    "heading",
    [
        *("viewer,answer", "voter;text", "user_id\tanswer 1", "ID,Question 2", "User Id,2nd answer"),
        *("\ufeffviewer,answer", '"viewer","answer"', " viewer , answer ", "\nviewer,answer"),
        *("opaque_id,answer,7", "code,identifier", "user,answer1", "alice,blue"),
    ],
)
def test_a_heading_with_unknown_columns_is_refused_and_nothing_is_sent(extcli, command: str, heading: str):
    result = extcli(*command.split(), "--from", "-", input=f"{heading}\nU1,3\n", fails=2)

    assert "--columns USER,VALUE" in result.stderr
    assert "" == extcli("rank", "get").stdout + extcli("vote", "get").stdout


@pytest.mark.parametrize(
    ("options", "text"),
    [(("--columns", "viewer,answer"), "answer,viewer\nblue,U1\n"), ((), "user,key\nalice,blue\n")],
)
def test_the_named_columns_of_such_a_file_are_read(extcli, options, text):
    extcli("rank", "submit", *options, "--from", "-", input=text, exits=0)

    assert [["blue", "1"]] == extcli("rank", "get").rows


@pytest.mark.parametrize("first", ["U1,blue", "7;blue", 'U1,";;;"', "U1,;;;", "U1\t,,;", "A1b,name", "1,2"])
def test_a_first_line_with_an_id_is_data(extcli, first: str):
    extcli("rank", "submit", "--from", "-", input=f"{first}\n", exits=0)

    assert 1 == len(extcli("rank", "get").rows)


@pytest.mark.parametrize("heading", ["code", "Codes", " CODE ", "\ufeffcode", "\n\ncode", "user id"])
@pytest.mark.parametrize("name", ["-", "codes.txt", "codes"])
def test_a_plain_list_that_may_have_a_heading_is_refused(extcli, file, heading: str, name: str):
    text = f"{heading}\nA1\n"
    path = name if name == "-" else file(text, name)

    for command in (("upload", "--set", f"Hat={path}"), ("mark-from-list", "--prize", "0", "--from", path)):
        assert "--format csv" in extcli("codes", *command, input=text, fails=2).stderr
    assert "" == extcli("codes", "list").stdout


@pytest.mark.parametrize(("text", "column"), [("code,n\nA1,1\n", "1"), ("n,Code\n1,A1\n", "2"), ("code\nA1\n", "1")])
def test_a_heading_above_a_column_named_by_its_number_is_refused(extcli, file, text: str, column: str):
    path = file(text, "codes.csv")

    result = extcli("codes", "upload", "--set", f"Hat={path}", "--column", column, fails=2)

    assert "may be a heading" in result.stderr
    extcli("codes", "upload", "--set", f"Hat={path}", "--column", "code", exits=0)


def test_a_code_that_is_no_heading_is_data(extcli):
    extcli("codes", "upload", "--set", "Hat=-", input="CODE-1\n", exits=0)

    extcli("codes", "mark-from-list", "U1", "--prize", "0", exits=0)
    assert "CODE-1\n" == extcli("codes", "redeem", "0").stdout
