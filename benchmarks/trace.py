"""Shows the way of one request through the code: `python benchmarks/trace.py [CASE]`.

Prints the calls of functions in our packages for one request of each case or of CASE (`POST vote`, for example), and
how many there are in how many files; with a CASE also the functions in order, indented below their callers. A coroutine
counts once, however often it is resumed.

The service is a sandbox in this process with its data in a file. It has answered the same request before, so its caches
are full. Work in threads is done in the event loop's thread. The request ends when nothing is left to do at once. Of
several requests, the one with the fewest calls is shown: a random number, for example, may take an attempt more.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import types
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop
from audience import authorization
from crowd import frame, message
from in_process import Wire, connected, open_socket
from load import request

import emulator
from emulator.core.environment import SANDBOX

SRC = f"{Path(emulator.__file__).parent.parent}/"
WARM_UP = 20
"""Requests that fill caches, before those that are traced."""
TRACED = 15
_TURNS = 20
"""Turns of the event loop after a response in which its work ends."""
_INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")
"""Frames that only Python 3.11 makes."""
_SUSPENDS = 0x20 | 0x80 | 0x200
"""`CO_GENERATOR`, `CO_COROUTINE` and `CO_ASYNC_GENERATOR`."""


class Tracer:
    """Notes the functions of our packages that are called while it is the profiler of this thread."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        """In order, each after two spaces per caller."""
        self.files: set[str] = set()
        self._resumed: dict[int, types.FrameType] = {}

    def note(self, frame: types.FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SRC) or code.co_name in _INLINED:
            return
        if code.co_flags & _SUSPENDS:
            if id(frame) in self._resumed:
                return
            self._resumed[id(frame)] = frame  # keeps the id from being used again
        file = code.co_filename.removeprefix(SRC)
        self.files.add(file)
        self.calls.append(f"{'  ' * self._depth(frame)}{code.co_qualname}  {file}")

    def _depth(self, frame: types.FrameType) -> int:
        """Return how many callers of a frame are in our packages."""
        depth, caller = 0, frame.f_back
        while caller:
            depth += caller.f_code.co_filename.startswith(SRC)
            caller = caller.f_back
        return depth


USER = authorization("1")


async def vote(wire: Wire) -> AsyncIterator[bytes]:
    """A vote by a user who has voted before."""
    while True:
        yield request("POST", "/v1/e/vote?id=poll", USER, b'{"value":1}')


async def socket_set(wire: Wire) -> AsyncIterator[bytes]:
    """A game writes the state of its channel."""
    await open_socket(wire)
    while True:
        yield frame(message("set", "state", state_id="channel", state={"scene": "intro"}))


async def page(wire: Wire) -> AsyncIterator[bytes]:
    """The screen of polls in the dashboard, with one poll."""
    await wire.call(request("POST", "/v1/e/vote?id=poll", USER, b'{"value":1}'))
    while True:
        yield request("GET", "/_emulator/ui/polls", "")


CASES: dict[str, Callable[[Wire], AsyncIterator[bytes]]] = {
    "POST vote": vote,
    "socket set": socket_set,
    "dashboard page": page,
}


class _AtOnce(ThreadPoolExecutor):
    """Runs work in the calling thread, so that it is traced and comes at the same point each time."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*args, **named))
        except Exception as error:
            done.set_exception(error)
        return done


@types.coroutine
def _turn() -> Generator[None, None, None]:
    """Let the event loop turn once."""
    yield


async def _settle() -> None:
    for _ in range(_TURNS):
        await _turn()


async def trace_case(case: str) -> Tracer:
    """Make the requests of a case, and return the shortest way of those that count."""
    asyncio.get_running_loop().set_default_executor(_AtOnce(1))
    traces: list[Tracer] = []
    gc.disable()  # a collection may run code of libraries
    with TemporaryDirectory() as folder:
        async with connected(SANDBOX, folder) as wire:
            calls = CASES[case](wire)
            for number in range(WARM_UP + TRACED):
                call = await anext(calls)
                await _settle()
                tracer = Tracer()
                sys.setprofile(tracer.note)
                reply = await wire.call(call)
                await _settle()
                sys.setprofile(None)
                assert reply.startswith(b"HTTP/1.1 200") or b'"ok":true' in reply, reply
                if number >= WARM_UP:
                    traces.append(tracer)
    return min(traces, key=lambda each: len(each.calls))


def main(*words: str) -> None:
    chosen = [" ".join(words)] if words else list(CASES)
    if chosen[0] not in CASES:
        sys.exit(f"no such case: {chosen[0]!r}; the cases are {', '.join(CASES)}")
    for case in chosen:
        trace = uvloop.run(trace_case(case))
        print(f"{case:20} {len(trace.calls):4} calls in {len(trace.files)} files")
        if words:
            print("\n".join(f"  {call}" for call in trace.calls))


if __name__ == "__main__":
    main(*sys.argv[1:])
