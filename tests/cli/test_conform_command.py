"""`extcli conform`: results, exit codes and formats."""

from __future__ import annotations

WRITES = ("POST", "PUT", "PATCH", "DELETE")


def test_a_service_of_our_own_keeps_the_rules(extcli):
    result = extcli("conform", "-o", "json")

    assert (0, 0) == (result.exit_code, result.json["counts"]["fail"])
    assert result.json["counts"]["pass"]


def test_without_writes_the_journal_shows_no_write(extcli, live):
    extcli("conform")

    entries = live.client(None).get(f"{live.url}/_emulator/journal?limit=1000").json()["entries"]
    assert entries
    writes = {each["endpoint"] for each in entries if each["endpoint"].startswith(WRITES)}
    assert {"POST /_emulator/reset"} >= writes  # of the fixture


def test_a_service_that_does_not_answer_is_exit_code_3(extcli):
    assert 3 == extcli("conform", "--url", "http://127.0.0.1:9").exit_code
