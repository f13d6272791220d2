"""A call about codes that is refused, or repeats a member, leaves nothing in storage until the codes expire."""

from __future__ import annotations

from collections import Counter

import pytest

from emulator.storage.records import ListRecord, RosterRecord
from support.service import Client, LiveServer


def stored(live: LiveServer) -> tuple[int, int]:
    """Return the number of stored lists of codes, and of rosters of users."""

    async def count() -> Counter[type]:
        pages = live.service.engine.dump(now=live.service.clock.now())
        return Counter([type(record) async for page in pages for record in page])

    found = live.run(count())
    return found[ListRecord], found[RosterRecord]


@pytest.fixture(autouse=True)
def sets(backend: Client) -> None:
    """One list that is in use, and one roster of a grant."""
    backend.put("codes", json={"codes": [["A1", "A2"]], "names": ["Hat"]}).raise_for_status()
    grant = {"prizes": [0], "prize_limits": [1], "users": ["5551"]}
    backend.post("codes/mark_from_list", json=grant).raise_for_status()


@pytest.mark.parametrize(
    ("body", "status", "left"),
    [
        ('{"codes":[["B1"],["B2"]],"names":["Cap"],"indices":[1],"codes":[["B3"]]}', 200, (2, 1)),
        ('{"codes":[["B1"]],"codes":[["B2"]],"names":[""]}', 400, (1, 1)),
    ],
)
def test_an_upload_that_is_refused_or_repeats_a_member_leaves_no_list(live, backend: Client, body, status, left):
    assert (status, left) == (backend.put("codes", content=body).status_code, stored(live))


@pytest.mark.parametrize(
    ("body", "status", "left"),
    [
        ('{"users":["1","2"],"users":["3"],"prizes":[0],"prize_limits":[2]}', 200, (1, 2)),
        ('{"users":["1"],"prizes":[7],"prize_limits":[1]}', 400, (1, 1)),
        ('{"users":["1"],"prizes":[0]}', 400, (1, 1)),
        ('{"users":[%s""],"prizes":[0],"prize_limits":[1]}' % ('"1",' * 20_000), 400, (1, 1)),
    ],
    ids=["repeated", "prize", "limits", "user"],
)
def test_a_grant_that_is_refused_or_repeats_a_member_leaves_no_roster(live, backend: Client, body, status, left):
    assert (status, left) == (backend.post("codes/mark_from_list", content=body).status_code, stored(live))
