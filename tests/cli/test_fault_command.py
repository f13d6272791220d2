"""`extcli fault`: adds, lists, removes and loads faults."""

from __future__ import annotations

import json
import os

import pytest
from rich.cells import cell_len

from extcli.completion.shells import candidates
from support.service import CHANNEL

VOTE = ("--match", "POST /v1/e/vote")


@pytest.fixture(autouse=True)
def _no_faults(extcli):
    yield
    extcli("fault", "clear")


def faults(extcli) -> list[dict[str, object]]:
    return list(extcli("fault", "list", "-o", "json").json["faults"])


@pytest.mark.slow
def test_a_client_that_retries_succeeds_after_three_faults(extcli, lines):
    """The first line of a test of retries in other tools: three refusals, then success, then four requests."""
    extcli("reset")
    ballots = lines("user,value", "U1,3", name="ballots.csv")
    added = extcli("fault", "add", *VOTE, "--status", "503", "--times", "3", "--retry-after", "1")

    voted = extcli("vote", "cast", "lunch", "--from", ballots)

    assert (0, "f1\n", 0) == (added.exit_code, added.stdout, voted.exit_code)
    assert 0 == extcli("expect", "journal", "POST /v1/e/vote", "--count", "=4").exit_code
    assert 0 == extcli("expect", "journal", "POST /v1/e/vote", "--status", "503", "--count", "=3").exit_code
    assert [["f1", "POST /v1/e/vote", "", "status 503, retry after 1 s", "3", "0 of 3"]] == extcli("fault", "list").rows


def test_a_fault_has_the_conditions_of_the_shared_options(extcli):
    extcli("fault", "add", *VOTE, "--drop", "--channel", CHANNEL, "--client-id", "x", "--role", "viewer", "--user", "7")

    (fault,) = faults(extcli)
    assert {"channel": CHANNEL, "client_id": "x", "role": "viewer", "user": "7"}.items() <= fault.items()


def test_a_fault_without_conditions_ignores_the_defaults_of_the_shared_options(extcli):
    extcli("fault", "add", *VOTE, "--drop", env={"EXTCLI_CHANNEL": "5", "EXTCLI_CLIENT_ID": "x"})

    (fault,) = faults(extcli)
    assert {"channel": "", "client_id": ""}.items() <= fault.items()


@pytest.mark.parametrize("effect", ["--drop", "--reset", "--stall", "--truncate=5"])
def test_the_error_of_a_lost_connection_says_that_faults_have_acted(extcli, monkeypatch, effect):
    monkeypatch.setattr("extcli.api.signed_calls._SUSPICION_SECONDS", 10)
    extcli("fault", "add", *VOTE, effect, "--times", "1")

    lost = extcli("vote", "cast", "lunch", "--value", "1", "--timeout", "500ms", exits=3)

    assert "; perhaps on purpose: 1 fault has acted; see `extcli fault list`" in lost.stderr


def test_the_error_of_a_lost_connection_is_silent_about_faults_that_have_not_acted(extcli, answering):
    hanging = answering(hold=True)

    lost = extcli("vote", "get", "--url", hanging, "--timeout", "100ms", env={"EXTCLI_TOKEN": "a.b.c"})

    assert (3, False) == (lost.exit_code, "on purpose" in lost.stderr)


def test_rm_removes_one_and_clear_all(extcli):
    for _ in range(3):
        extcli("fault", "add", *VOTE, "--drop")

    assert "1\n" == extcli("fault", "rm", "f2").stdout
    assert ["f1", "f3"] == [row[0] for row in extcli("fault", "list").rows]
    assert "2\n" == extcli("fault", "clear").stdout
    assert "" == extcli("fault", "list").stdout


def test_rm_of_an_unknown_fault_is_refused_with_its_name(extcli):
    result = extcli("fault", "rm", "f9", exits=4)

    assert "there is no fault 'f9'" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--match", "POST /v1/e/vot", "--drop"), "did you mean POST /v1/e/vote"),
        ((*VOTE, "--status", "200"), "status: 200 is not within 400 to 599"),
    ],
)
def test_a_fault_that_only_the_service_can_judge_is_refused_by_it(extcli, args, message):
    result = extcli("fault", "add", *args, exits=4)

    assert message in result.stderr


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


