"""Verification finds damage that changes the structure or the counts of a file, and nothing else."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from emulator.engines.sqlite.files.verification import verify_file
from emulator.engines.sqlite.schema import VERSION, statements_of
from engines.aged_files import unpack
from support.examples import spread
from support.filled_service import PLAIN

_BIG: Final = 1_000_000_000
_NUMBERED: Final = {
    "spaces": "space", "ballots": "id", "logs": "id", "pools": "id", "lists": "id", "families": "id", "rosters": "id",
    "marks": "number", "items": "number", "tallies": "since", "dead": "ballot", "dead_pools": "pool",
    "dead_lists": "list", "dead_families": "family", "dead_rosters": "root", "dead_spaces": "space",
}  # fmt: skip
_IN_SPACE: Final = ("fallen", "documents", "ballots", "logs", "items", "pools", "lists", "families", "rosters")
_OBJECTS: Final = [
    (kind, name)
    for kind in ("TABLE", "INDEX")
    for each in statements_of(VERSION)
    for start in (f"CREATE {kind} ", f"CREATE UNIQUE {kind} ")
    if each.startswith(start)
    for name in [each.removeprefix(start).split()[0]]
    if f"DROP {kind} {name}" not in statements_of(VERSION)
]
_LIVE_BALLOT: Final = "(SELECT max(id) FROM ballots WHERE space IN (SELECT space FROM spaces))"
_LIVE_MARK: Final = "(SELECT min(number) FROM marks WHERE ballot IN (SELECT id FROM ballots))"
_LIVE_POOL: Final = "(SELECT min(id) FROM pools WHERE closed = 0)"
_HANDED: Final = "pool IN (SELECT id FROM pools)"

STATEMENTS: Final[tuple[str, ...]] = (
    *dict.fromkeys(f"DROP {kind} {name}" for kind, name in _OBJECTS),
    *(
        f"UPDATE {table} SET {column} = {_BIG} WHERE {column} = (SELECT min({column}) FROM {table})"
        for table, column in _NUMBERED.items()
    ),
    *(f"UPDATE {table} SET space = 77777777 WHERE rowid = (SELECT min(rowid) FROM {table})" for table in _IN_SPACE),
    # The structure
    "CREATE TABLE lost_and_found (id)",
    "CREATE TRIGGER full BEFORE INSERT ON items BEGIN SELECT RAISE(ABORT, 'full'); END",
    "CREATE VIEW votes AS SELECT * FROM marks",
    "CREATE INDEX marks_by_choice ON marks (choice)",
    "ALTER TABLE marks ADD COLUMN extra",
    "ALTER TABLE items RENAME COLUMN value TO body",
    "DROP INDEX marks_by_voter; CREATE INDEX marks_by_voter ON marks (ballot, voter, slot)",
    "DROP INDEX tallies_by_count; CREATE INDEX tallies_by_count ON tallies (ballot, count, since)",
    "PRAGMA user_version = 5",
    "PRAGMA user_version = 0",
    # Numbers and namespaces
    "DELETE FROM numbers",
    "INSERT INTO numbers VALUES (900000)",
    "UPDATE numbers SET next = 1",
    "UPDATE numbers SET next = 'many'",
    "DELETE FROM spaces WHERE namespace = 'sandbox'",
    "DELETE FROM dead_spaces",
    "UPDATE spaces SET space = (SELECT space FROM spaces WHERE namespace = 'sandbox')",
    "INSERT INTO dead_spaces SELECT space FROM spaces WHERE namespace = 'sandbox'",
    # Times
    "UPDATE fallen SET at = -1",
    "UPDATE documents SET expires_at = -5 WHERE id = (SELECT min(id) FROM documents)",
    "UPDATE items SET at = -1 WHERE number = (SELECT min(number) FROM items)",
    "UPDATE rosters SET expires_at = 9223372036854775807",
    # Polls and rankings
    f"DELETE FROM marks WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET times = times + 1 WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET times = 0 WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET choice = 'another' WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET ballot = 77777777 WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET slot = -1 WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET whole = 7 WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET cast_at = -1 WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET cast_at = cast_at + 99999 WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET cast_at = 'noon' WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET voter = x'FF' WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET voter = CAST(x'FFFE' AS TEXT) WHERE number = {_LIVE_MARK}",
    f"UPDATE marks SET note = 7 WHERE number = {_LIVE_MARK}",
    f"INSERT INTO marks SELECT number + 500, ballot, voter, slot + 9, choice, times, cast_at, note, whole FROM marks"
    f" WHERE number = {_LIVE_MARK}",
    "DELETE FROM marks",
    "DELETE FROM tallies WHERE (ballot, choice) IN (SELECT ballot, choice FROM tallies"
    " WHERE ballot IN (SELECT id FROM ballots) LIMIT 1)",
    "DELETE FROM tallies",
    "UPDATE tallies SET count = count + 1 WHERE ballot = (SELECT min(id) FROM ballots)",
    "UPDATE tallies SET count = 0 WHERE ballot = (SELECT min(id) FROM ballots)",
    f"UPDATE tallies SET count = -count WHERE ballot = {_LIVE_BALLOT}",
    "UPDATE tallies SET choice = choice || 'x' WHERE ballot = (SELECT min(id) FROM ballots)",
    "UPDATE tallies SET since = 1",
    "INSERT INTO tallies SELECT min(id), 'unheard of', 3, 1 FROM ballots",
    "INSERT INTO tallies VALUES (77777777, 'a', 1, 1)",
    "UPDATE ballots SET latest = latest - 1 WHERE latest BETWEEN 1 AND 9999999999999",
    "UPDATE ballots SET disabled = 2",
    f"UPDATE ballots SET per_voter = 0 WHERE id = {_LIVE_BALLOT}",
    "DELETE FROM ballots WHERE id = (SELECT ballot FROM marks LIMIT 1)",
    "INSERT INTO dead SELECT min(id) FROM ballots",
    "DELETE FROM dead",
    # Logs and messages
    "DELETE FROM logs WHERE id = (SELECT min(id) FROM logs)",
    "DELETE FROM items WHERE log = (SELECT min(id) FROM logs)",
    "DELETE FROM items",
    "UPDATE items SET log = 77777777 WHERE number = (SELECT min(number) FROM items)",
    "UPDATE items SET space = (SELECT max(space) FROM spaces) WHERE number = (SELECT min(number) FROM items)",
    "DELETE FROM messages WHERE number = 2",
    "DELETE FROM messages WHERE number = (SELECT max(number) FROM messages)",
    "UPDATE sqlite_sequence SET seq = 1",
    "DELETE FROM sqlite_sequence",
    "INSERT INTO sqlite_sequence VALUES ('messages', 3)",
    "INSERT INTO sqlite_sequence VALUES ('marks', 3)",
    # Codes
    f"UPDATE pools SET handed = handed + 1 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET handed = handed - 1 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET position = -1 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET position = 99 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET closed = 1 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET closed = 2 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET list = 0 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET list = 77777777 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET expires_at = expires_at - 1 WHERE id = {_LIVE_POOL}",
    f"UPDATE pools SET root = root - 1 WHERE id = {_LIVE_POOL}",
    f"DELETE FROM pools WHERE id = {_LIVE_POOL}",
    f"INSERT INTO pools SELECT id + 1, root, space, shelf, owner, name, holder, place, expires_at, 0, list, position,"
    f" handed, note FROM pools WHERE id = {_LIVE_POOL}",
    f"DELETE FROM handed WHERE {_HANDED}",
    f"UPDATE handed SET ordinal = ordinal + 10 WHERE {_HANDED}",
    f"UPDATE handed SET nth = nth + 5 WHERE {_HANDED}",
    f"UPDATE handed SET root = root + 1 WHERE {_HANDED}",
    f"UPDATE handed SET item = 'another' WHERE {_HANDED}",
    f"UPDATE handed SET pool = pool + 77777777 WHERE {_HANDED}",
    f"INSERT INTO handed SELECT pool, ordinal + 1, root, item, 'V7', 1 FROM handed WHERE {_HANDED} LIMIT 1",
    "DELETE FROM spent",
    "UPDATE spent SET digest = substr(digest, 1, 5)",
    "UPDATE spent SET family = 77777777 WHERE family = (SELECT min(family) FROM spent)",
    "DELETE FROM families WHERE id = (SELECT min(family) FROM spent)",
    "DELETE FROM dead_families",
    "INSERT INTO dead_families SELECT min(id) FROM families",
    "INSERT INTO dead_pools SELECT min(id) FROM pools",
    "INSERT INTO dead_lists SELECT min(id) FROM lists",
    "DELETE FROM dead_lists",
    "UPDATE lists SET size = size + 1",
    "UPDATE lists SET pool = 77777777",
    "UPDATE lists SET pool = NULL",
    "UPDATE lists SET expires_at = expires_at - 1",
    "DELETE FROM lists",
    "DELETE FROM chunks WHERE list IN (SELECT id FROM lists)",
    "UPDATE chunks SET first = first + 1",
    "UPDATE chunks SET items = CAST(items || x'00' || 'more' AS BLOB)",
    "UPDATE chunks SET items = 'A1'",
    "UPDATE chunks SET list = 77777777 + id",
    "DELETE FROM rosters",
    "UPDATE rosters SET root = root - 1",
    "UPDATE members SET root = root + 1 WHERE roster IN (SELECT id FROM rosters)",
    "UPDATE members SET roster = 77777777 WHERE roster IN (SELECT id FROM rosters)",
    "DELETE FROM dead_rosters",
)  # fmt: skip


def _overwritten(page: int, content: bytes) -> Callable[[bytes], bytes]:
    return lambda file: file[: page * 1024] + content + file[page * 1024 + len(content) :]


BYTES: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "the second half is missing": lambda file: file[: len(file) // 2],
    "the last page is missing": lambda file: file[:-1024],
    "the last page is cut": lambda file: file[:-500],
    "the count of pages is wrong": lambda file: file[:28] + (7).to_bytes(4, "big") + file[32:],
    "the list of free pages is wrong": lambda file: file[:32] + (5).to_bytes(4, "big") + file[36:],
    "the first page is zero after its header": lambda file: file[:100] + bytes(924) + file[1024:],
    **{f"page {page} is zero": _overwritten(page, bytes(1024)) for page in (2, 5, 9, 20, 31, 40)},
    **{f"page {page} is text": _overwritten(page, b"Dear diary, " * 85) for page in (3, 8, 13, 27, 39)},
}
"""Changes of the bytes of a file, which has pages of 1,024 bytes."""


def damaged(statements: str, target: Path) -> Path:
    """Write a file of the current format on which these statements have run."""
    unpack(VERSION, target)
    with closing(sqlite3.connect(target, isolation_level=None)) as file:
        before = file.total_changes
        for statement in statements.split("; ") if "BEGIN" not in statements else [statements]:
            file.execute(statement)
        is_change = file.total_changes > before or not statements.startswith(("UPDATE", "DELETE", "INSERT"))
        assert is_change, f"{statements} changes nothing"
    return target


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


def test_a_finding_about_the_list_of_removed_records_names_its_row(path: Path) -> None:
    damaged("UPDATE dead_rosters SET member = x'00'", path)
    with closing(sqlite3.connect(path)) as file:
        ((root,),) = file.execute("SELECT root FROM dead_rosters")

    assert [("dead_rosters", f"row {root}", "member is of type blob")] == verify_file(str(path)).findings
