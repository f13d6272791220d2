"""The report of a failed test: log lines and refused requests of its namespaces, and the URLs of kept ones."""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from extcli.errors import CliError
from extcli.reading.shapes import document_of
from extcli.testing.server import Server

_LISTED = 5
"""Refused requests in the report of a test."""
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
                if refused := _refusals(space):
                    report.sections.append((f"extcli refused requests of {space.name}", refused))
                if Space.is_kept(item):
                    space.server.stays = True
                    report.sections.append(("extcli kept", _where(space)))
        return report


def _refusals(space: Space) -> str:
    """Return the latest requests and frames that were refused or not answered, with the reason; empty if none.

    Lines are not cut: many reports are read in a CI log.
    """
    from extcli.journal.views import lines_of

    path = f"/_ns/{space.name}/_emulator/journal?status=4xx,5xx,none&limit={_LISTED}"
    try:
        answer = space.server.http.send("GET", path)
    except CliError:
        return ""
    entries = document_of(answer, {"entries": [dict]})["entries"] if answer.status_code == 200 else []
    return lines_of(reversed(entries), sys.maxsize)


def _where(space: Space) -> str:
    process = space.server.process
    return space.url + (f" (its service runs on: stop it with kill {process.pid})" if process else "")
