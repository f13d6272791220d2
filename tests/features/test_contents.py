"""What the service holds, over all extensions and channels: `/_emulator/contents` and `/_emulator/clock/next`."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from emulator.feature_list import FEATURES
from support.service import CHANNEL, CLIENT_ID, LiveServer

DAY = 86_400_000
NAMES = tuple(kind.name for kind in FEATURES.kinds)


def read(live: LiveServer, path: str, **query: object) -> Any:
    answer = httpx.get(f"{live.url}/_emulator/{path}", params=query)  # type: ignore[arg-type]
    return answer.raise_for_status().json()


def rows(live: LiveServer, kind: str, **query: object) -> list[dict[str, Any]]:
    return list(read(live, f"contents/{kind}", **query)["rows"])


def upload(live: LiveServer) -> None:
    body = {"names": ["Hat"], "codes": [["Hat-0", "Hat-1", "Hat-2"]]}
    live.client("admin").put("codes", json=body).raise_for_status()


def fill(live: LiveServer) -> None:
    """Store one thing of each kind."""
    viewer, broadcaster, backend = (
        live.client(role, user="5551", channel=CHANNEL) for role in ("viewer", "broadcaster", "backend")
    )
    viewer.post("vote?id=lunch", json={"value": 3}).raise_for_status()
    viewer.post("rank?id=color", json={"key": "blue"}).raise_for_status()
    viewer.post("accumulate?id=ratings", json=5).raise_for_status()
    broadcaster.post("channel_state", json={"round": 1}).raise_for_status()
    broadcaster.post("json_store?id=score", json={"high": 4}).raise_for_status()
    upload(live)
    broadcaster.post("link/pin", json={}).raise_for_status()  # creates a link, too
    purchase = {"transactionReceipt": "", "transactionId": "t1", "sku": "hat"}
    viewer.post("bits/transactions", json=purchase).raise_for_status()
    backend.post("curated_poll_edit", json={"id": "q1", "name": "Who?"}).raise_for_status()


def test_a_row_has_only_the_fields_of_the_list(live: LiveServer):
    now = live.freeze()
    fill(live)

    found = {}
    for kind in NAMES:
        (row,) = rows(live, kind)
        lifetimes = {"polls": 7, "json_stores": 14, "codes": 90, "links": 365, "purchases": 30}
        ends = now + (lifetimes.get(kind, 1) * DAY if kind != "pins" else 300_000)
        assert (now, ends) == (row.pop("latest"), row.pop("expires_at"))
        found[kind] = row

    assert 16 == len(found["pins"].pop("id"))
    assert all(found[kind].pop("size") for kind in ("links", "trivia"))
    assert {
        "polls": {"id": "lunch", "client_id": CLIENT_ID, "channel_id": CHANNEL, "count": 1, "status": "active"},
        "rankings": {"id": "color", "client_id": CLIENT_ID, "channel_id": CHANNEL, "count": 1},
        "buffers": {"id": "ratings", "client_id": CLIENT_ID, "channel_id": CHANNEL, "count": 1},
        "stores": {"id": "channel_state", "client_id": "", "channel_id": CHANNEL, "size": 11},
        "json_stores": {"id": "score", "client_id": CLIENT_ID, "channel_id": CHANNEL, "size": 10},
        "codes": {"id": "0", "client_id": CLIENT_ID, "channel_id": "", "name": "Hat", "count": 0, "left": 3},
        "pins": {"client_id": CLIENT_ID, "channel_id": CHANNEL, "status": "bound"},
        "links": {"id": "link", "client_id": CLIENT_ID, "channel_id": CHANNEL},
        "trivia": {"id": "trivia", "client_id": CLIENT_ID, "channel_id": ""},
        "purchases": {"id": "t1", "client_id": CLIENT_ID, "channel_id": CHANNEL, "user": "5551", "name": "hat"},
    } == found


def test_neither_pins_nor_codes_are_shown(live: LiveServer):
    upload(live)
    pin = httpx.post(f"{live.url}/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()["pin"]
    texts = [
        httpx.get(f"{live.url}/_emulator/{path}").text for path in ("contents/codes", "contents/pins", "clock/next")
    ]

    assert not [text for text in texts if pin in text or "Hat-0" in text]


def test_a_poll_has_its_status_and_no_latest_vote_before_the_first(live: LiveServer):
    live.freeze()
    backend = live.client("backend", channel=CHANNEL)
    backend.post("vote_config?id=later", json={"config": {"startsIn": 60}}).raise_for_status()
    backend.post("vote_config?id=over", json={"config": {"endsIn": 60}}).raise_for_status()

    live.advance(61_000)

    assert [("later", "active", 0), ("over", "expired", 0)] == [
        (row["id"], row["status"], row["latest"]) for row in rows(live, "polls")
    ]


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "201"}, {"limit": "x"}, {"cursor": "x"}, {"cursor": "5b5d"}]
)
def test_a_list_refuses_a_wrong_limit_or_cursor(live: LiveServer, query: dict[str, str]):
    answer = httpx.get(f"{live.url}/_emulator/contents/polls", params=query)

    assert 400 == answer.status_code
    assert next(iter(query)) in answer.text


def test_upcoming_expiries_are_those_that_a_move_of_the_clock_reports_soonest_first(live: LiveServer):
    now = live.freeze()
    fill(live)

    coming = read(live, "clock/next")
    first = read(live, "clock/next", limit=1)["next"]
    expired = live.advance(400 * DAY)

    pin, *others = coming["next"]
    assert (now, "pin", now + 300_000, CLIENT_ID) == (coming["now"], pin["kind"], pin["at"], pin["client_id"])
    assert 16 == len(pin["id"])  # of 64 characters
    assert [
        *[("accumulate", 1), ("channel_state", 1), ("rank", 1), ("trivia", 1), ("poll", 7), ("json_store", 14)],
        *[("outstanding", 30), ("transaction", 30), ("codes", 90), ("link", 365)],
    ] == [(each["kind"], (each["at"] - now) // DAY) for each in others]
    assert [pin] == first
    assert [(each["kind"], each["at"]) for each in coming["next"]] == [(each["kind"], each["at"]) for each in expired]
    assert [] == read(live, "clock/next")["next"]
