"""Times on the command line: RFC 3339, a duration from now, or Unix time (operations.md)."""

from __future__ import annotations

import pytest

from extcli.errors import UsageError
from extcli.output import times

NOW = 1_900_000_000_000


def instant(text: str, *, ago: bool = False) -> int:
    return times.parse_instant(text, lambda: NOW, ago=ago)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2030-03-17T17:46:40Z", NOW),
        ("2030-03-17t17:46:40z", NOW),
        ("2030-03-17 17:46:40.250Z", NOW + 250),
        ("2030-03-17T18:46:40+01:00", NOW),
        ("90s", NOW + 90_000),
        ("+1h30m", NOW + 5_400_000),
        ("-5m", NOW - 300_000),
        ("1900000000", NOW),
        ("1900000000.25", NOW + 250),
        ("1900000000000", NOW),
        ("99999999999", 99_999_999_999_000),
        ("100000000000", 100_000_000_000),
        ("0", 0),
        ("-5", -5_000),
        *(("20261224.0", 20_261_224_000), ("20261324", 20_261_324_000), ("2026122418", 2_026_122_418_000)),
    ],
)
def test_an_instant_is_rfc_3339_a_duration_or_unix_time(text, ms):
    assert ms == instant(text)


@pytest.mark.parametrize(("text", "ms"), [("5m", NOW - 300_000), ("-5m", NOW - 300_000), ("+5m", NOW + 300_000)])
def test_a_duration_of_an_option_that_looks_back_is_in_the_past(text, ms):
    assert ms == instant(text, ago=True)


@pytest.mark.parametrize("text", ["", "tomorrow", "5 parsecs", "--5m", "2030-13-01", "1e12", "٣", "9" * 400])
def test_an_invalid_instant_shows_all_forms(text):
    with pytest.raises(UsageError) as caught:
        instant(text)

    assert all(form in caught.value.fix for form in ("2026-11-22T18:00:00Z", "2026-11-22 18:00", "5m", "Unix"))


@pytest.mark.parametrize(("ms", "text"), [(NOW, "17:46:40.000"), (NOW + 5, "17:46:40.005"), (10**20, "1" + "0" * 20)])
def test_a_time_of_day_is_shown_to_the_millisecond(ms, text):
    assert text == times.time_of_day(ms)


def test_an_absolute_time_does_not_read_the_clock():
    def now() -> int:
        raise AssertionError("read")

    assert [NOW, NOW] == [times.parse_instant(text, now) for text in ("1900000000", "2030-03-17T17:46:40Z")]


@pytest.mark.parametrize(("ms", "text"), [(NOW, "2030-03-17 17:46:40Z"), (NOW + 7, "2030-03-17 17:46:40.007Z")])
def test_an_instant_is_shown_in_utc_to_the_millisecond_if_it_has_a_fraction(ms: int, text: str):
    assert text == times.utc_text(ms)
