"""A screen: the function that reads what it shows. Its template has the same name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from emulator.changes import Changes
from emulator.clock import Clock
from emulator.config.extensions import Extensions
from emulator.config.settings import Settings
from emulator.engines.engine import Engine
from emulator.features.calls.service import Calls
from emulator.features.codes.service import CodeSets
from emulator.features.contents.service import Contents
from emulator.features.control.service import Control
from emulator.features.control.undo import Undo
from emulator.features.explanations.service import Explanations
from emulator.features.faults.service import FaultPlan
from emulator.features.journal.service import Journals
from emulator.features.sockets.service import Sockets
from emulator.journal import Journal
from emulator.namespaces.registry import Registry
from emulator.parity.service import Parity
from emulator.web.dispatch import Dispatcher


class Service(Protocol):
    """The parts of a running service that screens read."""

    name: str
    """The name of the namespace."""
    settings: Settings
    extensions: Extensions
    engine: Engine
    clock: Clock
    changes: Changes
    journal: Journal
    contents: Contents
    control: Control
    connections: Sockets
    calls: Calls
    code_sets: CodeSets
    journals: Journals
    explanations: Explanations
    faults: FaultPlan
    parity: Parity
    dispatcher: Dispatcher
    namespaces: Registry | None
    undo: Undo

    @property
    def sockets(self) -> int:
        """The number of open connections of games and pages."""

    async def size(self) -> int:
        """Return how many things the data has."""


Query = Mapping[str, str]
"""The query parameters of a page by name, as the user typed them."""


class Screen(NamedTuple):
    """A screen of the dashboard."""

    name: str
    """The last part of its path, and the name of its template."""
    title: str
    read: Callable[[Any, Query], Awaitable[dict[str, Any]]]
    """Takes the `Service` and the query; returns the values of the template. Raises `ServiceError`."""
    every: float = 5.0
    """Seconds after which an open page is rendered again although nothing changed: times go by."""
    submit: Callable[[Any, Query, Query], Awaitable[dict[str, Any]]] | None = None
    """Takes the `Service`, the query and the fields of a form that the page sends to itself; returns the values of the
    template. Raises `ServiceError`."""
    is_live: Callable[[Query], bool] = lambda query: True
    """Whether an open page follows changes: not while a text is edited that a change must not replace."""
