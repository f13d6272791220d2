"""When a refused request is sent again: what `Retry-After` asks for, and the pauses without it."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from extcli import clock
from extcli.api.call import SHORTEST_PAUSE, pause, retry, retry_after
from extcli.errors import Refused


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("1", 1), (" 60 ", 60), ("99999", 99_999), ("0", 0), ("soon", None), ("-1", None), ("", None), (None, None)],
)
def test_retry_after_is_a_number_of_seconds(header: str | None, seconds: float | None):
    assert seconds == retry_after(header)


def test_retry_after_may_be_a_date():
    asked = retry_after(formatdate(clock.now() / 1000 + 30, usegmt=True))

    assert asked is not None
    assert 0 < asked <= 30
    assert 0 == retry_after(formatdate(clock.now() / 1000 - 30, usegmt=True))


def test_a_pause_is_never_shorter_than_the_floor():
    assert all(SHORTEST_PAUSE <= pause("0") <= 2 * SHORTEST_PAUSE for _ in range(100))
    assert all(60 <= pause("60") <= 60 + SHORTEST_PAUSE for _ in range(100))


@pytest.mark.parametrize(("attempts", "middle"), [(0, 0.5), (1, 1.0), (3, 4.0), (9, 8.0), (10_000, 8.0)])
def test_pauses_without_retry_after_double_up_to_eight_seconds(attempts: int, middle: float):
    assert all(0.75 * middle <= pause(None, attempts) <= 1.25 * middle for _ in range(100))


def test_a_call_is_repeated_as_retry_after_says_until_no_time_is_left(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(clock, "elapsed", lambda: now[0])
    monkeypatch.setattr(clock, "sleep", lambda seconds: now.append(now.pop() + seconds))
    called: list[float] = []

    def call() -> None:
        called.append(now[0])
        error = Refused("GET /v1/e/vote", 429, b"")
        error.retry_after = "20"
        raise error

    with pytest.raises(Refused):
        retry(call, 50)

    assert [100, 120, 140] == [round(at) for at in called]
