"""`extcli fault`: adds, lists, removes and loads faults."""

from __future__ import annotations

import json
import os
import tomllib

import pytest

from extcli.completion import CommandLine, candidates, read_table
from support.service import CHANNEL

VOTE = ("--match", "POST /v1/e/vote")


@pytest.fixture(autouse=True)
def _no_faults(extcli):
    yield
    extcli("fault", "clear")


def faults(extcli) -> list[dict[str, object]]:
    return list(extcli("fault", "list", "-o", "json").json["faults"])


def test_a_fault_has_the_conditions_of_the_shared_options_only_if_they_are_given(extcli):
    conditions = {"channel": CHANNEL, "client_id": "x", "role": "viewer", "user": "7"}
    extcli("fault", "add", *VOTE, "--drop", "--channel", CHANNEL, "--client-id", "x", "--role", "viewer", "--user", "7")
    extcli("fault", "add", *VOTE, "--drop", env={"EXTCLI_CHANNEL": "5", "EXTCLI_CLIENT_ID": "x"})

    given, default = faults(extcli)
    assert conditions.items() <= given.items()
    assert {"channel": "", "client_id": ""}.items() <= default.items()


@pytest.mark.parametrize("effect", ["--drop", "--reset", "--stall", "--truncate=5"])
def test_a_call_that_a_fault_leaves_without_a_response_exits_3(extcli, effect):
    extcli("fault", "add", *VOTE, effect, "--times", "1")

    extcli("vote", "cast", "lunch", "--value", "1", "--timeout", "500ms", exits=3)


def test_rm_removes_one_and_clear_all(extcli):
    for _ in range(3):
        extcli("fault", "add", *VOTE, "--status", "503", "--times", "3", "--retry-after", "1")

    added = extcli("fault", "list").rows[0]
    assert ["f1", "POST /v1/e/vote", "", "status 503, retry after 1 s", "0", "3 of 3"] == added
    assert "1\n" == extcli("fault", "rm", "f2").stdout
    extcli("fault", "rm", "f9", exits=4)
    assert ["f1", "f3"] == [row[0] for row in extcli("fault", "list").rows]
    line = CommandLine(read_table(), "extcli fault rm f3")
    assert ["f3"] == [name for name, _ in candidates(line, os.environ)]
    assert "2\n" == extcli("fault", "clear").stdout
    assert "no faults\n" == extcli("fault", "list", "-o", "table").stdout


# Files

FILE = """
[[faults]]
match = "POST /v1/e/vote"
status = 503
times = 3

[[faults]]
id = "lossy"
event = "round-over"
lose = true
share = 0.5
seed = 7
for = "10s"
"""


@pytest.mark.parametrize("name", ["faults.toml", "faults.json", "-"])
def test_load_replaces_all_faults_with_the_faults_of_a_file(extcli, file, name):
    extcli("fault", "add", *VOTE, "--drop", "--id", "former")
    document = json.dumps({"faults": tomllib.loads(FILE)["faults"]})
    path = name if name == "-" else file(document if "json" in name else FILE, name)

    assert ["f1", "lossy"] == [row[0] for row in extcli("fault", "load", path, input=FILE).rows]

    _, lossy = faults(extcli)
    assert {"match": "BROADCAST round-over", "effect": "lose", "share": 0.5, "seed": 7}.items() <= lossy.items()
    assert 10_000 == lossy["lasts"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("faults = 3", "1:1: faults: "),
        ("faults = []\n[[fault]]\ndrop = true", "2:1: fault: "),
        (FILE.replace("lossy", "a b"), "8:1: faults[1].id: "),
        (FILE.replace("10s", "soon"), "13:1: faults[1].for: "),
        (FILE + "[[faults]\n", "14:9: not valid TOML"),
        (FILE.replace("/vote", "/vot"), "3:1: faults[0].match: "),  # found by the service only
    ],
)
def test_an_error_of_a_file_names_line_and_field_and_changes_nothing(extcli, file, text, expected):
    extcli("fault", "add", *VOTE, "--drop", "--id", "former")

    assert expected in extcli("fault", "load", file(text, "faults.toml"), fails=2).stderr
    assert ["former"] == [each["id"] for each in faults(extcli)]
