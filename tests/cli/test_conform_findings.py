"""`extcli conform` reports values as JSON, never as Python writes them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from emulator.http.middleware import Application, Middleware
from support.service import live_server

pytestmark = pytest.mark.slow
PYTHON = re.compile(r"\b(None|True|False|NoneType)\b|<class|object has no|\bb'|[\[{(]'")
"""What Python would print, and JSON does not."""


def emptied(value: Any) -> Any:
    """Replace all but objects, arrays and `errors` by null."""
    if isinstance(value, dict):
        return {name: each if name == "errors" else emptied(each) for name, each in value.items()}
    return [emptied(each) for each in value] if isinstance(value, list) else None


class Answering(Middleware):
    """Changes the responses of the API: the status, or the values in the body if `status` is 0."""

    def __init__(self, app: Application, status: int) -> None:
        super().__init__(app)
        self._status = status

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/v1/e/") or scope["path"].endswith("authtoken"):
            return await self._app(scope, receive, send)
        start: dict[str, Any] = {}
        body = b""

        async def send_changed(message: Any) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            changed = body if self._status else json.dumps(emptied(json.loads(body))).encode()
            headers = [each for each in start["headers"] if each[0] != b"content-length"]
            await send({**start, "status": self._status or start["status"], "headers": headers})
            await send({"type": "http.response.body", "body": changed})

        await self._app(scope, receive, send_changed)


@pytest.mark.parametrize("status", [0, 200, 418])
def test_a_finding_shows_json_as_the_service_sends_it(extcli, status: int):
    with live_server(wrap=lambda app: Answering(app, status)) as live:
        result = extcli("conform", "--writes", "--url", live.url, "-o", "json")

    found = [each for each in result.json["rules"] if each["status"] == "fail"]
    texts = [(each["rule"], each[name]) for each in found for name in ("what", "expected", "seen")]
    assert 50 < len(found)
    assert [] == [each for each in texts if PYTHON.search(each[1])]
