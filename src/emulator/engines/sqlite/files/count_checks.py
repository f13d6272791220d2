"""Checks of ballots with their casts and counts, of logs with their entries, and of messages."""

from __future__ import annotations

from typing import Final

from emulator.engines.base import NEVER
from emulator.engines.sqlite.files.checks import Check, key_of
from emulator.engines.sqlite.relay import MAX_ROWS

_CASTS: Final = """
    SELECT marks.ballot AS ballot, marks.choice AS choice, sum(times) AS casts FROM marks
    WHERE marks.ballot IN (SELECT id FROM ballots) GROUP BY marks.ballot, marks.choice
"""
COUNT_CHECKS: Final = (
    Check(
        "ballots",
        1,
        "has terms that no ballot has",
        f"SELECT {key_of('ballots')} FROM ballots WHERE disabled NOT IN (0, 1) OR known_voters_only NOT IN (0, 1)"
        " OR per_voter < 1 OR per_choice < 1 OR choices < 1",
    ),
    Check(
        "ballots",
        6,
        "the time of its latest cast is {}, but the casts have {}",
        f"SELECT {key_of('ballots')}, latest, found FROM (SELECT *, coalesce((SELECT max(cast_at) FROM marks"
        " WHERE ballot = ballots.id), 0) AS found FROM ballots) AS ballots"
        f" WHERE latest <> {NEVER} AND latest <> found",
    ),
    Check(
        "marks",
        6,
        "was cast before the one in front of it, although the ballot is marked as in order",
        f"SELECT {key_of('marks')} FROM (SELECT *, lag(cast_at) OVER (PARTITION BY ballot ORDER BY number) AS previous"
        " FROM marks) AS marks WHERE previous > cast_at"
        f" AND ballot IN (SELECT id FROM ballots WHERE latest <> {NEVER})",
    ),
    Check("marks", 1, "has {} casts", f"SELECT {key_of('marks')}, times FROM marks WHERE times < 1"),
    Check("marks", 1, "has slot {}", f"SELECT {key_of('marks')}, slot FROM marks WHERE slot < 0"),
    Check("marks", 6, "whole is {}", f"SELECT {key_of('marks')}, whole FROM marks WHERE whole NOT IN (0, 1)"),
    Check(
        "marks",
        1,
        "is one of {} entries of one voter for one choice",
        f"SELECT {key_of('marks')}, count(*) FROM marks GROUP BY ballot, voter, choice HAVING count(*) > 1",
    ),
    Check(
        "tallies",
        1,
        "counts {} casts for a choice, but the entries have {}",
        f"SELECT {key_of('tallies')}, count, coalesce(casts, 0) FROM tallies LEFT JOIN ({_CASTS}) AS found"
        " ON found.ballot = tallies.ballot AND found.choice = tallies.choice"
        " WHERE tallies.ballot IN (SELECT id FROM ballots) AND (casts IS NULL OR casts <> count)",
    ),
    Check(
        "tallies",
        1,
        "has no count for a choice that has {} casts",
        f"SELECT (SELECT {key_of('ballots')} FROM ballots WHERE id = found.ballot), casts FROM ({_CASTS}) AS found"
        " WHERE NOT EXISTS (SELECT 1 FROM tallies WHERE ballot = found.ballot AND choice = found.choice)",
    ),
    Check(
        "tallies",
        1,
        "two choices have had casts since the same cast",
        f"SELECT {key_of('tallies')} FROM tallies GROUP BY ballot, since HAVING count(*) > 1",
    ),
    Check(
        "logs",
        1,
        "has no entries, and a log exists only while it has some",
        f"SELECT {key_of('logs')} FROM logs WHERE space IN (SELECT space FROM spaces)"
        " AND NOT EXISTS (SELECT 1 FROM items WHERE log = logs.id)",
    ),
    Check(
        "items",
        1,
        "belongs to namespace {}, but its log to {}",
        f"SELECT {key_of('items')}, items.space, logs.space FROM items JOIN logs ON logs.id = log"
        " WHERE items.space <> logs.space",
    ),
    Check(
        "messages",
        2,
        "the newest has number {}, but sqlite_sequence has {}",
        "SELECT '', newest, noted FROM (SELECT (SELECT max(number) FROM messages) AS newest,"
        " (SELECT max(seq) FROM sqlite_sequence WHERE name = 'messages') AS noted)"
        " WHERE newest IS NOT NULL AND newest IS NOT noted",
    ),
    Check(
        "sqlite_sequence",
        2,
        "has {} rows for the table {}",
        "SELECT '', count(*), name FROM sqlite_sequence GROUP BY name HAVING count(*) > 1 OR name IS NOT 'messages'",
    ),
    Check(
        "messages",
        2,
        "there are {} of the numbers {} to {}",
        "SELECT '', n, first, last FROM (SELECT count(*) AS n, min(number) AS first, max(number) AS last FROM messages)"
        " WHERE n > 0 AND n <> last - first + 1",
    ),
    Check(
        "messages",
        2,
        f"there are {{}}, and {MAX_ROWS} are kept",
        f"SELECT '', n FROM (SELECT count(*) AS n FROM messages) WHERE n > {MAX_ROWS}",
    ),
)
