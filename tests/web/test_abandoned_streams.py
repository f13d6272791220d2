"""A request that ends between two chunks of its response is no longer held, even if something still refers to it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.process import wait_until
from support.service import live_server
from support.waits import held


class Broken(Exception):
    """The connection is lost while a message is sent."""


class Breaking:
    """An application whose streams break at a message of a type. It keeps the errors, and with them the frames."""

    def __init__(self, app: Any, at: str, kept: list[Exception]) -> None:
        self.app, self.at, self.kept = app, at, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self.app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if scope["path"].endswith(("/stream", "/events")) and message["type"] == self.at:
                raise Broken
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except Exception as error:
            self.kept.append(error)
            raise


@pytest.mark.parametrize("at", ["http.response.start", "http.response.body"])
@pytest.mark.parametrize("path", ["/_emulator/journal/stream", "/_emulator/ui/requests/events"])
def test_a_stream_whose_connection_breaks_is_no_longer_held(path: str, at: str):
    kept: list[Exception] = []
    with live_server(wrap=lambda app: Breaking(app, at, kept)) as live:
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{live.url}{path}").raise_for_status()
        wait_until(lambda: kept)

        assert 0 == held(live)
