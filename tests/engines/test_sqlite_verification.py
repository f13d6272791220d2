"""Verification finds damage that changes the structure or the counts of a file, and nothing else."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from emulator.engines.sqlite.files.verification import verify_file
from emulator.engines.sqlite.schema import VERSION
from engines.aged_files import unpack
from engines.planted_damage import BYTES, STATEMENTS, damaged
from support.examples import spread
from support.filled_service import PLAIN


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


def test_at_least_a_hundred_different_damages_are_planted() -> None:
    assert len(set(STATEMENTS)) + len(BYTES) >= 100


@pytest.mark.parametrize("statements", spread(STATEMENTS, 4))
def test_damage_to_rows_or_tables_is_found(path: Path, statements: str) -> None:
    assert verify_file(str(damaged(statements, path))).findings


@pytest.mark.parametrize("name", BYTES)
def test_damage_to_pages_is_found(path: Path, name: str) -> None:
    path.write_bytes(BYTES[name](unpack(VERSION, path).read_bytes()))

    assert verify_file(str(path)).findings


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_an_undamaged_file_of_any_format_has_no_findings(path: Path, version: int) -> None:
    unpack(version, path)
    before = path.read_bytes()

    assert (version, []) == verify_file(str(path))[::2]
    assert ([path], before) == (list(path.parent.iterdir()), path.read_bytes())


def test_a_finding_names_no_user_code_or_name_of_a_document(path: Path) -> None:
    damaged("UPDATE numbers SET next = 1", path)
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute(
            "SELECT item FROM handed UNION SELECT voter FROM marks UNION SELECT holder FROM documents"
            " WHERE shelf NOT LIKE 'ids/%'"
            " UNION SELECT name FROM documents WHERE shelf IN ('pin', 'pin_token', 'transaction')"
        )
        hidden = {text for (text,) in rows if text and text not in ("777", *PLAIN)}  # rows have numbers, too
    text = str(verify_file(str(path)).findings)

    assert len(hidden) > 10
    assert "poll my-extension/poll-0 in" in text
    assert not [each for each in hidden if re.search(rf"\b{re.escape(each)}\b", text)]


def test_a_finding_about_the_list_of_removed_things_names_its_row(path: Path) -> None:
    damaged("UPDATE dead_rosters SET member = x'00'", path)
    with closing(sqlite3.connect(path)) as file:
        ((root,),) = file.execute("SELECT root FROM dead_rosters")

    assert [("dead_rosters", f"row {root}", "member is of type blob")] == verify_file(str(path)).findings
