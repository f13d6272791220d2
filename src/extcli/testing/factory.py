"""Makes the namespaces of one test, and drops them after it."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest

from extcli.config.settings import DEFAULT_CHANNEL
from extcli.errors import CliError
from extcli.testing.aliases import Namespace
from extcli.testing.calls import control, noted
from extcli.testing.report import Space
from extcli.testing.server import Server

_LONGEST_NAME = 40


class Factory:
    """Call it for a further namespace: `extcli_factory()`."""

    def __init__(self, server: Server, node: pytest.Item) -> None:
        self._server = server
        self._node = node
        self.made: list[Namespace] = []

    def __call__(self, *, client_id: str | None = None, channel: str = DEFAULT_CHANNEL) -> Namespace:
        """Return a new namespace, prepared as the marker `extcli` says.

        `client_id` and `channel` are those of its callers.
        """
        of_server = client_id in (None, self._server.client_id)
        made = Namespace(
            self._server.http,
            self._name(),
            client_id=client_id or self._server.client_id,
            channel=channel,
            secret=self._server.secret if of_server else None,
        )
        self.made.append(made)
        spaces = self._node.stash.setdefault(Space.KEY, [])
        spaces.append(Space(made.name, made.url, self._server))
        self._prepare(made)
        return made

    def _name(self) -> str:
        """Return a name that is unique among all runs, and shows the test."""
        test = re.sub(r"[^A-Za-z0-9]+", "_", self._node.name).strip("_")[:_LONGEST_NAME]
        return f"{test}-{secrets.token_hex(6)}"

    def _prepare(self, namespace: Namespace) -> None:
        wanted: dict[str, Any] = {}
        for marker in reversed(list(self._node.iter_markers("extcli"))):
            wanted |= marker.kwargs
            if marker.args or not marker.kwargs.keys() <= {"seed", "clock"}:
                raise pytest.UsageError("the marker extcli takes seed=FILE and clock=TIME, by name")
        try:
            control(self._server.http).create_namespace(namespace.name)  # a page of the test cannot
            if "clock" in wanted:  # first: what the seed puts in must not expire
                namespace.clock.set(wanted["clock"])
            if "seed" in wanted:
                namespace.seed(self._node.path.parent / wanted["seed"])
        except CliError as error:
            raise noted(error) from None

    def drop(self) -> None:
        """Close the connections, and drop the namespaces, unless they are kept."""
        for each in self.made:
            if Space.is_kept(self._node):
                each.close()
            else:
                each.drop()
