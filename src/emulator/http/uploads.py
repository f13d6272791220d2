"""Uploads: requests with bodies that may be large. A process takes a limited number at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from emulator.config.extensions import Extensions
from emulator.http.call import Call
from emulator.http.refusals import too_many_uploads

Handler = Callable[[Call], Awaitable[object]]


class Uploads:
    """The uploads of a process. Each takes a few MiB of memory, and space for temporary files, until its response."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running: Counter[str] = Counter()
        """By client id; empty for calls without one."""
        self.extensions: Extensions | None = None
        """Who shares the uploads, in production: one of several extensions leaves half of them to the others."""

    def __len__(self) -> int:
        """Return the number of uploads that run."""
        return self._running.total()

    def counted(self, answer: Handler) -> Handler:
        """Return a handler that counts as an upload while it runs. It raises `TooManyUploads` beyond the limit."""

        async def upload(call: Call) -> object:
            client_id = call.caller.client_id if call.has_caller else call.client_id
            self._check(client_id)
            self._running[client_id] += 1
            try:
                return await answer(call)
            finally:
                self._running[client_id] -= 1
                self._running += Counter()  # forgets who has no upload

        return upload

    def _check(self, client_id: str) -> None:
        if len(self) >= self._limit:
            raise too_many_uploads(limit=self._limit)
        if self.extensions is not None and len(self.extensions.current) > 1:
            share = (self._limit + 1) // 2
            if self._running[client_id] >= share:
                raise too_many_uploads(limit=share, is_share=True)
