"""A call about codes that is refused, or repeats a member, leaves nothing in storage until the codes expire."""

from __future__ import annotations

from collections import Counter

import pytest

from emulator.engines.records import ListRecord, RosterRecord
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


def test_a_repeated_member_of_an_upload_leaves_no_list(live: LiveServer, backend: Client):
    answer = backend.put("codes", content='{"codes":[["B1"],["B2"]],"names":["Cap"],"indices":[1],"codes":[["B3"]]}')

    assert (200, (2, 1)) == (answer.status_code, stored(live))


def test_a_refused_upload_leaves_no_list(live: LiveServer, backend: Client):
    answer = backend.put("codes", content='{"codes":[["B1"]],"codes":[["B2"]],"names":[""]}')

    assert (400, (1, 1)) == (answer.status_code, stored(live))


def test_a_repeated_member_of_a_grant_leaves_no_roster(live: LiveServer, backend: Client):
    body = '{"users":["1","2"],"users":["3"],"prizes":[0],"prize_limits":[2]}'
    answer = backend.post("codes/mark_from_list", content=body)

    assert (200, (1, 2)) == (answer.status_code, stored(live))


@pytest.mark.parametrize("body", ['{"users":["1"],"prizes":[7],"prize_limits":[1]}', '{"users":["1"],"prizes":[0]}'])
def test_a_refused_grant_leaves_no_roster(live: LiveServer, backend: Client, body: str):
    answer = backend.post("codes/mark_from_list", content=body)

    assert (400, (1, 1)) == (answer.status_code, stored(live))


def test_a_grant_with_an_invalid_user_leaves_no_roster(live: LiveServer, backend: Client):
    users = [*map(str, range(20_000)), ""]
    grant = {"prizes": [0], "prize_limits": [1], "users": users}
    answer = backend.post("codes/mark_from_list", json=grant)

    assert (400, (1, 1)) == (answer.status_code, stored(live))
