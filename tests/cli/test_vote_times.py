"""`extcli vote define` with fractions of a second."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("given", "seconds"), [("1ms", 1), ("500ms", 1), ("1500ms", 2), ("2s", 2)])
def test_fractions_of_a_second_are_rounded_up(extcli, live, given, seconds):
    live.set(1_900_000_000_000)

    extcli("vote", "define", "opening", "--options", "A,B", "--starts-in", given)
    extcli("vote", "define", "closing", "--options", "A,B", "--ends-in", given)

    assert 1_900_000_000 + seconds == extcli("vote", "define", "opening", "--show", "-o", "json").json["startsAt"]
    assert 1_900_000_000 + seconds == extcli("vote", "define", "closing", "--show", "-o", "json").json["endsAt"]
