"""The client id in the path of a WebSocket (ruling X1)."""

from __future__ import annotations

import pytest

from emulator.errors import BadRequest, NotFound
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
HTTP_PATHS = ["/v1/e/vote", "/v1/e/ws", "//v1/e/vote", "/v1", "/schema", "/schema/openapi.json", "/_emulator/clock"]


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", CLIENT_IDS)
def test_the_last_segment_is_the_client_id(path: str):
    assert CLIENT_IDS[path] == client_id_of(path)


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", [*HTTP_PATHS, "/a/b/c/d/e/game"])
def test_any_other_path_has_no_socket(path: str):
    with pytest.raises(NotFound):
        client_id_of(path)


@pytest.mark.ruling("X1")
def test_a_client_id_has_at_most_100_characters():
    with pytest.raises(BadRequest, match="must be 1 to 100 printable"):
        client_id_of(f"/0.2.0/{'x' * 101}")
