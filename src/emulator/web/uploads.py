"""Uploads: requests with bodies that may be large. A process takes a limited number at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from emulator.web.call import Call
from emulator.web.refusals import too_many_uploads

Handler = Callable[[Call], Awaitable[object]]


class Uploads:
    """The uploads of a process. Each takes a few MiB of memory, and space for temporary files, until it is answered."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running = 0

    def __len__(self) -> int:
        """Return the number of uploads that run."""
        return self._running

    def counted(self, answer: Handler) -> Handler:
        """Return a handler that counts as an upload while it runs. It raises `TooManyUploads` beyond the limit."""

        async def upload(call: Call) -> object:
            if self._running >= self._limit:
                raise too_many_uploads(limit=self._limit)
            self._running += 1
            try:
                return await answer(call)
            finally:
                self._running -= 1

        return upload
