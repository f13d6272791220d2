"""Every table fits a terminal of 80 and of 200 columns, and at 40 columns nothing breaks. The data have long names."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from support.profile_files import write_profiles

LONG = "a-name-" + "x" * 57
"""As long as a poll's id may be."""
TEXTS = [
    "Which of the many teams that play tonight will win? " * 2,
    "日本語のとても長い文章です。" * 3,
    "👍 " * 25,
    "n" * 120,
]
"""As long as an option may be."""

FILLED_BY = [
    ("vote", "define", LONG, "--prompt", TEXTS[0], *(f"--option={each}" for each in TEXTS), "--ends-in", "2d"),
    *(("vote", "cast", LONG, "--value", str(value), "--as", f"viewer:{LONG}{value}") for value in (0, 1, 2)),
    ("vote", "cast", "short", "--value=-5", "--channel", "1002"),
    *(("rank", "submit", LONG, f"--key={text}", "--as", f"viewer:U{at}") for at, text in enumerate(TEXTS)),
    *(("accumulate", "add", LONG, json.dumps({"text": text})) for text in TEXTS),
    ("state", "set", "channel", json.dumps({LONG: TEXTS}), "--yes"),
    ("store-config", "set", "channel", json.dumps({LONG: TEXTS})),
    ("json-store", "set", LONG, json.dumps({LONG: TEXTS})),
    ("trivia", "define", LONG, f"--name={TEXTS[1]}"),
    ("trivia", "define-option", LONG, "red", f"--name={TEXTS[2]}"),
    ("trivia", "move", LONG, "unlocked"),
    ("trivia", "join"),
    ("bits", "purchase", LONG, "--id", LONG, "--buyer", TEXTS[1][:40]),
    ("codes", "mark-from-list", "U1", "--prize", "0"),
]
TABLES = """
vote get LONG; vote get short --channel 1002; vote list; vote logs LONG; vote config LONG; rank get LONG; rank list
accumulate get LONG; accumulate list; state get channel; state all; store-config get channel; json-store get LONG
trivia list; trivia get LONG; trivia leaderboard; trivia team; bits list; user list; user info; codes list
codes eligible; codes redeemed; token list; clock now; ns list; profile list; profile show LONG
config list --show-origin; extension list; pin status; doctor
"""


@pytest.fixture
def filled(extcli, lines, folder):
    """A service with data of every kind, two profiles and two registered extensions."""
    write_profiles(**{LONG: {"url": f"http://{LONG}.example:8282", "production": True}, "b": {"channel": "1"}})
    upload = ("codes", "upload", "--set", f"{TEXTS[0][:60]}={lines('A-1', 'A-2')}", "--yes")
    for command in (*FILLED_BY[:-1], upload, FILLED_BY[-1], ("extension", "init", "--owner", "7"), ("token", "list")):
        result = extcli(*command)
        assert 0 == result.exit_code, (command, result.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_tables_fit_the_terminal(extcli, filled, columns):
    for command in map(str.strip, TABLES.strip().replace("\n", ";").split(";")):
        result = extcli(*command.replace("LONG", LONG).split(), "-o", "table", env={"COLUMNS": str(columns)})

        assert result.exit_code in (0, 7), (command, result.stderr)
        assert "Traceback" not in result.stderr
        if columns >= 80:
            assert [] == [line for line in result.stdout.splitlines() if cell_len(line) > columns], command


@pytest.mark.parametrize("columns", [80, 200])
def test_a_long_option_leaves_the_numbers_of_a_poll_readable(extcli, filled, columns):
    shown = extcli("vote", "get", LONG, "-o", "table", env={"COLUMNS": str(columns)}).stdout

    assert 3 == shown.count("33.3%")
    assert 3 == shown.count("█████████▍")
    assert "closes at " in shown.splitlines()[-1]
