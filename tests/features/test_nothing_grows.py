"""Things that end leave nothing behind: polls, namespaces, PINs, connections."""

from __future__ import annotations

import asyncio
import gc
import re
import sqlite3
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from emulator.clock import DAY, HOUR, WEEK
from emulator.config.settings import Limits, Settings
from support.process import wait_until
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer, live_server
from support.socket_client import linked_game
from support.socket_polls import create, statuses, subscribe, vote

FAR = 3_000_000_000
"""Unix seconds, decades ahead."""


def rows_of(path: Path) -> dict[str, int]:
    """Return the number of rows of each table that is not empty, except of messages, of which the newest are kept."""
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        counts = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    return {name: count for name, count in counts.items() if count and name not in ("messages", "sqlite_sequence")}


def test_an_expired_poll_leaves_no_timer_however_late_it_would_close(live: LiveServer):
    broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    for number in range(20):
        config = {"prompt": "?", "options": ["a"], "endsAt": FAR}
        broadcaster.post("vote_config", json={"id": f"p{number}", "config": config}).raise_for_status()
    timers = live.service.scheduler

    before = len(timers)
    live.advance(WEEK + DAY)

    assert (20, 0) == (before, len(timers))


def test_ids_that_were_recorded_long_ago_are_forgotten(live: LiveServer):
    live.freeze()
    for number in range(20):
        vote(live, "1", 1, f"p{number}")
    live.advance(HOUR)

    vote(live, "1", 1, "p0")

    assert ["p0"] == [key.name for key in live.service._id_quota._recorded]


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


def test_the_end_of_a_poll_stays_scheduled_while_it_is_in_use(live: LiveServer):
    live.freeze()
    with linked_game(live) as game:
        create(game, config={"endsIn": 10 * DAY // 1000})
    live.advance(6 * DAY)
    vote(live, "1", 1)
    live.advance(2 * DAY)
    before = len(live.service.scheduler)

    live.advance(3 * DAY)

    assert (1, 0) == (before, len(live.service.scheduler))


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


@pytest.mark.slow
def test_connections_and_namespaces_that_end_leave_no_task(tmp_path: Path):
    with live_server(Settings(data=f"sqlite://{tmp_path}/data.db")) as live:

        def tasks() -> int:
            text = Client().get(f"{live.url}/_emulator/metrics").text
            (found,) = re.findall(r"(?m)^emulator_tasks (\S+)", text)
            return int(float(found))

        before = tasks()
        for number in range(10):
            Client().get(f"{live.url}/_ns/n{number}/_emulator/clock").raise_for_status()
            with linked_game(live):
                pass
        during = tasks()
        for number in range(10):
            Client().delete(f"{live.url}/_ns/n{number}").raise_for_status()

        assert during >= before + 10
        wait_until(lambda: tasks() <= before, tasks)  # a short task may run during a scrape


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
    churn(40)

    wait_until(lambda: not left(), left)


def sizes_of(root: object) -> dict[int, int]:
    """Return the number of items of every collection that is reachable from an object, by its identity."""
    sizes: dict[int, int] = {}
    seen, waiting = {id(root)}, [root]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (dict, set, list, deque)):
            sizes[id(each)] = len(each)
        for other in gc.get_referents(each):
            if id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)
    return sizes


@pytest.mark.slow
@pytest.mark.long
def test_a_crowd_of_new_voters_fills_nothing_beyond_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for limit in (
        "changes.KEPT",
        "features.identity.directory._MAX_RECORDED",
        "engines.sqlite.documents._MAX_PEEKED",
        "engines.sqlite.ballot_cache.MAX_HELD",
        "limits.id_quota._MAX_CACHED",
        "limits.rate_limit._SWEEP_SIZE",
        "auth.tokens._MAX_CACHED",
    ):
        monkeypatch.setattr(f"emulator.{limit}", 100)
    settings = Settings(
        data=f"sqlite://{tmp_path}/data.db", limits=Limits(caller_rate=1_000, client_rate=100_000), journal=100_000
    )
    with live_server(settings) as live, live.client("viewer") as client:

        def vote(number: int) -> None:
            user = {"user_id": str(number), "opaque_user_id": f"U{number}"} if number % 2 else {"user_id": str(number)}
            token = jwt.encode({"role": "viewer", "channel_id": CHANNEL, **user}, SECRET)
            header = {"Authorization": f"{CLIENT_ID} {token}"}
            client.post(f"vote?id=p{number % 50}", json={"value": 1}, headers=header).raise_for_status()

        for number in range(1_000):
            vote(number)
        before = sizes_of(live.service)
        for number in range(1_000, 2_000):
            vote(number)
        between = sizes_of(live.service)
        for number in range(2_000, 3_000):
            vote(number)
        after = sizes_of(live.service)

        # Twice: modules that are imported meanwhile have large tables, but those do not grow.
        assert [] == [
            size for each, size in after.items() if size - 500 > between.get(each, 0) > before.get(each, 0) + 500
        ]
