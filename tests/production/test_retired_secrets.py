"""Links and issued tokens end with the secret that admitted them (rulings A1, A5, T2, T3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from emulator.core.environment import PRODUCTION
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.authentication import authenticate, refused
from support.holding import VIOLATION, Holding, all_are, owner, token_of
from support.pins import create_pin, token_exists, validate
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, OTHER_SECRET, Client, LiveServer, live_server, real_seconds
from support.socket_client import SocketClient

OLD, NEW = b"the secret before, at least 32 bytes", b"the secret after, at least 32 bytes!"
ONLY_OLD, BOTH, ONLY_NEW = (OLD,), (NEW, OLD), (NEW,)


def register(live: LiveServer, *secrets: bytes, tokens_not_before: int = 0) -> None:
    """Reload the extensions with these secrets for the first one."""

    async def replace() -> None:
        extensions = [
            Extension(CLIENT_ID, secrets, tokens_not_before=tokens_not_before),
            Extension(OTHER_ID, (OTHER_SECRET,)),
        ]
        live.service.replace_extensions({each.client_id: each for each in extensions})

    live.run(replace())


@pytest.fixture
def rotating() -> Iterator[LiveServer]:
    """A production service whose first extension has its old secret only."""
    extensions = {CLIENT_ID: Extension(CLIENT_ID, ONLY_OLD), OTHER_ID: Extension(OTHER_ID, (OTHER_SECRET,))}
    with live_server(Settings(PRODUCTION, extensions=extensions)) as live:
        yield live


def test_rotating_a_secret_ends_nothing(rotating):
    held = Holding(rotating, OLD)

    register(rotating, *BOTH)

    assert all_are(held.working(), True)


def test_retiring_a_secret_ends_what_games_made_of_it_since(rotating):
    held = Holding(rotating, OLD)
    register(rotating, *BOTH)
    with SocketClient(rotating) as game:
        refreshed = authenticate(game, refresh=held.pair["refresh"])
        pin = create_pin(rotating.bearer(refreshed["jwt"]))
        by_pin = authenticate(game, pin=pin)

        register(rotating, *ONLY_NEW)

        assert VIOLATION == game.close_code()
    with SocketClient(rotating) as game:
        credentials = [{"refresh": refreshed["refresh"]}, {"pin": pin}, {"refresh": by_pin["refresh"]}]
        assert [(400, "Bad Request")] * 3 == [refused(game, **each) for each in credentials]
    assert [401, 401] == [rotating.bearer(each["jwt"]).get("user_info").status_code for each in (refreshed, by_pin)]


def test_retiring_a_secret_ends_all_that_it_admitted_and_nothing_else(rotating):
    old = Holding(rotating, OLD)
    register(rotating, *BOTH)
    spared = [
        Holding(rotating, NEW),
        Holding(rotating, NEW, "888"),
        Holding(rotating, OTHER_SECRET, client_id=OTHER_ID),
    ]

    register(rotating, *ONLY_NEW)

    assert all_are(old.working(), False)
    assert [True] * 3 == [all_are(each.working(), True) for each in spared]


@pytest.mark.parametrize("path", ["link/pin", "pin"])
def test_a_pin_without_a_token_is_admitted_by_the_secret_of_its_validator(rotating, path):
    register(rotating, *BOTH)
    issued = {}
    with Client(base_url=f"{rotating.url}/v1/e/") as anyone:
        for key, channel in ((NEW, "1"), (OLD, "2")):
            issued[key] = anyone.post(path, json={"identifier": CLIENT_ID}).raise_for_status().json()
            validate(owner(rotating, key, channel), issued[key]["pin"])

    register(rotating, *ONLY_NEW)

    for key, works in ((NEW, True), (OLD, False)):
        with SocketClient(rotating) as game:
            login = {"client_id": CLIENT_ID, "pin": issued[key]["pin"]}
            assert works is ("data" in game.request("authenticate", data=login))
        if path == "pin":
            assert works is (rotating.bearer(issued[key]["token"]).get("user_info").status_code == 200)


def test_a_pin_keeps_the_secret_of_its_request_when_another_one_validates_it(rotating):
    register(rotating, *BOTH)
    pin = create_pin(owner(rotating, OLD))
    validate(owner(rotating, NEW), pin)

    register(rotating, *ONLY_NEW)

    assert 400 == validate(owner(rotating, NEW), pin)


def test_a_node_that_has_not_reloaded_yet_ends_no_link_of_the_new_secret(tmp_path):
    extensions = {CLIENT_ID: Extension(CLIENT_ID, ONLY_OLD)}
    settings = Settings(PRODUCTION, data=f"sqlite:///{tmp_path}/data.db", extensions=extensions)
    with live_server(settings) as late, live_server(settings) as early:
        register(early, *BOTH)
        new = Holding(early, NEW)

        Holding(late, OLD)
        register(late, *BOTH)

        assert all_are(new.working(), True)


def test_delete_pin_ends_the_links_of_all_secrets(rotating):
    register(rotating, *BOTH)
    held = [Holding(rotating, OLD), Holding(rotating, NEW)]

    owner(rotating, NEW).delete("pin").raise_for_status()

    kept = {"self-signed token": True, "access token": True, "socket by PIN": True, "socket by JWT": True}
    assert [True, True] == [all_are(each.working(), False, but=kept) for each in held]
    assert not token_exists(owner(rotating, OLD))


def test_a_token_exists_only_while_its_secret_does(rotating):
    held = Holding(rotating, OLD)
    register(rotating, *BOTH)
    before = token_exists(owner(rotating, NEW))

    register(rotating, *ONLY_NEW)

    assert [True, False] == [before, token_exists(owner(rotating, NEW))]
    held.by_pin.socket.close()


def test_removing_an_extension_closes_its_sockets_and_no_others(rotating):
    held, other = Holding(rotating, OLD), Holding(rotating, OTHER_SECRET, client_id=OTHER_ID)

    async def remove() -> None:
        rotating.service.replace_extensions({OTHER_ID: Extension(OTHER_ID, (OTHER_SECRET,))})

    rotating.run(remove())

    assert all_are(held.working(), False)
    assert all_are(other.working(), True)


def test_retiring_a_secret_closes_the_sockets_of_every_role(rotating):
    with SocketClient(rotating) as unauthenticated, ExitStack() as stack:
        games = []
        for role in ("viewer", "broadcaster", "admin", "backend"):
            client = rotating.client(role, user="5", channel=CHANNEL, key=OLD, exp=real_seconds() + 600)
            games.append(stack.enter_context(SocketClient(rotating)))
            authenticate(games[-1], jwt=token_of(client))

        register(rotating, *ONLY_NEW)

        assert [VIOLATION] * 4 == [each.close_code() for each in games]
        assert (400, "Bad Request") == refused(unauthenticated, pin="ZZZZZZ")


def test_a_login_that_waits_while_its_secret_is_retired_is_refused(rotating, monkeypatch):
    pin = owner(rotating, OLD).post("link/pin").raise_for_status().json()["pin"]

    async def retire(*args: object) -> None:
        rotating.service.replace_extensions({CLIENT_ID: Extension(CLIENT_ID, ONLY_NEW)})

    monkeypatch.setattr(rotating.service.pins, "_report_change", retire)  # the last wait of a login

    with SocketClient(rotating) as game:
        assert (401, "Unauthorized") == refused(game, pin=pin)


def test_the_sandbox_knows_no_retired_secrets():
    with live_server(Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, ONLY_OLD)})) as live:
        held = Holding(live, OLD)

        register(live, *ONLY_NEW, tokens_not_before=1 << 60)

        assert all_are(held.working(), True)
