"""What a running service does when all its data is replaced (`Control.load`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from emulator.clock import HOUR, MINUTE
from emulator.config.settings import Settings
from emulator.engines.records import DocumentRecord, Record
from emulator.engines.shapes import Key
from emulator.errors import Forbidden
from support.service import CHANNEL, CLIENT_ID, LiveServer, live_server
from support.socket_client import SocketClient, linked_game
from support.socket_polls import create, subscribe, vote

START = 2_000_000_000_000
KEY = Key("signing_key", "", "")


def records(live: LiveServer) -> list[Record]:
    """Everything that the service holds, without its signing key."""

    async def collect() -> list[Record]:
        dump = live.service.engine.dump(now=live.service.clock.now())
        return [record async for page in dump for record in page if record[0] != KEY]

    return live.run(collect())


def load(live: LiveServer, found: Sequence[Record], *, replace: bool = True, **clock: int) -> None:
    async def pages() -> AsyncIterator[Sequence[Record]]:
        yield found

    live.run(live.service.control.load(pages(), replace=replace, **clock))


def result(live: LiveServer, poll: str = "color") -> list[int]:
    viewer = live.client("viewer", user="9", channel=CHANNEL)
    return list(viewer.get("vote", params={"id": poll}).json()["stats"]["specific"])


@pytest.fixture
def game(live: LiveServer) -> Iterator[SocketClient]:
    with linked_game(live) as game:
        yield game


def test_a_load_restores_data_and_clock(live: LiveServer):
    live.set(START)
    for user in ("1", "2"):
        vote(live, user, 1)
    saved, before = records(live), result(live)
    live.reset()
    vote(live, "3", 0)

    load(live, saved, frozen_at=START)

    assert before == result(live)
    assert START == live.now()
    vote(live, "1", 0)
    assert [1, 1] == result(live)[:2]


def test_a_load_without_replacing_leaves_the_clock_and_other_data(live: LiveServer):
    live.set(START)
    vote(live, "1", 1)
    saved = records(live)
    live.reset()
    live.set(START + MINUTE)
    vote(live, "2", 0, "other")

    load(live, saved, replace=False)

    assert (START + MINUTE, 1, 1) == (live.now(), result(live)[1], result(live, "other")[0])


def test_a_clock_with_an_offset_runs_on_after_a_load(live: LiveServer):
    live.set(START)

    load(live, [], offset=HOUR)

    assert HOUR == live._http.get("/_emulator/clock").json()["offset"]


def test_tokens_that_the_service_issued_stay_valid_after_a_load_without_keys(live: LiveServer):
    body = {"app_id": CLIENT_ID, "channel_id": CHANNEL, "role": "viewer", "user_id": "5551"}
    token = live._http.post("/v1/e/authtoken", json=body).raise_for_status().json()["token"]

    load(live, records(live))

    assert 200 == live.bearer(token).get("vote").status_code


def test_the_service_adopts_a_loaded_signing_key(live: LiveServer):
    own = live.service.control._key.value

    load(live, [DocumentRecord(KEY, 1 << 62, b"another key of 32 bytes or longer")])

    assert "another key of 32 bytes or longer" == live.service.control._key.value
    load(live, [DocumentRecord(KEY, 1 << 62, own.encode())])


def test_subscribers_of_a_poll_receive_its_loaded_results_and_later_its_end(live: LiveServer, game: SocketClient):
    live.set(START)
    create(game, config={"endsIn": 60})
    vote(live, "1", 2)
    saved = records(live)
    subscribe(game)
    vote(live, "2", 2)
    assert [0, 0, 2] == game.update()["data"]["results"]

    load(live, saved, frozen_at=START)
    assert [0, 0, 1] == game.update()["data"]["results"]
    live.advance(MINUTE)

    assert "expired" == game.update()["data"]["poll"]["status"]


def test_a_load_that_would_move_a_clock_of_several_processes_is_refused():
    with live_server(Settings(data="sqlite://", has_peers=True)) as live:
        vote(live, "1", 1)
        with pytest.raises(Forbidden):
            load(live, [], offset=HOUR)

        assert 1 == result(live)[1]
