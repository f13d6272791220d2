"""Things that end leave nothing behind: polls, namespaces, PINs, connections."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.clock import DAY
from emulator.core.settings import Settings
from support.process import wait_until
from support.service import CHANNEL, Client, LiveServer, live_server
from support.socket_client import linked_game
from support.socket_polls import create, statuses, subscribe, vote


def rows_of(path: Path) -> dict[str, int]:
    """Return the number of rows of each table that is not empty, except of messages, of which the newest are kept."""
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        counts = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    return {name: count for name, count in counts.items() if count and name not in ("messages", "sqlite_sequence")}


def test_a_poll_that_is_open_for_longer_than_an_unused_one_lives_reports_its_end(live: LiveServer):
    live.freeze()
    with linked_game(live) as game:
        create(game, config={"endsIn": 10 * DAY // 1000})
        subscribe(game)
        live.advance(6 * DAY)
        vote(live, "1", 1)
        assert ["active"] == statuses(game, 1)

        live.advance(5 * DAY)

        assert "expired" == game.update()["data"]["poll"]["status"]


@pytest.mark.slow
def test_dropped_namespaces_leave_no_row_in_the_file(tmp_path: Path):
    path = tmp_path / "data.db"
    with live_server(Settings(data=f"sqlite://{path}")) as live:
        live.run(live.service.control.sweep())
        before = rows_of(path)
        for number in range(20):
            url = f"{live.url}/_ns/n{number}"
            Client().post(f"{url}/v1/e/pin", headers={"Authorization": "my-extension x"})
            Client().get(f"{url}/_emulator/clock").raise_for_status()
            Client().delete(url).raise_for_status()
        live.run(live.service.control.sweep())

        assert before == rows_of(path)


def own_objects() -> Counter[str]:
    """Return how many objects of each class of the service and of its server exist."""
    modules = ("emulator", "uvicorn")
    classes = (type(each) for each in gc.get_objects())
    return Counter(each.__qualname__ for each in classes if str(each.__module__).startswith(modules))


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Free only what nothing refers to: circles of objects stay, as between two collections of garbage."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
def test_objects_of_the_service_end_with_what_they_serve(live: LiveServer, uncollected: None):
    broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    header = {"Authorization": broadcaster.headers["Authorization"]}
    anyone = Client()

    def churn(times: int) -> Counter[str]:
        for number in range(times):
            with linked_game(live) as game:
                create(game, f"p{number}", config={"endsIn": 3600})
                subscribe(game, f"p{number}")
            broadcaster.delete(f"vote?id=p{number}").raise_for_status()
            namespace = f"{live.url}/_ns/n{number}"
            anyone.post(f"{namespace}/v1/e/vote", json={"value": 1}, headers=header).raise_for_status()
            anyone.delete(namespace).raise_for_status()
            with Client() as leaving:
                assert 401 == leaving.get(f"{live.url}/v1/e/vote").status_code
        live.advance(DAY)
        live.service.changes.forget()  # it keeps the keys of the latest changes
        live.service.journal.clear()  # it keeps the callers of the latest requests
        return own_objects()

    async def forget_cancelled_timers() -> None:
        """A cancelled timer keeps its context until it is due, or until asyncio finds over 100 of them."""
        loop = asyncio.get_running_loop()
        for _ in range(1_000):
            loop.call_later(DAY, str).cancel()
        await asyncio.sleep(0)

    def left() -> Counter[str]:
        """What leaks, leaks in every round. A few objects may belong to a request that is just ending."""
        live.run(forget_cancelled_timers())
        return Counter({name: more for name, more in (own_objects() - first).items() if more > 10})

    first = churn(5)
    churn(20)

    wait_until(lambda: not left(), left)
