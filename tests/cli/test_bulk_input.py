"""Which lines of an input are sent, and which are faults of their own."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("line", ['U1,"blue', '"U1,blue', 'U1,"blue"!'], ids=["never closed", "of the user", "more"])
def test_a_stray_quote_is_a_fault_of_its_line_alone(extcli, line):
    result = extcli("rank", "submit", "--from", "-", "-o", "jsonl", input=f"{line}\nU2,red\n")

    assert 4 == result.exit_code
    assert [(1, None)] == [(refusal["line"], refusal["status"]) for refusal in result.jsonl]
    assert [["red", "1"]] == extcli("rank", "get").rows


def test_a_quote_that_is_not_closed_is_called_so(extcli):
    result = extcli("rank", "submit", "--from", "-", input='U1,"blue\nU2,red\n')

    assert "  line 1: not sent: not CSV: a quote is not closed on its line\n" in result.stderr
