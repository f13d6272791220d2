"""Every lifetime, one millisecond before its end and at its end (Limits; rulings A1, P5, R2, S4, S5, T1, T3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from emulator.clock import DAY, END_OF_TIME, HOUR, MINUTE, SECOND, WEEK, Clock
from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.service import CLIENT_ID, SECRET, LiveServer, live_server
from support.socket_client import SocketClient

NOON = 2_000_000_000
"""In Unix seconds: when everything here begins."""
FAR_AWAY = END_OF_TIME // SECOND
SANDBOX_AND_PRODUCTION = ("sandbox", "production")


class World:
    """A service whose clock stands, and people whose tokens outlive every test."""

    def __init__(self, live: LiveServer) -> None:
        self.live = live
        self.pin = self.pin_token = ""
        self.pair: dict[str, Any] = {}
        self.viewer, self.other, self.broadcaster, self.backend = (
            live.client(role, user=user, channel="777", exp=FAR_AWAY)
            for role, user in (("viewer", "1"), ("viewer", "2"), ("broadcaster", "777"), ("backend", "9"))
        )

    def at(self, ms: int) -> World:
        """This world, `ms` after the beginning."""
        self.live.service.clock.set(NOON * SECOND + ms)
        return self

    def vote(self, value: int = 1) -> int:
        return self.viewer.post("vote", json={"value": value}).status_code

    def define(self, **config: object) -> None:
        self.broadcaster.post("vote_config", json={"config": config}).raise_for_status()

    def authenticate(self, **credential: str) -> dict[str, Any]:
        with SocketClient(self.live) as game:
            return dict(game.request("authenticate", data={"client_id": CLIENT_ID, **credential}).get("data", {}))

    def request_pin(self) -> None:
        self.pin = self.broadcaster.post("link/pin").raise_for_status().json()["pin"]

    def has_pin(self) -> bool:
        return bool(self.pin and self.authenticate(pin=self.pin))

    def link_game(self) -> None:
        self.request_pin()
        self.pair = self.authenticate(pin=self.pin)

    def has_access_token(self) -> bool:
        return bool(self.pair) and self.live.bearer(self.pair["jwt"]).get("user_info").status_code == 200

    def has_refresh_token(self) -> bool:
        return bool(self.pair and self.authenticate(refresh=self.pair["refresh"]))

    def request_pin_token(self) -> None:
        issued = self.viewer.post("pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
        self.broadcaster.post("validate_pin", json={"pin": issued["pin"]}).raise_for_status()
        self.pin_token = issued["token"]

    def has_pin_token(self) -> bool:
        return bool(self.pin_token) and self.live.bearer(self.pin_token).get("user_info").status_code == 200

    def has_votes(self) -> bool:
        return self.other.get("vote").json()["count"] > 0

    def has_definition(self) -> bool:
        return self.other.get("vote_config").status_code == 200


@dataclass(frozen=True)
class Thing:
    """Something that a service keeps for a while."""

    name: str
    sandbox: int
    production: int | None
    write: Callable[[World], object]
    is_there: Callable[[World], bool]

    def lives(self, environment: str) -> int | None:
        return self.sandbox if environment == "sandbox" else self.production


def _store(name: str, sandbox: int, production: int | None) -> Thing:
    return Thing(
        name,
        sandbox,
        production,
        lambda world: world.backend.post(name, json={"a": 1}),
        lambda world: world.backend.get(name).json() == {"a": 1},
    )


POLL = Thing("poll", WEEK, WEEK, World.vote, World.has_votes)
LOG = Thing("vote log", WEEK, WEEK, World.vote, lambda world: bool(world.backend.get("vote_logs").json()["result"]))
DEFINITION = Thing("definition", WEEK, WEEK, World.define, World.has_definition)
RANKING = Thing(
    "ranking",
    DAY,
    DAY,
    lambda world: world.viewer.post("rank", json={"key": "blue"}),
    lambda world: bool(world.backend.get("rank").json()["data"]),
)
BUFFER = Thing(
    "accumulation entry",
    DAY,
    DAY,
    lambda world: world.viewer.post("accumulate", json=1),
    lambda world: bool(world.backend.get("accumulate").json()["data"]),
)
STATES = [
    _store(f"{scope}_state", 24 * HOUR, 30 * DAY)
    for scope in ("extension", "channel", "viewer", "extension_viewer", "extension_hidden")
]
CONFIGS = [_store(f"{scope}_config", 24 * HOUR, None) for scope in ("extension", "channel")]
JSON_STORE = _store("json_store", 14 * DAY, 14 * DAY)
PIN = Thing("PIN", 5 * MINUTE, 5 * MINUTE, World.request_pin, World.has_pin)
PIN_TOKEN = Thing("PIN token", WEEK, WEEK, World.request_pin_token, World.has_pin_token)
ACCESS_TOKEN = Thing("access token", WEEK, WEEK, World.link_game, World.has_access_token)
REFRESH_TOKEN = Thing("refresh token", 365 * DAY, 365 * DAY, World.link_game, World.has_refresh_token)
TOKENS = [PIN, PIN_TOKEN, ACCESS_TOKEN, REFRESH_TOKEN]
THINGS = [POLL, LOG, DEFINITION, RANKING, BUFFER, *STATES, *CONFIGS, JSON_STORE, *TOKENS]
ENDING = [
    pytest.param(thing, environment, thing.lives(environment), id=f"{thing.name}-{environment}")
    for thing in THINGS
    for environment in SANDBOX_AND_PRODUCTION
    if thing.lives(environment) is not None
]
RENEWED = [each for each in ENDING if each.values[0] not in (BUFFER, PIN_TOKEN, ACCESS_TOKEN, REFRESH_TOKEN)]


@pytest.fixture(scope="module")
def running_production() -> Iterator[LiveServer]:
    """A production service; it has no control API, so its clock is moved from outside."""
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    with live_server(Settings(environment=PRODUCTION, extensions=extensions), clock=Clock()) as live:
        yield live


@pytest.fixture
def world_of(running_live: LiveServer, running_production: LiveServer) -> Callable[[str], World]:
    """The emptied world of one environment, its clock standing at the beginning."""

    def emptied(environment: str) -> World:
        live = running_live if environment == "sandbox" else running_production
        live.run(live.service.control.reset())
        live.service.clock.freeze(True)
        return World(live).at(0)

    return emptied


@pytest.mark.ruling("P5", "R2", "S4", "S5", "T1", "T3")
@pytest.mark.parametrize(("thing", "environment", "lifetime"), ENDING)
def test_it_is_there_one_millisecond_before_its_end_and_gone_at_its_end(world_of, thing, environment, lifetime):
    world = world_of(environment)
    before = thing.is_there(world)
    thing.write(world)

    seen = [thing.is_there(world.at(ms)) for ms in (0, lifetime - 1, lifetime, lifetime + DAY)]

    assert [False, True, True, False, False] == [before, *seen]


@pytest.mark.ruling("P5", "S4", "S5")
@pytest.mark.parametrize(("thing", "environment", "lifetime"), RENEWED)
def test_its_life_is_counted_from_the_last_write(world_of, thing, environment, lifetime):
    world = world_of(environment)
    thing.write(world)
    thing.write(world.at(lifetime - 1))

    seen = [thing.is_there(world.at(lifetime - 1 + ms)) for ms in (lifetime - 1, lifetime)]

    assert [True, False] == seen


@pytest.mark.parametrize(("thing", "environment", "lifetime"), ENDING)
def test_it_can_be_written_anew_after_its_end(world_of, thing, environment, lifetime):
    world = world_of(environment)
    thing.write(world)
    thing.write(world.at(lifetime))

    seen = [thing.is_there(world.at(lifetime + ms)) for ms in (0, lifetime - 1, lifetime)]

    assert [True, True, False] == seen


@pytest.mark.ruling("S4")
@pytest.mark.parametrize("thing", CONFIGS, ids=lambda thing: thing.name)
def test_config_in_production_has_no_end(world_of, thing):
    world = world_of("production")
    thing.write(world)

    world.live.service.clock.set(FAR_AWAY * SECOND - 1)

    assert thing.is_there(world)


@pytest.mark.ruling("S4")
def test_a_patch_is_a_write(world_of):
    world = world_of("production")
    world.backend.post("channel_state", json={"a": 1})
    world.at(DAY).backend.patch("channel_state", json={"b": 2})

    assert {"a": 1, "b": 2} == world.at(31 * DAY - 1).backend.get("channel_state").json()
    assert {} == world.at(31 * DAY).backend.get("channel_state").json()


@pytest.mark.ruling("R2")
def test_each_accumulation_entry_has_its_own_end(world_of):
    world = world_of("sandbox")
    for hour in (0, 1, 2):
        world.at(hour * HOUR).viewer.post("accumulate", json=hour)

    seen = [
        [entry["data"] for entry in world.at(DAY + ms).backend.get("accumulate").json()["data"]]
        for ms in (-1, 0, HOUR, 2 * HOUR)
    ]

    assert [[2, 1, 0], [2, 1], [2], []] == seen
    assert 0 == world.backend.get("accumulate").json()["latest"]


@pytest.mark.ruling("P5")
def test_a_definition_with_votes_lives_until_a_week_after_the_last_vote(world_of):
    world = world_of("sandbox")
    world.define(prompt="first")
    world.at(DAY).vote()
    world.at(3 * DAY).define(prompt="second")

    seen = [(world.at(DAY + WEEK + ms).has_definition(), world.has_votes()) for ms in (-1, 0)]

    assert [(True, True), (False, False)] == seen


@pytest.mark.parametrize("refused", [{"disabled": True}, {"endsAt": -1}], ids=["disabled", "ended"])
def test_a_refused_vote_does_not_prolong_a_poll(world_of, refused):
    world = world_of("sandbox")
    world.vote()
    world.define(**refused)

    statuses = [world.at(DAY).vote(), world.vote(100)]

    assert [400, 400] == statuses
    assert not world.at(WEEK).has_votes()


def test_reading_does_not_prolong_anything(world_of):
    world = world_of("sandbox")
    for thing in THINGS:
        thing.write(world)
    for thing in THINGS:
        thing.is_there(world.at(HOUR))

    assert [] == [thing.name for thing in THINGS if thing.is_there(world.at(thing.sandbox))]


def test_a_poll_that_ended_begins_anew_without_its_votes_and_definition(world_of):
    world = world_of("sandbox")
    world.vote(5)
    world.define(totalVotesPerUser=10, votesPerOption=10)

    poll = world.at(WEEK).viewer.post("vote", json={"value": 1, "count": 2}).json()

    assert (1, 1, False) == (poll["count"], poll["sum"], world.has_definition())


def test_a_ranking_that_ended_knows_no_original(world_of):
    world = world_of("sandbox")
    world.viewer.post("rank", json={"key": "blue"})

    assert {"accepted": True} == world.at(DAY).viewer.post("rank", json={"key": "red"}).json()


@pytest.mark.ruling("A1")
@pytest.mark.parametrize("environment", SANDBOX_AND_PRODUCTION)
def test_a_token_is_taken_until_one_millisecond_before_exp_and_401_at_exp(world_of, environment):
    world = world_of(environment)
    client = world.live.client("viewer", user="1", channel="777", exp=NOON + 60)

    seen = [(world.at(MINUTE + ms), client.get("vote").status_code)[1] for ms in (-1, 0, 1, -1)]

    assert [200, 401, 401, 200] == seen


@pytest.mark.ruling("A1", "A5")
@pytest.mark.parametrize("role", ["viewer", "broadcaster", "admin", "backend"])
def test_a_sandbox_token_lives_30_minutes(world_of, stranger, role):
    world = world_of("sandbox")
    issued = stranger.post("/v1/e/authtoken", json={"extension_id": CLIENT_ID, "channel_id": "777", "role": role})
    client = world.live.bearer(issued.json()["token"])

    seen = [(world.at(30 * MINUTE + ms), client.get("user_info").status_code)[1] for ms in (-1, 0)]

    assert [200, 401] == seen
