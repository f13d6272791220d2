"""The record of changes: marks, what is kept, and who is woken."""

from __future__ import annotations

from itertools import count

import pytest

from emulator.changes import KEPT, NO_CHANGES, Changes
from emulator.engines.base import Key

POLL = Key("poll", "ext", "lunch", "777")
RANKING = Key("rank", "ext", "colour", "777")


@pytest.fixture
def changes() -> Changes:
    times = count(100)
    return Changes(lambda: next(times))


def anything(key: Key) -> bool:
    return True


def test_each_change_has_a_higher_mark(changes: Changes):
    before = changes.mark
    changes.note(POLL, "vote", "U1", 3)
    changes.note(RANKING, "answer", "U1", "blue")

    marks = [*changes.latest("poll", 3), *changes.latest("rank", 3)]

    assert [before + 1, before + 2] == [each.mark for each in marks]
    assert before + 2 == changes.mark


def test_changes_of_one_kind_do_not_push_out_those_of_another(changes: Changes):
    changes.note(RANKING, "answer", "U1", "blue")
    for value in range(KEPT + 5):
        changes.note(POLL, "vote", "U1", value)

    assert ["blue"] == [each.value for each in changes.latest("rank", 3)]
    assert [KEPT + 3, KEPT + 4] == [each.value for each in changes.latest("poll", 2)]
    assert KEPT == len(changes.since(0, "poll", anything))


def test_a_mark_is_too_old_once_a_later_change_was_pushed_out(changes: Changes):
    mark = changes.mark
    for _ in range(KEPT):
        changes.note(POLL, "vote")
    assert changes.keeps_since(mark, "poll")

    changes.note(POLL, "vote")

    assert (False, True) == (changes.keeps_since(mark, "poll"), changes.keeps_since(mark + 1, "poll"))


def test_a_reset_empties_the_record_and_keeps_the_mark_rising(changes: Changes):
    changes.note(POLL, "vote")
    before = changes.mark

    changes.forget()

    assert ([], True) == (changes.latest("poll", 3), changes.mark > before)


async def test_a_change_wakes_only_those_who_watch_its_kind(changes: Changes):
    with changes.watching("poll") as polls, changes.watching("rank") as rankings:
        changes.note(POLL, "vote")

        assert (True, False) == (polls.is_set(), rankings.is_set())


async def test_nothing_is_left_of_a_watch_that_has_ended(changes: Changes):
    with changes.watching("poll"), changes.watching("poll"):
        pass

    assert {} == changes._watches


def test_production_keeps_no_record():
    NO_CHANGES.note(POLL, "vote")
    NO_CHANGES.forget()

    assert (0, []) == (NO_CHANGES.mark, NO_CHANGES.latest("poll", 3))
