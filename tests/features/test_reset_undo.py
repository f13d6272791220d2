"""A reset that can be undone for a while."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.core.settings import Settings
from engines.redis_server import RedisServer
from support.pages import following, main_of
from support.service import Client, LiveServer, live_server

START = 2_000_000_000_000


@pytest.fixture(params=["memory", "file"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveServer]:
    """A service in memory, then one on a file."""
    data = "sqlite://" if request.param == "memory" else f"sqlite://{tmp_path}/data.db"
    with live_server(Settings(data=data)) as live:
        yield live


def control(live: LiveServer) -> Client:
    return Client(base_url=live.url)


def votes(live: LiveServer) -> int:
    return int(live.client("viewer", user="1", channel="777").get("vote").raise_for_status().json()["stats"]["count"])


def vote(live: LiveServer, user: str) -> None:
    live.client("viewer", user=user, channel="777").post("vote", json={"value": 1}).raise_for_status()


def reset(live: LiveServer, seconds: int = 60) -> dict[str, Any]:
    return dict(control(live).post("/_emulator/reset", params={"undo": seconds}).raise_for_status().json())


def test_undo_brings_back_data_tokens_and_clock_in_place_of_what_was_written_since(service: LiveServer):
    service.set(START)
    vote(service, "1")
    body = {"app_id": "my-extension", "channel_id": "777", "role": "viewer"}
    token = control(service).post("/v1/e/authtoken", json=body).raise_for_status().json()["token"]
    spaces = control(service).get("/_ns").json()["namespaces"]
    undo = reset(service)["undo"]
    assert 0 == votes(service)
    assert START != service.now()
    assert spaces == control(service).get("/_ns").json()["namespaces"]
    for user in ("2", "3"):
        vote(service, user)

    answer = control(service).post("/_emulator/undo", params={"undo": undo})

    assert (200, {}) == (answer.status_code, answer.json())
    assert (1, START) == (votes(service), service.now())
    assert 200 == service.bearer(token).get("vote").status_code


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_reset_that_fails_leaves_the_earlier_one_to_undo(tmp_path: Path, seconds: int):
    path = tmp_path / "data.db"
    with live_server(Settings(data=f"sqlite://{path}")) as live:
        vote(live, "1")
        token = reset(live)["undo"]
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("CREATE TRIGGER refuse BEFORE INSERT ON spaces BEGIN SELECT RAISE(ABORT, 'refused'); END")
        failed = control(live).post("/_emulator/reset", params={"undo": seconds})
        other.execute("DROP TRIGGER refuse")
        other.close()

        assert 503 == failed.status_code
        control(live).post("/_emulator/undo", params={"undo": token}).raise_for_status()

        assert 1 == votes(live)


def test_a_reset_whose_signing_key_could_not_be_stored_is_complete_and_can_be_undone(tmp_path: Path):
    path = tmp_path / "data.db"
    with live_server(Settings(data=f"sqlite://{path}")) as live:
        vote(live, "1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("CREATE TRIGGER refuse BEFORE INSERT ON documents BEGIN SELECT RAISE(ABORT, 'refused'); END")
        token = reset(live)["undo"]
        assert 0 == votes(live)
        other.execute("DROP TRIGGER refuse")
        other.close()

        control(live).post("/_emulator/undo", params={"undo": token}).raise_for_status()

        assert 1 == votes(live)


def test_a_reset_can_be_undone_once_and_one_without_undo_never(live: LiveServer):
    reset(live)
    control(live).post("/_emulator/undo").raise_for_status()
    statuses = [control(live).post("/_emulator/undo").status_code]
    assert {} == control(live).post("/_emulator/reset").json()

    assert [404, 404] == [*statuses, control(live).post("/_emulator/undo").status_code]


def test_only_the_latest_reset_can_be_undone(live: LiveServer):
    vote(live, "1")
    first = reset(live)["undo"]
    vote(live, "1")
    vote(live, "2")
    second = reset(live)["undo"]

    assert 409 == control(live).post("/_emulator/undo", params={"undo": first}).status_code
    control(live).post("/_emulator/undo", params={"undo": second}).raise_for_status()
    assert 2 == votes(live)


@pytest.mark.parametrize("seconds", ["-1", "601", "soon"])
def test_a_wrong_time_for_undo_deletes_nothing(live: LiveServer, seconds: str):
    vote(live, "1")

    answer = control(live).post("/_emulator/reset", params={"undo": seconds})

    assert (400, 1) == (answer.status_code, votes(live))


def test_each_namespace_has_its_own_undo(live: LiveServer):
    reset(live)

    assert 404 == control(live).post("/_ns/other/_emulator/undo").status_code
    assert 200 == control(live).post("/_emulator/undo").status_code


@pytest.mark.slow
def test_after_its_time_a_reset_cannot_be_undone_and_open_pages_say_so(live: LiveServer):
    reset(live, seconds=1)
    with following(f"{live.url}/_emulator/ui/overview") as stream:
        while "Undo the reset" in stream.read()[1]:
            pass

    assert 404 == control(live).post("/_emulator/undo").status_code


@pytest.mark.slow
def test_a_reset_on_redis_cannot_be_undone_and_the_page_says_so(tmp_path: Path):
    with RedisServer(tmp_path) as redis, live_server(Settings(data=redis.url())) as live:
        vote(live, "1")
        answer = control(live).post("/_emulator/reset", params={"undo": 60})
        page = main_of(f"{live.url}/_emulator/")

        assert (403, "Cannot undo", 1) == (answer.status_code, answer.json()["reason"], votes(live))
    assert "You cannot undo this" in page
    assert '/_emulator/reset?undo=60"' not in page
