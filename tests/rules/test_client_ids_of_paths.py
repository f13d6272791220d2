"""The client id in the path of a WebSocket (ruling X1)."""

from __future__ import annotations

import pytest

from emulator.core.errors import NotFound
from emulator.realtime.gateway import client_id_of

CLIENT_IDS = {
    "/ws": "",
    "/ws/": "",
    "//ws": "",
    "/": "",
    "": "",
    "/game": "game",
    "/0.2.0/game": "game",
    "/0.2.0/game/": "",
    "/99.0.0-beta/game": "game",
    "/0.2.0/gateway-unity/1.0.3/game": "game",
    "/0.2.0/csharp/0.0.1/game": "game",
    "//0.2.0//game": "game",
    "//0.2.0/gateway-unity//1.0.3/game": "game",
    f"/0.2.0/{'x' * 100}": "x" * 100,
}


@pytest.mark.parametrize("path", CLIENT_IDS)
def test_the_last_segment_is_the_client_id(path: str):
    assert CLIENT_IDS[path] == client_id_of(path)


@pytest.mark.parametrize("path", ["/v1", "/v1/e/ws", "/schema/openapi.json", "/a/b/c/d/e/game"])
def test_any_other_path_has_no_socket(path: str):
    with pytest.raises(NotFound):
        client_id_of(path)
