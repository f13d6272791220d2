"""Pages of listings: where a page starts, and the cursor of the next one."""

from __future__ import annotations

import pytest

from emulator.core.errors import BadRequest
from emulator.core.keys import Key
from emulator.core.wire.cursors import FIRST, checked_page

GROUP = Key("poll", "client", "", None)


@pytest.mark.parametrize("last", [("777", "a"), ("", "global-x"), ("é\0", '"\n')])
def test_a_page_starts_after_the_last_record_of_the_previous_page(last: tuple[str, str]):
    found = [GROUP._replace(channel=channel, name=name) for channel, name in (("1", "a"), last, ("z", "z"))]

    cursor = checked_page(2, FIRST).next(found)

    assert found[1] == checked_page(2, cursor).after(GROUP)


@pytest.mark.parametrize("cursor", ["1", "zz", "00", b"[1,2]".hex(), b'["a"]'.hex(), b'["a","b","c"]'.hex(), "ff"])
def test_a_malformed_cursor_is_refused(cursor: str):
    with pytest.raises(BadRequest):
        checked_page(1, cursor).after(GROUP)


@pytest.mark.parametrize("limit", [0, 1001])
def test_a_limit_outside_1_to_1000_is_refused(limit: int):
    with pytest.raises(BadRequest):
        checked_page(limit, FIRST)
