"""Starts an operation at once and awaits it later, without a task."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Started(Generic[T]):
    """An operation whose first step, up to where it has to wait, has run. Await it once for the rest and its result.

    So two writes can share a commit: start the first, await the second, then await the first.
    """

    def __init__(self, operation: Coroutine[Any, Any, T]) -> None:
        """Run the first step; an exception in it is raised here."""
        self._operation = operation
        self._is_done = False
        self._result: T | None = None
        self._waits_for: Any = None
        try:
            self._waits_for = operation.send(None)
        except StopIteration as done:
            self._is_done, self._result = True, done.value

    def __await__(self) -> Generator[Any, Any, T]:
        if self._is_done:
            return self._result  # type: ignore[return-value]
        waits_for = self._waits_for
        try:
            while True:
                try:
                    if waits_for is not None and waits_for.done():
                        waits_for._asyncio_future_blocking = False  # it need not be yielded to the event loop
                        sent = None
                    else:
                        sent = yield waits_for
                except BaseException as error:
                    waits_for = self._operation.throw(error)
                else:
                    waits_for = self._operation.send(sent)
        except StopIteration as done:
            result: T = done.value
            return result
