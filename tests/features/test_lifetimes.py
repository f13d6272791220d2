"""Every lifetime, one millisecond before its end and at its end (Limits; rulings A1, P5, R2, S4, S5, T1, T3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emulator.core.clock import DAY, HOUR, MINUTE, SECOND, Clock
from emulator.core.config.environment import PRODUCTION
from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Settings
from features.lifetimes import (
    ACCESS_TOKEN,
    BUFFER,
    CONFIGS,
    ITEMS,
    LAST_SECOND,
    PIN_TOKEN,
    REFRESH_TOKEN,
    START,
    FrozenService,
)
from support.service import CLIENT_ID, SECRET, LiveServer, live_server

ENVIRONMENTS = ("sandbox", "production")
EXPIRING = [
    pytest.param(item, environment, item.lifetime(environment), id=f"{item.name}-{environment}")
    for item in ITEMS
    for environment in ENVIRONMENTS
    if item.lifetime(environment) is not None
]
RENEWED = [each for each in EXPIRING if each.values[0] not in (BUFFER, PIN_TOKEN, ACCESS_TOKEN, REFRESH_TOKEN)]


@pytest.fixture(scope="module")
def running_production() -> Iterator[LiveServer]:
    """A production service with a clock that tests can move, as it has no control API."""
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    with live_server(Settings(environment=PRODUCTION, extensions=extensions), clock=Clock()) as live:
        yield live


@pytest.fixture
def frozen(running_live: LiveServer, running_production: LiveServer) -> Callable[[str], FrozenService]:
    """The emptied service of one environment, with its clock stopped at the start."""

    def emptied(environment: str) -> FrozenService:
        live = running_live if environment == "sandbox" else running_production
        live.run(live.service.control.reset())
        live.service.clock.freeze(True)
        return FrozenService(live).at(0)

    return emptied


@pytest.mark.parametrize(("item", "environment", "lifetime"), EXPIRING)
def test_an_item_exists_until_one_millisecond_before_its_expiry(frozen, item, environment, lifetime):
    service = frozen(environment)
    before = item.exists(service)
    item.write(service)

    seen = [item.exists(service.at(ms)) for ms in (0, lifetime - 1, lifetime, lifetime + DAY)]

    assert [False, True, True, False, False] == [before, *seen]


@pytest.mark.parametrize(("item", "environment", "lifetime"), RENEWED)
def test_a_write_renews_the_lifetime(frozen, item, environment, lifetime):
    service = frozen(environment)
    item.write(service)
    item.write(service.at(lifetime - 1))

    seen = [item.exists(service.at(lifetime - 1 + ms)) for ms in (lifetime - 1, lifetime)]

    assert [True, False] == seen


@pytest.mark.parametrize("item", CONFIGS, ids=lambda item: item.name)
def test_config_in_production_never_expires(frozen, item):
    service = frozen("production")
    item.write(service)

    service.live.service.clock.set(LAST_SECOND * SECOND - 1)

    assert item.exists(service)


def test_reading_renews_no_lifetime(frozen):
    service = frozen("sandbox")
    for item in ITEMS:
        item.write(service)
    for item in ITEMS:
        item.exists(service.at(HOUR))

    assert [] == [item.name for item in ITEMS if item.exists(service.at(item.sandbox))]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_token_is_valid_until_one_millisecond_before_exp(frozen, environment):
    service = frozen(environment)
    client = service.live.client("viewer", user="1", channel="777", exp=START + 60)

    seen = [(service.at(MINUTE + ms), client.get("vote").status_code)[1] for ms in (-1, 0, 1, -1)]

    assert [200, 401, 401, 200] == seen
    service.at(MINUTE)
    assert "token expired" in client.get("user_info").json()["info"]


@pytest.mark.parametrize("role", ["viewer", "broadcaster", "admin", "backend"])
def test_a_sandbox_token_expires_after_30_minutes(frozen, stranger, role):
    service = frozen("sandbox")
    issued = stranger.post("/v1/e/authtoken", json={"extension_id": CLIENT_ID, "channel_id": "777", "role": role})
    client = service.live.bearer(issued.json()["token"])

    seen = [(service.at(30 * MINUTE + ms), client.get("user_info").status_code)[1] for ms in (-1, 0)]

    assert [200, 401] == seen
