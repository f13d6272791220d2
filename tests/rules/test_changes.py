"""The record of changes after a reset."""

from __future__ import annotations

from itertools import count

from emulator.core.changes import Change, Changes
from emulator.core.keys import Key


def test_no_mark_from_before_a_reset_is_kept_and_marks_go_on_rising():
    changes = Changes(count(100).__next__)
    before = changes.mark
    changes.note(Change(Key("poll", "ext", "lunch", "777"), "vote"))
    last = changes.mark

    changes.forget()

    assert (False, []) == (changes.keeps_since(before, "poll"), changes.latest("poll", 3))
    assert changes.mark > last
