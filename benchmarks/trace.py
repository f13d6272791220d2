"""Shows the way of one request through the code: `python benchmarks/trace.py [CASE] [--walk] [--calls]`.

Prints, for one request of each case or of CASE ("POST vote", for example):

calls    calls of functions in our packages; a coroutine counts once, however often it is resumed
all      the same with those in libraries; comprehensions and C functions are not counted
files    the files of our packages in which control was, templates included
stops    how often control came into one of these files from another; libraries between them are passed over
returns  stops in a file that was left before: calls that return, coroutines that continue, and new calls

`--walk` also prints the stops in order, and `--calls` the functions of our packages in order, indented below their
callers. The service is a sandbox in this process with its data in a file. It has answered the same request before, so
its caches are full. Work in threads is done in the event loop's thread. The request ends when nothing is left to do at
once. Of several requests, the one with the fewest calls is shown: a random number, for example, may take an attempt
more.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import sys
import types
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

PACKAGES = ("emulator", "extcli")
WARM_UP = 20
"""Requests that fill caches, before those that are traced."""
TRACED = 15
_TURNS = 20
"""Turns of the event loop after a response in which its work ends."""
_INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")
"""Frames that only Python 3.11 makes."""


class Trace(NamedTuple):
    """The way of one request."""

    calls: int
    all: int
    walk: tuple[str, ...]
    """The files in order, each relative to the folder of its package's folder."""
    functions: tuple[str, ...]
    """The functions of our packages in the order of their calls, each after a space per caller."""

    @property
    def files(self) -> int:
        return len(set(self.walk))

    @property
    def returns(self) -> int:
        return len(self.walk) - self.files


