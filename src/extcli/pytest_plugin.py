"""The pytest plugin `extcli`: options, a marker and fixtures. docs/guide/pytest.md describes them.

What the fixtures need is imported when a test uses one.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from extcli.testing import AsyncNamespace, Factory, Namespace, Server

_FACTORY: pytest.StashKey[Factory] = pytest.StashKey()
"""The namespaces of a test, until its report is made."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("extcli", "extcli: a service for tests of an extension")
    group.addoption(
        "--extcli-url",
        metavar="URL",
        help="use the running service at this URL (default: EXTCLI_URL, or start a service)",
    )
    group.addoption(
        "--extcli-keep", action="store_true", help="keep the namespaces of failed tests, and print their URLs"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "extcli(seed=FILE, clock=TIME): the seed and the clock of the test's namespace")


@pytest.fixture(scope="session")
def extcli_serve_args() -> list[str]:
    """The options of `extcli serve` that `extcli_server` uses. Override this fixture to set them."""
    return []


@pytest.fixture(scope="session")
def extcli_server(
    request: pytest.FixtureRequest, extcli_serve_args: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """The service of this test run, or of this xdist worker.

    With --extcli-url or EXTCLI_URL, the service at that URL.
    """
    from extcli.testing.server import find_server, run_server

    options = request.config.option
    with ExitStack() as stack:
        if url := options.extcli_url or os.environ.get("EXTCLI_URL"):
            server = find_server(url, "--extcli-url" if options.extcli_url else "EXTCLI_URL")
        else:
            folder = tmp_path_factory.mktemp("extcli")
            server = stack.enter_context(run_server(extcli_serve_args, folder, may_stay=options.extcli_keep))
        yield server
        server.http.close()


@pytest.fixture
def extcli_factory(request: pytest.FixtureRequest, extcli_server: Server) -> Iterator[Factory]:
    """Creates more namespaces for one test: `extcli_factory()`. They are dropped after the test."""
    from extcli.testing.server import Factory

    request.node.stash[_FACTORY] = factory = Factory(extcli_server, request.node)
    yield factory
    factory.drop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the service knows to the report of a failed test."""
    report = yield
    factory = item.stash.get(_FACTORY, None)
    if factory and report.failed and call.when != "teardown":
        report.sections += factory.report_sections()
    return report


@pytest.fixture
def extcli(extcli_factory: Factory) -> Namespace:
    """A namespace that only this test uses: its URL, callers, clock, games and listeners."""
    return extcli_factory()


@pytest.fixture
def extcli_async(extcli: Namespace) -> AsyncNamespace:
    """The namespace of `extcli` for an asynchronous test: operations are awaited."""
    return extcli.as_async
