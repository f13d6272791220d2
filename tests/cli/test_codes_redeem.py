"""`extcli codes list`, `rm`, `eligible`, `redeem` and `redeemed`, and where codes are masked."""

from __future__ import annotations

import pytest

from extcli.codes.views import masked
from support.program import http_response
from support.terminal import Terminal

CODE = "SECRET-0001-OF-HAT"


@pytest.fixture
def codes(extcli):
    return lambda *args, **settings: extcli("codes", *args, **settings)


@pytest.fixture
def sets(backend):
    """Upload `Hat` at 1 and `Cap` at 4, and let U1 and U2 redeem one hat each."""
    body = {"codes": [[CODE, "SECRET-0002-OF-HAT"], ["C1"]], "names": ["Hat", "Cap"], "indices": [1, 4]}
    backend.put("codes", json=body).raise_for_status()
    grant = {"users": ["U1", "U2"], "prizes": [1], "prize_limits": [0, 1]}
    backend.post("codes/mark_from_list", json=grant).raise_for_status()


# Sets


@pytest.mark.usefixtures("sets")
def test_sets_are_listed_by_index(codes, backend):
    codes("redeem", "1", "--as", "viewer:U1")

    assert [["1", "Hat", "1", "1"], ["4", "Cap", "0", "1"]] == codes("list").rows
    assert backend.get("codes").text + "\n" == codes("list", "-o", "json").stdout
    assert {"index": 4, "name": "Cap", "distributed": 0, "left": 1} == codes("list", "-o", "jsonl").jsonl[1]
    assert ["4", "Cap", "0", "1"] == codes("list", "-o", "table").stdout.splitlines()[2].split()


@pytest.mark.usefixtures("sets")
def test_rm_prints_how_many_codes_of_each_set_were_handed_out(codes, backend):
    codes("redeem", "1")

    assert [["1", "Hat", "1"], ["4", "Cap", "0"]] == codes("rm", "--yes", exits=0).rows
    assert [] == backend.get("codes").json()["names"]
    assert {"distributed": []} == codes("rm", "-o", "json").json
    assert "no sets\n" == codes("list", "-o", "table").stdout


@pytest.mark.usefixtures("sets", "production_profile")
@pytest.mark.parametrize(("typed", "code", "remaining"), [("yes\n", 0, []), ("what\n", 2, ["Hat", "Cap"])])
def test_rm_asks_once_for_confirmation_on_a_terminal(codes, backend, typed, code, remaining):
    assert "set 1, 'Hat', ends; set 4, 'Cap', ends" in codes("rm", fails=2).stderr

    with Terminal("codes", "rm") as terminal:
        terminal.read_until("[y/N] ")
        terminal.type(typed)

        assert code == terminal.wait()
    assert 1 == terminal.screen.count("[y/N]")
    assert remaining == backend.get("codes").json()["names"]


# Viewers


@pytest.mark.usefixtures("sets")
def test_eligible_shows_how_many_codes_a_viewer_may_redeem(codes, viewer):
    assert [["0", "0"], ["1", "1"], ["2", "0"], ["3", "0"], ["4", "0"]] == codes("eligible").rows
    assert viewer("U1").get("codes/eligibility").text + "\n" == codes("eligible", "-o", "json").stdout
    assert {"index": 1, "eligible": 1} == codes("eligible", "-o", "jsonl").jsonl[1]


@pytest.mark.usefixtures("sets")
def test_a_pipe_gets_the_complete_code_and_each_viewer_another(codes):
    first, second = codes("redeem", "1"), codes("redeem", "1", "--as", "viewer:U2", "-o", "json")

    assert (0, f"{CODE}\n", "") == (first.exit_code, first.stdout, first.stderr)
    assert {"code": "SECRET-0002-OF-HAT", "all_prizes": ["SECRET-0002-OF-HAT"]} == second.json
    assert [["1", CODE]] == codes("redeemed").rows
    assert {"redeemed": [[], [CODE], [], [], []]} == codes("redeemed", "-o", "json").json
    assert [{"index": 1, "code": CODE}] == codes("redeemed", "-o", "jsonl").jsonl


@pytest.mark.usefixtures("sets")
def test_a_table_masks_codes_without_reveal(codes):
    for verb, *args in (("redeem", "1"), ("redeemed",)):
        shown = codes(verb, *args, "-o", "table")
        assert "SE" + "•" * 14 + "AT\n" in shown.stdout
        assert CODE not in shown.stdout + shown.stderr

    assert CODE in codes("redeemed", "-o", "table", "--reveal").stdout
    assert "SECRET-0002-OF-HAT\n" == codes("redeem", "1", "-o", "table", "--reveal", "--as", "viewer:U2").stdout


@pytest.mark.usefixtures("sets", "environment")
def test_a_terminal_masks_the_code():
    with Terminal("codes", "redeem", "1") as terminal:
        assert 0 == terminal.wait()

    assert "SE•" in terminal.screen
    assert CODE not in terminal.screen


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("A", "•"),
        ("AB", "••"),
        ("ABC", "A••"),
        ("ABCDEF", "A••••F"),
        ("ABCDEFGHI", "AB••••••I"),
        ("ABCDEFGHIJKL", "AB••••••••KL"),
        ("A" * 63, "AA" + "•" * 59 + "AA"),
        ("\x1bBC", "\\x1b••"),
    ],
)
def test_a_mask_shows_at_most_a_third_of_a_code(code, shown):
    assert shown == masked(code)


@pytest.mark.usefixtures("sets")
@pytest.mark.parametrize("form", ["plain", "table", "json", "jsonl"])
def test_redeem_exits_7_if_no_code_is_available(codes, form):
    result = codes("redeem", "4", "-o", form, exits=7)

    assert ('{"all_prizes":[]}\n' if "json" in form else "") == result.stdout


@pytest.mark.usefixtures("sets")
@pytest.mark.parametrize("words", ["redeem 1", "redeem 1 -o json", "redeemed", "redeemed -o json"])
def test_traces_never_contain_codes(codes, words: str):
    codes("redeem", "1", "--as", "viewer:U2")

    assert "SECRET" not in codes(*words.split(), "-v").stderr


# Other deployments


@pytest.mark.parametrize(
    ("args", "body", "exit_code"),
    [
        (("list",), '{"names":null}', 0),
        (("list",), '{"names":["A"]}', 0),
        (("list",), '{"names":["A"],"indices":[1,2]}', 5),
        (("eligible",), '{"eligible":null}', 0),
        (("redeemed",), '{"redeemed":[null]}', 0),
        (("redeemed",), "[]", 5),
        (("redeem", "0"), '{"code":""}', 7),
        (("redeem", "0"), '{"code":null,"all_prizes":null}', 7),
        (("redeem", "0", "-o", "json"), "5", 7),
        (("redeem", "0"), "<html>", 5),
        (("rm", "--yes"), '{"names":[],"distributed":[1,2]}', 0),
    ],
)
def test_responses_of_other_deployments_are_read_or_reported(codes, answering, args, body, exit_code):
    token = http_response("200 OK", '{"token":"t.o.k"}')

    result = codes(*args, "--url", answering(token, http_response("200 OK", body), http_response("200 OK", body)))

    assert exit_code == result.exit_code, result.stderr
    assert "Traceback" not in result.stderr
