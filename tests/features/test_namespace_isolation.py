"""No write in one namespace shows in another, for every kind of record (operations, Namespaces)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.core.config.settings import Settings
from emulator.storage.records import TYPES, Record
from support.examples import examples
from support.service import CHANNEL, LiveServer, RunningService, live_server
from support.socket_client import linked_game

NAMES = ("default", "a", "b", "c")
WRITES: dict[str, Any] = {
    "vote": lambda at, n: at.client("viewer", user=f"{n}", channel=CHANNEL).post("vote", json={"value": n % 5}),
    "rank": lambda at, n: at.client("viewer", user=f"{n}", channel=CHANNEL).post("rank", json={"key": f"w{n}"}),
    "accumulate": lambda at, n: at.client("viewer", user=f"{n}", channel=CHANNEL).post(
        "accumulate?id=m", json={"data": n}
    ),
    "state": lambda at, n: at.client("broadcaster", user="1", channel=CHANNEL).patch("channel_state", json={"n": n}),
    "viewer": lambda at, n: at.client("viewer", user=f"{n}", channel=CHANNEL).patch("viewer_state", json={"n": n}),
    "codes": lambda at, n: codes(at, n),
    "link": lambda at, n: link(at),
}


def codes(at: RunningService, n: int) -> Any:
    """Upload a set of codes, mark a user and redeem one."""
    backend = at.client("backend")
    backend.put("codes", json={"codes": [[f"A{n}", f"B{n}"]], "names": ["A"]}).raise_for_status()
    marks = {"prizes": [0], "prize_limits": [9] * 10, "users": ["1"]}
    backend.post("codes/mark_from_list", json=marks).raise_for_status()
    return at.client("viewer", user="1", channel=CHANNEL).post("codes/redeem", json={"prize": 0})


def link(at: RunningService) -> Any:
    with linked_game(at):
        return at.client("broadcaster", user="1", channel=CHANNEL).get("channel_state")


class Spaces:
    """The namespaces of one service, and what each of them holds."""

    def __init__(self, live: LiveServer) -> None:
        self._live = live

    def at(self, name: str) -> RunningService:
        return RunningService(f"{self._live.url}/_ns/{name}")

    def records(self, name: str) -> list[Record]:
        async def collect() -> list[Record]:
            service = await self._live.service.namespaces.front(name)
            return [record async for page in service.engine.dump(now=service.clock.now()) for record in page]

        return self._live.run(collect())


@pytest.fixture(scope="module", params=["memory", "file"])
def spaces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spaces]:
    file: Path = tmp_path_factory.mktemp("data") / "data.db"
    with live_server(Settings(data="sqlite://" if request.param == "memory" else f"sqlite://{file}")) as live:
        yield Spaces(live)


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from([*WRITES, "reset"]), st.integers(1, 99)),
        min_size=1,
        max_size=8,
    )
)
def test_a_write_in_one_namespace_changes_no_other(spaces: Spaces, writes: list[tuple[str, str, int]]):
    for name, what, number in writes:
        before = {each: spaces.records(each) for each in NAMES if each != name}

        if what == "reset":
            spaces.at(name).reset()
        else:
            WRITES[what](spaces.at(name), number).raise_for_status()

        assert before == {each: spaces.records(each) for each in before}


def test_the_writes_of_this_test_make_every_kind_of_record(spaces: Spaces):
    for number, write in enumerate(WRITES.values()):
        write(spaces.at("a"), number).raise_for_status()

    assert set(TYPES) == {type(record) for record in spaces.records("a")}
