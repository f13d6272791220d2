"""How often open pages of the dashboard are rendered."""

from __future__ import annotations

import pytest

from emulator.dashboard.stream import INTERVAL, seconds_until_next_rendering


@pytest.mark.parametrize(
    ("used", "pages", "seconds"),
    [
        (0.0, 1, INTERVAL),
        (0.02, 1, 0.4),
        (0.02, 10, 0.4),
        (0.02, 100, 4.0),
        (5.0, 1, 1.0),
        (5.0, 20, 2.0),
    ],
)
def test_a_page_rests_longer_with_more_work_and_more_pages(used: float, pages: int, seconds: float):
    assert pytest.approx(seconds) == seconds_until_next_rendering(used, pages)


@pytest.mark.parametrize("pages", [1, 10, 50, 200, 1_000])
def test_all_pages_together_leave_most_of_the_processor_to_requests(pages: int):
    used = 0.01

    assert pages * used / seconds_until_next_rendering(used, pages) <= 0.5
