"""Checks of the ids in every table: they were given out before, are in a namespace, and name things that exist."""

from __future__ import annotations

from typing import Final

from emulator.engines.base import NEVER
from emulator.engines.sqlite.files.checks import IN_SPACE, NUMBERED, OWNED_BY, Check, key_of, since

_TIMES: Final = {
    "fallen": ("at",), "documents": ("expires_at",), "ballots": ("expires_at", "opens_at", "closes_at"),
    "marks": ("cast_at",), "items": ("at", "expires_at"), "pools": ("expires_at",), "lists": ("expires_at",),
    "rosters": ("expires_at",),
}  # fmt: skip
_REMOVED: Final = {
    "ballots": ("dead", "ballot"), "lists": ("dead_lists", "list"), "pools": ("dead_pools", "pool"),
    "families": ("dead_families", "family"),
}  # fmt: skip
"""The list of removed things of a table, and its column."""


def _numbered() -> list[Check]:
    return [
        Check(
            table,
            since(table),
            f"its {column} is {{}}, but the next number to be given is {{}}",
            f"SELECT {key_of(table)}, {column}, next FROM {table}, numbers WHERE {column} >= next OR {column} < 1",
        )
        for table, column in NUMBERED.items()
    ]


def _in_space() -> list[Check]:
    return [
        Check(
            table,
            since(table),
            "belongs to namespace {}, which does not exist",
            f"SELECT {key_of(table)}, space FROM {table}"
            " WHERE space NOT IN (SELECT space FROM spaces UNION ALL SELECT space FROM dead_spaces)",
        )
        for table in IN_SPACE
    ]


def _times() -> list[Check]:
    return [
        Check(
            table,
            since(table),
            f"{column} is {{}}, which is no time",
            f"SELECT {key_of(table)}, {column} FROM {table} WHERE {column} NOT BETWEEN 0 AND {NEVER}",
        )
        for table, columns in _TIMES.items()
        for column in columns
    ]


def _owned() -> list[Check]:
    checks = []
    for table, (column, owners) in OWNED_BY.items():
        removed = ""
        if owners in _REMOVED:
            dead, of = _REMOVED[owners]
            removed = f"AND {column} NOT IN (SELECT {of} FROM {dead})"
        elif owners == "rosters":
            removed = "AND root NOT IN (SELECT root FROM dead_rosters)"
        statement = (
            f"SELECT {key_of(table)}, {column} FROM {table} WHERE {column} NOT IN (SELECT id FROM {owners}) {removed}"
        )
        checks.append(Check(table, since(table), f"its {column} {{}} is not in {owners}", statement))
    return checks


def _removed() -> list[Check]:
    return [
        Check(
            table,
            since(table),
            f"is in {dead}, the list of removed ones, too",
            f"SELECT {key_of(table)} FROM {table} WHERE id IN (SELECT {column} FROM {dead})",
        )
        for table, (dead, column) in _REMOVED.items()
    ]


REFERENCE_CHECKS: Final = (
    *_numbered(),
    *_in_space(),
    *_times(),
    *_owned(),
    *_removed(),
    Check(
        "numbers", 1, "has {} rows instead of one", "SELECT '', n FROM (SELECT count(*) AS n FROM numbers) WHERE n <> 1"
    ),
    Check(
        "spaces",
        1,
        "{} has the id {}, which another namespace has, too",
        "SELECT '', namespace, space FROM spaces WHERE space IN (SELECT space FROM spaces GROUP BY space"
        " HAVING count(*) > 1)",
    ),
    Check(
        "spaces",
        1,
        "{} is in dead_spaces, the list of removed ones, too",
        "SELECT '', namespace FROM spaces WHERE space IN (SELECT space FROM dead_spaces)",
    ),
)
