"""The verdict on each request, and how often each was given."""

from __future__ import annotations

from collections.abc import Collection

from emulator.clock import Clock
from emulator.errors import MethodNotAllowed
from emulator.observability.request_context import RequestContext, current
from emulator.parity.rules import ENDPOINT, FOR_SANDBOX, UNJUDGED, is_final, settled
from emulator.parity.tally import Example, Tally


def note(verdict: str) -> None:
    """Note what production does with the current request at this check, unless an earlier check has decided it."""
    context = current.get()
    if context is not None and verdict and not is_final(context.production):
        context.production = verdict


def withdraw() -> None:
    """Forget the verdict on the current request: a fault keeps the service from answering it."""
    context = current.get()
    if context is not None:
        context.production = ""


def excuse() -> None:
    """Give the current request no verdict: a helper of the emulator makes it, and no extension does."""
    context = current.get()
    if context is not None:
        context.production = UNJUDGED


def is_reached() -> bool:
    """Whether production would come to this check of the current request."""
    context = current.get()
    return context is None or not is_final(context.production)


def noted() -> str:
    """Return the verdict on the current request so far."""
    context = current.get()
    return context.production if context is not None else ""


class Parity:
    """The verdicts of one service. Production gives none."""

    def __init__(self, clock: Clock, absent: Collection[tuple[str, str]], total: Tally, *, is_on: bool) -> None:
        self.is_on = is_on
        """Whether this is a sandbox."""
        self._clock = clock
        self._absent = frozenset(absent)
        """The endpoints that production does not have."""
        self.tally = Tally()
        """Since the latest reset."""
        self.total = total
        """Since the start of the process, of all namespaces."""

    def check_endpoint(self, method: str, path: str) -> None:
        """Note that production does not have an endpoint."""
        if (method, path) in self._absent:
            note(ENDPOINT)

    def refuse_method(self, method: str, path: str) -> None:
        """Give the verdict on a method that a path does not support: production may not even have the path."""
        context = current.get()
        if context is not None and any(path == absent for _, absent in self._absent):
            context.production = ENDPOINT
            is_counted = not path.startswith("/_emulator")
            self.settle(context, f"{method} {path}", MethodNotAllowed.status, is_counted=is_counted)

    def settle(
        self,
        context: RequestContext,
        endpoint: str,
        status: int,
        *,
        answered: int | None = None,
        is_counted: bool = True,
    ) -> None:
        """Complete the verdict on a request, now that the sandbox has answered with `status`.

        `answered` is production's status, if that is not the rule's. Calls of the control API are not counted: tests
        make them, and no extension does. Nor are probes, which are a tool's own.
        """
        verdict = settled(context.production, status, answered)
        context.production = "" if verdict == FOR_SANDBOX else verdict
        if verdict and is_counted and not context.is_probe:
            example = Example(context.id, endpoint, self._clock.now())
            self.tally.count(verdict, example)
            self.total.count(verdict, example)
