"""The fixtures of the pytest plugin. What they need is imported when a test uses one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from extcli.testing import AsyncNamespace, Factory, Namespace, Server


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
    from extcli.testing.server import NotUsable, Reports, running, started

    options = request.config.option
    url, origin = (
        (options.extcli_url, "--extcli-url") if options.extcli_url else (os.environ.get("EXTCLI_URL"), "EXTCLI_URL")
    )
    reports = Reports()
    request.config.pluginmanager.register(reports)
    with ExitStack() as stack:
        try:
            if url:
                server = stack.enter_context(running(url, origin))
            else:
                log = tmp_path_factory.mktemp("extcli") / "service.log"
                server = stack.enter_context(started(extcli_serve_args, log, may_stay=options.extcli_keep))
        except NotUsable as error:
            pytest.fail(str(error), pytrace=False)
        yield server
    request.config.pluginmanager.unregister(reports)


@pytest.fixture
def extcli_factory(request: pytest.FixtureRequest, extcli_server: Server) -> Iterator[Factory]:
    """Creates more namespaces for one test: `extcli_factory()`. They are dropped after the test."""
    from extcli.testing.server import Factory

    factory = Factory(extcli_server, request.node)
    yield factory
    factory.drop()


@pytest.fixture
def extcli(extcli_factory: Factory) -> Namespace:
    """A namespace that only this test uses: its URL, callers, clock, games and listeners."""
    return extcli_factory()


@pytest.fixture
def extcli_async(extcli: Namespace) -> AsyncNamespace:
    """The namespace of `extcli` for an asynchronous test: operations are awaited."""
    return extcli.as_async