class Tracer:
    """Notes calls and files while it is active, in the thread that activates it."""

    def __init__(self, *folders: str) -> None:
        """`folders` hold the packages whose files count, each with its path up to the package's name."""
        self._folders = tuple(folder + os.sep for folder in folders)
        self._own: dict[types.CodeType, str] = {}
        self._resumed: dict[int, types.FrameType] = {}
        self._calls = self._all = 0
        self._walk: list[str] = []
        self._functions: list[str] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        """Trace what runs in this context, except this file and its neighbours."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def result(self) -> Trace:
        return Trace(self._calls, self._all, tuple(self._walk), tuple(self._functions))

    def _file(self, code: types.CodeType) -> str:
        """Return the file if it counts, "" if it is of a library."""
        if code not in self._own:
            folder = next((each for each in self._folders if code.co_filename.startswith(each)), None)
            start = len(os.path.dirname(folder.rstrip(os.sep))) + 1 if folder else 0
            self._own[code] = code.co_filename[start:] if folder else ""
        return self._own[code]

    def _note(self, frame: types.FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call":
            if os.path.dirname(code.co_filename) != _HERE and code.co_name not in _INLINED:
                self._count(frame, code)
            self._stop(code)
        elif event == "return" and frame.f_back:
            self._stop(frame.f_back.f_code)

    def _count(self, frame: types.FrameType, code: types.CodeType) -> None:
        if code.co_flags & _SUSPENDS:
            if id(frame) in self._resumed:
                return
            self._resumed[id(frame)] = frame  # keeps the id from being used again
        self._all += 1
        if file := self._file(code):
            self._calls += 1
            self._functions.append(f"{' ' * self._depth(frame)}{code.co_qualname}  {file}")

    def _depth(self, frame: types.FrameType) -> int:
        """Return how many callers of a frame are in our packages."""
        depth, caller = 0, frame.f_back
        while caller:
            depth += bool(self._file(caller.f_code))
            caller = caller.f_back
        return depth

    def _stop(self, code: types.CodeType) -> None:
        file = self._file(code)
        if file and self._walk[-1:] != [file]:
            self._walk.append(file)


_HERE = os.path.dirname(os.path.abspath(__file__))
_SUSPENDS = 0x20 | 0x80 | 0x200
"""`CO_GENERATOR`, `CO_COROUTINE` and `CO_ASYNC_GENERATOR`."""


# The requests


Step = tuple[bytes | None, bytes]
"""What precedes a traced request, if anything does, and the request."""


async def vote(wire: Any) -> AsyncIterator[Step]:
    """A vote by a user who has voted before."""
    from audience import authorization
    from load import request

    header = authorization("1")
    while True:
        yield None, request("POST", "/v1/e/vote?id=poll", header, b'{"value":1}')


async def socket_set(wire: Any) -> AsyncIterator[Step]:
    """A game writes the state of its channel."""
    from in_process import open_socket

    frame = await open_socket(wire)
    while True:
        yield None, frame("set", "state", state_id="channel", state={"scene": "intro"})


async def draw(wire: Any) -> AsyncIterator[Step]:
    """A viewer draws a code. Each user may draw one."""
    from audience import authorization
    from load import request

    backend = authorization("1", "backend")
    drawers = [f"viewer{number}" for number in range(WARM_UP + TRACED)]
    codes = {"names": ["prize"], "codes": [[f"CODE{number:04}" for number in range(10 * len(drawers))]]}
    marked = {"prizes": [0], "prize_limits": [1], "users": drawers}
    await wire.call(request("PUT", "/v1/e/codes", backend, json.dumps(codes).encode()))
    await wire.call(request("POST", "/v1/e/codes/mark_from_list", backend, json.dumps(marked).encode()))
    for user in drawers:
        header = authorization(user)
        seen = request("GET", "/v1/e/codes/eligibility", header)
        yield seen, request("POST", "/v1/e/codes/redeem", header, b'{"prize":0}')


async def page(wire: Any) -> AsyncIterator[Step]:
    """The screen of polls in the dashboard, with one poll."""
    from audience import authorization
    from load import request

    await wire.call(request("POST", "/v1/e/vote?id=poll", authorization("1"), b'{"value":1}'))
    while True:
        yield None, request("GET", "/_emulator/ui/polls", "")


async def fork(wire: Any) -> AsyncIterator[Step]:
    """A new namespace with the data of the default one: a vote and a state. The one before is dropped first."""
    from audience import authorization
    from load import request

    await wire.call(request("POST", "/v1/e/vote?id=poll", authorization("1"), b'{"value":1}'))
    await wire.call(request("POST", "/v1/e/channel_state", authorization("1", "broadcaster"), b'{"scene":"intro"}'))
    await wire.call(request("POST", "/_ns/copy", ""))
    while True:
        yield request("DELETE", "/_ns/copy", ""), request("POST", "/_ns/copy?from=default", "")


CASES: dict[str, Callable[[Any], AsyncIterator[Step]]] = {
    "POST vote": vote,
    "socket set": socket_set,
    "draw of a code": draw,
    "dashboard page": page,
    "fork of a namespace": fork,
}


# Tracing


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


async def trace_case(case: str) -> Trace:
    """Make the requests of a case, and return the shortest way of those that count."""
    from in_process import connected

    from emulator.core.environment import SANDBOX

    asyncio.get_running_loop().set_default_executor(_AtOnce(1))
    traces: list[Trace] = []
    gc.disable()  # a collection may run code of libraries
    with TemporaryDirectory() as folder:
        async with connected(SANDBOX, folder) as wire:
            steps = CASES[case](wire)
            for number in range(WARM_UP + TRACED):
                before, request = await anext(steps)
                if before:
                    await wire.call(before)
                await _settle()
                tracer = Tracer(*map(_folder_of, PACKAGES))
                with tracer.active():
                    reply = await wire.call(request)
                    await _settle()
                assert reply.startswith(b"HTTP/1.1 200") or b'"ok":true' in reply, reply
                if number >= WARM_UP:
                    traces.append(tracer.result())
    return min(traces)


def _folder_of(package: str) -> str:
    found = importlib.util.find_spec(package)
    if not found or not found.submodule_search_locations:
        sys.exit(f"{package} is not installed")
    return found.submodule_search_locations[0]


def main() -> None:
    import uvloop

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("case", nargs="*", metavar="CASE", help=f"one of: {', '.join(CASES)}")
    parser.add_argument("--walk", action="store_true", help="print the stops in order")
    parser.add_argument("--calls", action="store_true", help="print the functions in the order of their calls")
    arguments = parser.parse_args()
    chosen = [" ".join(arguments.case)] if arguments.case else list(CASES)
    if chosen[0] not in CASES:
        parser.error(f"no such case: {chosen[0]!r}; the cases are {', '.join(CASES)}")
    print(f"{'':20} {'calls':>7} {'all':>7} {'files':>7} {'stops':>7} {'returns':>7}")
    for case in chosen:
        trace = uvloop.run(trace_case(case))
        print(f"{case:20} {trace.calls:7} {trace.all:7} {trace.files:7} {len(trace.walk):7} {trace.returns:7}")
        if arguments.walk:
            print("\n".join(f"  {stop}" for stop in trace.walk))
        if arguments.calls:
            print("\n".join(f"  {call}" for call in trace.functions))


if __name__ == "__main__":
    main()
