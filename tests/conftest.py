"""Fixtures: a live service over a real socket, emptied before each test, and its clients."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial

import httpx
import pytest

from emulator.core.clock import ClockState
from emulator.core.environment import PRODUCTION
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.constants import CLOSED_URL
from support.service import (
    CHANNEL,
    CLIENT_ID,
    NO_TLS,
    OTHER_ID,
    OTHER_SECRET,
    PREVIOUS_SECRET,
    SECRET,
    Client,
    LiveServer,
    live_server,
    real_seconds,
)
from support.socket_client import SocketClient, linked_game


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Run three tests on two cores with `-n auto`: a third of the time, tests wait for processes and timeouts.

    `-n logical` runs one test on each core: the fast tests do not wait.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    cores = os.cpu_count() or 1
    return cores if config.option.numprocesses == "logical" else cores * 3 // 2


def pytest_configure() -> None:
    """Let signals act in the processes that tests start, also if `make test &` or `nohup` ignores them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Leave out of ids what differs from second to second, such as the bytes of a compressed file, and today's times.

    Workers that start in different seconds would otherwise collect different tests, and no test would run.
    """
    is_unreadable = isinstance(val, bytes) and not val.isascii()
    is_time = isinstance(val, int) and any(abs(val - real_seconds() * unit) < 86_400 * 30 * unit for unit in (1, 1000))
    return argname if is_unreadable or is_time else None


def pytest_collection() -> None:
    """Search for no garbage while tests are collected: there is little, and the searches take a tenth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of the searches for garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def no_services_of_the_developer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tests from the developer's profiles, and from a service that runs at the default address."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("EXTCLI_CONFIG", str(tmp_path_factory.getbasetemp() / "config.toml"))
        patched.setenv("EXTCLI_URL", CLOSED_URL)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_certificates() -> Iterator[None]:
    """Let `httpx.get` and its like load no certificates, which takes 20 ms: the services speak plain HTTP."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("delete", "get", "post", "put", "request", "stream"):
            patched.setattr(httpx, name, partial(getattr(httpx, name), verify=NO_TLS))
        yield


@pytest.fixture(scope="session")
def running_live() -> Iterator[LiveServer]:
    """The sandbox service of the whole run."""
    with live_server() as live:
        yield live


@pytest.fixture
def live(running_live: LiveServer) -> LiveServer:
    """The sandbox service, without data and namespaces."""
    running_live.empty()
    return running_live


@pytest.fixture
def viewer(live: LiveServer) -> Callable[..., Client]:
    """`viewer("5551")` is that user in channel 777; `viewer(None, opaque="Aabc")` has not shared an id."""
    return lambda user="5551", **claims: live.client("viewer", user=user, **{"channel": CHANNEL} | claims)


@pytest.fixture
def broadcaster(live: LiveServer) -> Client:
    """The owner of channel 777."""
    return live.client("broadcaster", user=CHANNEL, channel=CHANNEL)


@pytest.fixture
def admin(live: LiveServer) -> Client:
    """An admin with a token for channel 777."""
    return live.client("admin", user="9001", channel=CHANNEL)


@pytest.fixture
def backend(live: LiveServer) -> Client:
    """An extension-level backend: its token names no channel and no user."""
    return live.client("backend", user=None, channel=None)


@pytest.fixture
def stranger(live: LiveServer) -> Client:
    """A client without credentials, at the root of the service."""
    return Client(base_url=live.url, transport=live.connections)


@pytest.fixture
def game(live: LiveServer) -> Iterator[SocketClient]:
    """A game linked to channel 777."""
    with linked_game(live) as game:
        yield game


@pytest.fixture
def unlinked(live: LiveServer) -> Iterator[SocketClient]:
    """An unauthenticated socket."""
    with SocketClient(live) as game:
        yield game


@pytest.fixture(scope="session")
def running_production() -> Iterator[LiveServer]:
    """The production service of the whole run; it cannot be reset."""
    extensions = [
        Extension(CLIENT_ID, (SECRET, PREVIOUS_SECRET)),
        Extension(OTHER_ID, (OTHER_SECRET,)),
    ]
    with live_server(Settings(PRODUCTION, extensions={each.client_id: each for each in extensions})) as live:
        yield live


@pytest.fixture
def production(running_production: LiveServer) -> LiveServer:
    """The production service, with the machine's time and the data of earlier tests."""
    running_production.service.clock.restore(ClockState())
    return running_production


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail skipped tests in CI, which has everything that a test needs."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome, report.longrepr = "failed", f"skipped in CI: {report.longrepr}"
    return report