@pytest.mark.parametrize("name", ["faults.toml", "faults.json"])
def test_load_replaces_all_faults_with_the_faults_of_a_file(extcli, file, name):
    extcli("fault", "add", *VOTE, "--drop", "--id", "former")
    document = [
        {"match": "POST /v1/e/vote", "status": 503, "times": 3},
        {"id": "lossy", "event": "round-over", "lose": True, "share": 0.5, "seed": 7, "for": "10s"},
    ]
    path = file(FILE if name.endswith("toml") else json.dumps({"faults": document}), name)

    result = extcli("fault", "load", path)

    assert ["f1", "lossy"] == [row[0] for row in result.rows]
    _, lossy = faults(extcli)
    assert {"match": "BROADCAST round-over", "effect": "lose", "share": 0.5, "seed": 7}.items() <= lossy.items()
    assert 10_000 == lossy["lasts"]


def test_load_reads_standard_input(extcli):
    assert ["f1", "lossy"] == [row[0] for row in extcli("fault", "load", "-", input=FILE).rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("faults = 3", "1:1: faults: must be a list of tables; in TOML, write [[faults]] above each"),
        ("", "1:1: faults: missing; must be a list of tables; in TOML, write [[faults]] above each"),
        ("faults = []\n[[fault]]\ndrop = true", "2:1: fault: unknown field; did you mean faults?"),
        (FILE.replace("lossy", "a b"), "8:1: faults[1].id: must be 1 to 64 letters, digits, '-' and '_'"),
        (FILE.replace("503", "200"), "4:1: faults[0].status: 200 is not within 400 to 599"),
        (FILE.replace("10s", "soon"), '13:1: faults[1].for: must be a duration, such as "10s"'),
        (FILE + "[[faults]\n", "14:9: not valid TOML: expected ']]' at the end of an array declaration"),
        (
            FILE.replace("lose", "stall"),
            "10:1: faults[1].stall: does not act on broadcasts; use delay, lose, double or",
        ),
        # found by the service only
        (FILE.replace("/vote", "/vot"), "3:1: faults[0].match: 'POST /v1/e/vot' is not an endpoint"),
    ],
)
def test_an_error_of_a_file_names_line_and_field_and_changes_nothing(extcli, file, text, expected):
    extcli("fault", "add", *VOTE, "--drop", "--id", "former")

    result = extcli("fault", "load", file(text, "faults.toml"), fails=2)

    assert "has 1 error; nothing was changed" in result.stderr
    assert expected in result.stderr
    assert ["former"] == [each["id"] for each in faults(extcli)]


# Output

LONG_EVENT = "e" * 120


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_table_reads_well_at_any_width(extcli, columns):
    extcli("fault", "add", *VOTE, "--status", "503", "--times", "3", "--retry-after", "1", "--id", "i" * 64)
    extcli("fault", "add", "--event", LONG_EVENT, "--lose", "--share", "25%", "--for", "8d", "--role", "viewer")

    table = extcli("fault", "list", "-o", "table", env={"COLUMNS": str(columns)}).stdout

    assert columns >= max(map(cell_len, table.splitlines()))
    shown = "".join(table.split())
    assert 120 == shown.count("e") - shown.replace(LONG_EVENT, "").count("e") or columns < 200
    if columns >= 80:
        assert "match" in table.splitlines()[0]
        assert "hits" in table.splitlines()[0]
        assert "3 of 3" in table
        assert "25% at random" in " ".join(table.split())


def test_the_table_reports_that_there_are_no_faults(extcli):
    assert "no faults\n" == extcli("fault", "list", "-o", "table").stdout


def test_a_table_says_which_fault_was_added(extcli):
    result = extcli("fault", "add", *VOTE, "--status", "503", "--role", "viewer", "-o", "table")

    assert "fault f1: POST /v1/e/vote role=viewer, status 503\n" == result.stdout


def test_ids_of_faults_complete(extcli):
    extcli("fault", "add", *VOTE, "--drop", "--id", "mine")

    assert ("faults", [("mine", "POST /v1/e/vote drop")]) == candidates("extcli fault rm m", os.environ)


def test_dry_run_adds_nothing(extcli):
    result = extcli("fault", "add", *VOTE, "--drop", "--dry-run", exits=0)

    assert '"effect":"drop"' in result.stdout.replace(" ", "")
    assert [] == faults(extcli)
