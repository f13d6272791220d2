"""A way between one node and its server, which can be cut."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Self

_AT_ONCE = struct.pack("ii", 1, 0)
"""For `SO_LINGER`: a closed connection is reset, and nothing more is sent."""


class Wire:
    """Takes connections on a port of its own and carries what they say to `port`, while it is whole."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = 0
        self._ends: set[StreamWriter] = set()
        self._is_refusing = False
        self.refused = 0
        """Connections that were broken at their beginning."""
        self._passing = asyncio.Event()
        """Whether anything passes on the connections that are there; each keeps the one of its beginning."""
        self._passing.set()
        self._stopped = {self._passing}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._do(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self) -> str:
        """As of a Redis server."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def connections(self) -> int:
        """How many there are, those included of which only one side knows."""
        return len(self._ends) // 2

    def swallow(self) -> None:
        """Let nothing through, as where packets vanish: nobody is told that anything is wrong."""
        self._do(self._swallow)

    def delay(self) -> None:
        """Let nothing through on the connections that there are; those that are begun later are whole."""
        self._do(self._delay)

    def reset(self) -> None:
        """Break all connections, and each that is begun."""
        self._do(self._break)

    def lead_to(self, port: int) -> None:
        """Take connections that are begun from now on to another server."""
        self._to = port

    def mend(self) -> None:
        """Let through again, also what was held up: whoever has sent it goes on sending it until it arrives."""
        self._do(self._repair)

    def _do(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(timeout=10)

    async def _swallow(self) -> None:
        self._passing.clear()

    async def _delay(self) -> None:
        self._passing.clear()
        self._passing = asyncio.Event()
        self._passing.set()
        self._stopped.add(self._passing)

    async def _break(self) -> None:
        self._is_refusing = True
        for end in self._ends:
            _reset(end)

    async def _repair(self) -> None:
        self._is_refusing = False
        for each in self._stopped:
            each.set()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        self._server.close()
        await self._repair()
        await self._break()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    async def _carry(self, heard: StreamReader, here: StreamWriter) -> None:
        passing = self._passing
        ends = {here}
        try:
            if self._is_refusing:
                self.refused += 1
                _reset(here)
                return
            said, there = await asyncio.open_connection("127.0.0.1", self._to)
            ends.add(there)
            self._ends |= ends
            await asyncio.gather(_pass_on(heard, there, passing), _pass_on(said, here, passing))
        except OSError:
            _reset(here)  # nobody is at the other end
        finally:
            self._ends -= ends
            for end in ends:
                end.close()


async def _pass_on(source: StreamReader, sink: StreamWriter, passing: asyncio.Event) -> None:
    with suppress(OSError):
        while some := await source.read(65_536):
            await passing.wait()
            sink.write(some)
            await sink.drain()
    sink.close()


def _reset(end: StreamWriter) -> None:
    wire = end.get_extra_info("socket")
    with suppress(OSError):  # it is closed
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    end.transport.abort()
