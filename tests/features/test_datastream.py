"""The datastream: how its bytes are counted and limited. `tests/surface/games.py` models the rest."""

from __future__ import annotations

import json

from emulator.core.environment import STRICT
from emulator.core.extensions import Extension
from emulator.core.settings import Limits, Settings
from support.service import CHANNEL, CLIENT_ID, SECRET, LiveServer, live_server, real_seconds


def test_the_size_of_an_event_is_that_of_compact_json(viewer):
    viewer().post("datastream", content=json.dumps(["x" * 4_092], indent=20)).raise_for_status()


def statuses(live: LiveServer, number: int, role: str = "viewer", user: str = "1") -> list[int]:
    """Post as many events of 4 KiB, and return the statuses."""
    caller = live.client(role, user=user, channel=CHANNEL, exp=real_seconds() + 600)
    return [caller.post("datastream", json="x" * 4_090).status_code for _ in range(number)]


def test_a_caller_has_a_number_of_bytes_a_second():
    settings = Settings(STRICT, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}, limits=Limits(caller_rate=20))
    with live_server(settings) as live:
        live.freeze()  # a clock that stands still ends no limit of real time
        first = statuses(live, 10)
        caller = live.client("viewer", user="1", channel=CHANNEL, exp=real_seconds() + 600)
        refused = caller.post("datastream", json="x" * 4_090)

        assert [200] * 6 == first[:6]
        assert 429 in first
        assert (429, "Too many requests") == (refused.status_code, refused.json()["reason"])
        assert "more than 5120 bytes a second of datastream events from this caller" in refused.json()["info"]
        assert int(refused.headers["Retry-After"]) >= 1
        assert [200] * 5 == statuses(live, 5, user="2")
        assert [200] * 40 == [*statuses(live, 20, "admin"), *statuses(live, 20, "backend")]
        assert 200 == caller.get("vote").status_code


def test_the_largest_event_is_accepted_at_the_lowest_rate():
    settings = Settings(STRICT, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}, limits=Limits(caller_rate=1))
    with live_server(settings) as live:
        assert [200, 429] == statuses(live, 2)


def test_the_sandbox_accepts_more_and_says_what_production_would_do(live: LiveServer):
    caller = live.client("viewer", user="1", channel=CHANNEL, exp=real_seconds() + 600)
    answers = [caller.post("datastream", json="x" * 4_090) for _ in range(60)]

    assert {200} == {each.status_code for each in answers}
    assert "refuse; rule=caller-rate" in {each.headers.get("X-Emulator-Production") for each in answers}
