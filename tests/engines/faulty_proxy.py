"""A TCP proxy between a node and its Redis, which can fail in several ways."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Self

_LINGER_ZERO = struct.pack("ii", 1, 0)
"""For `SO_LINGER`: closing sends a reset and drops unsent data."""


class FaultyProxy:
    """Listens on a port of its own and forwards connections to `port`, in a thread."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = 0
        self._ends: set[StreamWriter] = set()
        self._is_refusing = False
        self.refused = 0
        """Connections that were reset right after they were accepted."""
        self._flowing = asyncio.Event()
        """Cleared while nothing is forwarded."""
        self._flowing.set()
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
        """Return the proxy's address as a Redis URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def swallow(self) -> None:
        """Forward nothing, as if all packets were lost; neither side sees an error."""
        self._do(self._swallow)

    def reset(self) -> None:
        """Reset all connections, and every new one."""
        self._do(self._reset_all)

    def forward_to(self, port: int) -> None:
        """Forward later connections to another server."""
        self._to = port

    def restore(self) -> None:
        """Work again, and forward what was held back: the senders' TCP would retransmit it."""
        self._do(self._restore)

    def _do(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(timeout=10)

    async def _swallow(self) -> None:
        self._flowing.clear()

    async def _reset_all(self) -> None:
        self._is_refusing = True
        for end in self._ends:
            _reset(end)

    async def _restore(self) -> None:
        self._is_refusing = False
        self._flowing.set()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        self._server.close()
        await self._restore()
        await self._reset_all()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, from_node: StreamReader, to_node: StreamWriter) -> None:
        ends = {to_node}
        try:
            if self._is_refusing:
                self.refused += 1
                _reset(to_node)
                return
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._to)
            ends.add(to_server)
            self._ends |= ends
            await asyncio.gather(self._forward(from_node, to_server), self._forward(from_server, to_node))
        except OSError:
            _reset(to_node)  # there is no server
        finally:
            self._ends -= ends
            for end in ends:
                end.close()

    async def _forward(self, source: StreamReader, sink: StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        sink.close()


def _reset(end: StreamWriter) -> None:
    connection = end.get_extra_info("socket")
    with suppress(OSError):  # already closed
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
    end.transport.abort()
