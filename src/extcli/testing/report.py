"""The report of a failed test: the service's log lines of its namespaces, and the URLs of those that are kept."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from extcli.testing.server import Server

_FAILED: pytest.StashKey[bool] = pytest.StashKey()


@dataclass
class Space:
    """A namespace of a test."""

    KEY: ClassVar[pytest.StashKey[list[Space]]] = pytest.StashKey()

    name: str
    url: str
    server: Server

    @staticmethod
    def is_kept(item: pytest.Item) -> bool:
        """Return whether the test failed and its namespaces are to stay."""
        return item.stash.get(_FAILED, False) and bool(item.config.getoption("--extcli-keep"))


class Reports:
    """Adds sections to the reports of failed tests. Registered when the first test uses a fixture."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the sections."""
        report = yield
        if report.failed and call.when != "teardown":
            item.stash[_FAILED] = True
            for space in item.stash.get(Space.KEY, []):
                report.sections.append((f"extcli log of {space.name}", space.server.log_of(space.name)))
                if Space.is_kept(item):
                    space.server.stays = True
                    report.sections.append(("extcli kept", _where(space)))
        return report


def _where(space: Space) -> str:
    process = space.server.process
    return space.url + (f" (its service runs on: stop it with kill {process.pid})" if process else "")
