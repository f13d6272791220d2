"""The backend as a program. Fixtures of pytest test one in any language."""

import os
import subprocess
from pathlib import Path

import pytest

BACKEND = Path(__file__).parents[2] / "backend.mjs"


def close_round(extcli):
    """Run the backend in the namespace of the test, and return what it prints."""
    settings = {"BACKEND_URL": extcli.url, "BACKEND_AUTHORIZATION": extcli.backend.headers()["Authorization"]}
    run = subprocess.run(["node", BACKEND], env=os.environ | settings, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_the_option_with_the_most_votes_wins(extcli):
    for user, value in ("U1", 1), ("U2", 1), ("U3", 0):
        extcli.viewer(user).vote("boss", value)

    assert close_round(extcli) == "Golem"
    assert extcli.viewer().store("channel_state") == {"winner": "Golem"}


def test_a_tie_has_no_winner(extcli):
    extcli.viewer("U1").vote("boss", 0)
    extcli.viewer("U2").vote("boss", 2)

    assert close_round(extcli) == "a tie"


def test_pages_hear_of_the_end_of_the_round(extcli):
    events = extcli.listen("round-over")
    extcli.viewer().vote("boss", 2)

    close_round(extcli)

    assert events.next().data == {"winner": "Hydra"}


@pytest.mark.extcli(seed="evening.toml")
def test_the_next_round_begins_without_votes(extcli):
    assert close_round(extcli) == "Dragon"

    extcli.wait.poll("boss", count="=0", timeout=0)
    assert close_round(extcli) == "a tie"


def test_votes_of_last_week_do_not_count(extcli):
    extcli.viewer("U1").vote("boss", 0)
    extcli.clock.advance("7d1h")
    extcli.viewer("U2").vote("boss", 1)

    assert close_round(extcli) == "Golem"
