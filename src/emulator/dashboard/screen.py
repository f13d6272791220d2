"""The declaration of a screen: a function that reads its content. Its template has the same name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from emulator.changes import Changes
from emulator.clock import Clock
from emulator.config.extensions import Extensions
from emulator.config.settings import Settings
from emulator.control.calls.service import Calls
from emulator.control.contents.service import Contents
from emulator.control.explanations.service import Explanations
from emulator.control.faults.service import FaultPlan
from emulator.control.journal.service import Journals
from emulator.control.operation.service import Control
from emulator.control.operation.undo import Undo
from emulator.control.sockets.service import Sockets
from emulator.engines.engine import Engine
from emulator.features.codes.service import CodeSets
from emulator.http.dispatch import Dispatcher
from emulator.journal import Journal
from emulator.namespaces.registry import Registry
from emulator.parity.service import Parity


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
        """Return the number of records."""


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
