"""Times, sizes and texts of the dashboard."""

from __future__ import annotations

import pytest

from emulator.core.clock import DAY, HOUR, MINUTE
from emulator.dashboard import texts

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0 s"), (999, "0 s"), (59_999, "59 s"), (MINUTE, "1 min"), (MINUTE + 1_500, "1 min 1 s"),
     (3 * HOUR + 20 * MINUTE, "3 h 20 min"), (DAY, "1 d"), (-2 * DAY - 5 * HOUR, "2 d 5 h")],
)  # fmt: skip
def test_a_duration_has_its_largest_two_units(ms: int, shown: str):
    assert shown == texts.duration(ms)


@pytest.mark.parametrize(("count", "shown"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (16 << 20, "16.0 MiB")])
def test_a_size_has_the_unit_that_fits(count: int, shown: str):
    assert shown == texts.size(count)


@pytest.mark.parametrize(
    ("given", "shown"),
    [("<script>", "<bdi>&lt;script&gt;</bdi>"), ('"', "<bdi>&#34;</bdi>"), ("\u202eabc", "<bdi>\u202eabc</bdi>")],
)
def test_a_text_of_a_client_is_escaped_and_isolated(given: str, shown: str):
    assert shown == texts.text(given)


@pytest.mark.parametrize(
    ("given", "shown"),
    [('{"a":["b"],"c":[0,-1]}', '{\n  "a": [\n    "b"\n  ],\n  "c": [0, -1]\n}'), ("{", "{"),
     ("no JSON", "no JSON"), ("[" * 41 + "]" * 41,) * 2,
     ("[" * 30_000,) * 2, ("", "")],
)  # fmt: skip
def test_json_is_indented_unless_it_is_nested_deeply(given: str, shown: str):
    assert shown == texts.pretty(given)


def test_quoted_texts_cannot_reorder_the_text_around_them():
    assert "id <code>\\u202e\\u2066x</code>" == texts.prose("id `\u202e\u2066x`")
    assert '{\n  "a": "\\u202ex"\n}' == texts.pretty('{"a":"\u202ex"}')
    assert "no JSON \\u202e" == texts.pretty("no JSON \u202e")


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01 00:00:00.000 UTC"),
        (253_402_300_799_999, "9999-12-31 23:59:59.999 UTC"),
        (253_402_300_800_000, "after the year 9999"),
    ],
)
def test_an_instant_at_the_end_of_the_calendar_is_shown(at: int, text: str):
    assert text == texts.instant(at)
