"""The fault tests' own check: `Crowd.account` reports lost, duplicated and partial writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulator.config.settings import Settings
from faults.crowd import ACKNOWLEDGED, Crowd
from support.service import LiveServer, live_server

pytestmark = pytest.mark.slow


@contextmanager
def written(path: Path) -> Iterator[tuple[Crowd, LiveServer, sqlite3.Connection]]:
    """A crowd that has written some of everything, its service, and the service's file."""
    crowd = Crowd(size=2)
    with live_server(Settings(data=f"sqlite://{path}")) as live:
        crowd.prepare(live)
        with crowd.writing(live):
            crowd.wait_for(ACKNOWLEDGED, 40)
        file = sqlite3.connect(path, isolation_level=None, timeout=5)
        try:
            yield crowd, live, file
        finally:
            file.close()


def test_without_damage_the_account_reports_no_fault(tmp_path: Path):
    with written(tmp_path / "data.db") as (crowd, live, _):
        account = crowd.account(live)

    assert account.faultless, account
    assert 40 <= account.acknowledged == account.found


@pytest.mark.parametrize(
    ("damage", "report"),
    [
        ("DELETE FROM items WHERE number = (SELECT max(number) FROM items)", "entries"),
        ("DELETE FROM documents WHERE CAST(value AS TEXT) LIKE '%filling%'", "stores 0 lost"),
        ("DELETE FROM marks WHERE voter = 'Uvoter1'", "votes: the poll counts"),
        ("UPDATE tallies SET count = 2 WHERE choice = '0'", "2 times"),
        ("UPDATE handed SET item = 'CODE-09999' WHERE ordinal = 1", "redemptions: some redeemed codes"),
        ("INSERT INTO items SELECT 0, log, space, at, expires_at, value FROM items LIMIT 1", "done 2 times"),
    ],
)
def test_the_account_reports_each_kind_of_damage(tmp_path: Path, damage: str, report: str):
    with written(tmp_path / "data.db") as (crowd, live, file):
        assert file.execute(damage).rowcount

        account = crowd.account(live)

    assert not account.faultless
    assert report in str(account)
