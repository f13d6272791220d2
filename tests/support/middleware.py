"""Applications around the service's own, for tests that change what it receives or sends."""

from __future__ import annotations

from typing import Any


class Middleware:
    """Forwards everything to the application that it wraps. It must see every request, so it has no hot path."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)
