"""The record of changes: marks, what is kept, and who is woken."""

from __future__ import annotations

from itertools import count

import pytest

from emulator.changes import KEPT, NO_CHANGES, Change, Changes, Commits
from emulator.engines.shapes import Key

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
    changes.note(Change(POLL, "vote", "U1", 3))
    changes.note(Change(RANKING, "answer", "U1", "blue"))

    marks = [*changes.latest("poll", 3), *changes.latest("rank", 3)]

    assert [before + 1, before + 2] == [each.mark for each in marks]
    assert before + 2 == changes.mark


def test_changes_of_one_kind_do_not_push_out_those_of_another(changes: Changes):
    changes.note(Change(RANKING, "answer", "U1", "blue"))
    for value in range(KEPT + 5):
        changes.note(Change(POLL, "vote", "U1", value))

    assert ["blue"] == [each.value for each in changes.latest("rank", 3)]
    assert [KEPT + 3, KEPT + 4] == [each.value for each in changes.latest("poll", 2)]
    assert KEPT == len(changes.since(0, "poll", anything))


def test_a_mark_is_too_old_once_a_later_change_was_pushed_out(changes: Changes):
    mark = changes.mark
    for _ in range(KEPT):
        changes.note(Change(POLL, "vote"))
    assert changes.keeps_since(mark, "poll")

    changes.note(Change(POLL, "vote"))

    assert (False, True) == (changes.keeps_since(mark, "poll"), changes.keeps_since(mark + 1, "poll"))


def test_a_reset_empties_the_record_and_keeps_the_mark_rising(changes: Changes):
    changes.note(Change(POLL, "vote"))
    before = changes.mark

    changes.forget()

    assert ([], True) == (changes.latest("poll", 3), changes.mark > before)


async def test_a_change_wakes_only_those_who_watch_its_kind(changes: Changes):
    with changes.watching("poll") as polls, changes.watching("rank") as rankings:
        changes.note(Change(POLL, "vote"))

        assert (True, False) == (polls.is_set(), rankings.is_set())


async def test_nothing_is_left_of_a_watch_that_has_ended(changes: Changes):
    with changes.watching("poll"), changes.watching("poll"):
        pass

    assert {} == changes._watches


def test_production_keeps_no_record():
    NO_CHANGES.note(Change(POLL, "vote"))
    NO_CHANGES.forget()

    assert (0, []) == (NO_CHANGES.mark, NO_CHANGES.latest("poll", 3))


async def test_the_record_has_all_changes_of_a_commit_before_a_listener_runs(changes: Changes):
    commits, told = Commits(changes), []

    async def listener(change: Change) -> None:
        told.append((change.content, len(changes.latest("poll", 3))))

    commits.listen(["poll"], listener)
    await commits.committed(Change(POLL, "written", content=b"1"), Change(POLL, "written", content=b"2"))
    await commits.committed(Change(RANKING, "answer"))

    assert [(b"1", 2), (b"2", 2)] == told


async def test_the_record_of_changes_does_not_keep_written_values(changes: Changes):
    await Commits(changes).committed(Change(POLL, "written", content=b"{}"))

    assert [None] == [each.content for each in changes.latest("poll", 1)]


async def test_production_also_notifies_listeners_of_changes():
    commits, told = Commits(NO_CHANGES), []

    async def listener(change: Change) -> None:
        told.append(change.key)

    commits.listen(["poll"], listener)
    await commits.committed(Change(POLL, "vote"))

    assert [POLL] == told
