"""Pages of listings: where a page starts, and the cursor of the next one."""

from __future__ import annotations

import pytest

from emulator.core.errors import BadRequest
from emulator.core.keys import Key
from emulator.core.wire.cursors import FIRST, page_request

GROUP = Key("poll", "client", "", None)


async def listing(group: Key, *, now: int, limit: int, after: Key | None) -> list[tuple[Key]]:
    """List three records. They are not in order here, so a page starts after the place of `after`."""
    first = 0 if after is None else FOUND.index((after,)) + 1
    return FOUND[first : first + limit]


FOUND = [
    (GROUP._replace(channel=channel, name=name),) for channel, name in (("777", "a"), ("", "global-x"), ("é\0", '"\n'))
]


@pytest.mark.parametrize("size", [1, 2])
async def test_a_page_starts_after_the_last_record_of_the_previous_page(size: int):
    found, cursor = [], FIRST
    while cursor != FIRST or not found:
        page, cursor = await page_request(size, cursor).read(listing, GROUP, now=0)
        assert 1 <= len(page) <= size
        found += page

    assert FOUND == found


async def test_a_full_page_is_the_last_one_if_nothing_follows():
    assert (FOUND, FIRST) == await page_request(3, FIRST).read(listing, GROUP, now=0)


@pytest.mark.parametrize("cursor", ["1", "zz", "00", b"[1,2]".hex(), b'["a"]'.hex(), b'["a","b","c"]'.hex(), "ff"])
async def test_a_malformed_cursor_is_refused(cursor: str):
    with pytest.raises(BadRequest):
        await page_request(1, cursor).read(listing, GROUP, now=0)


@pytest.mark.parametrize("limit", [0, 1001])
def test_a_limit_outside_1_to_1000_is_refused(limit: int):
    with pytest.raises(BadRequest):
        page_request(limit, FIRST)
