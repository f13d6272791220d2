"""Methods that block in a synchronous test and are awaited in an asynchronous one. Each is written once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from extcli.errors import CliError


class Blocking:
    """Marks the objects of the fixture `extcli`: their operations return results."""


class Awaited:
    """Marks the objects of the fixture `extcli_async`: their operations return awaitables."""


ModeT = TypeVar("ModeT", Blocking, Awaited)
PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT")
P = ParamSpec("P")


class Part(Generic[ModeT]):
    """An object with operations."""

    def __init__(self, *, awaited: bool) -> None:
        self.awaited = awaited


class operation(Generic[PartT, P, ResultT]):
    """A method of a `Part`. For `extcli_async` it runs in a thread, and calling it returns an awaitable."""

    def __init__(self, method: Callable[Concatenate[PartT, P], ResultT]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    @overload
    def __get__(self, part: None, owner: type) -> Self: ...
    @overload
    def __get__(self, part: Part[Blocking], owner: type) -> Callable[P, ResultT]: ...
    @overload
    def __get__(self, part: Part[Awaited], owner: type) -> Callable[P, Coroutine[Any, Any, ResultT]]: ...
    def __get__(self, part: Any, owner: type) -> Any:
        if part is None:
            return self
        method = partial(self._run, part)
        return partial(asyncio.to_thread, method) if part.awaited else method

    def _run(self, part: PartT, /, *args: P.args, **named: P.kwargs) -> ResultT:
        """Call the method. The traceback of an error begins in the test."""
        __tracebackhide__ = True
        try:
            return self._method(part, *args, **named)
        except (CliError, AssertionError) as error:
            raise error.with_traceback(None) from None
