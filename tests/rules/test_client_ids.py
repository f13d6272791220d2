"""Which texts are client ids, wherever one is given, also in paths (rulings A1, X1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.auth.claims import split_header
from emulator.contract.extensions_file import InvalidExtensions, parse
from emulator.control.calls import CallBody, check_call
from emulator.control.seeds import read_seed
from emulator.core.errors import NotFound, ServiceError
from emulator.features.pins.rules import checked_client_id
from emulator.http.access import bare_client_id
from emulator.realtime.gateway import path_client_id

CLIENT_IDS = [
    "a",
    "my-extension",
    "x" * 100,
    "!#$%&'()*+,-.:;<=>?@[]^_`{|}~",
    "eyj",
    "Bearer1",
    "\xff",
    "\xe4\xa1\xac\xae",
    "0",
    "kimne78kx3ncx6brgo4mv6wki5h1ko",
]
OTHERS = [
    "",
    "x" * 101,
    "a b",
    'a"b',
    '"',
    "a\x00b",
    "a\x7fb",
    "a\x85b",
    "a\xa0b",
    "a\xadb",
    "\u0101",
    "a\u200bb",
    "\u0663",
    "a\n",
    "\n",
    "Bearer",
    "bearer",
    "eyJ",
    "eyJab",
    "eyJhbGciOiJIUzI1NiJ9.e30.x",
]


def in_header(client_id: str) -> bool:
    return split_header(f"{client_id} a.b.c") == (client_id, "a.b.c")


def in_extensions_file(client_id: str) -> bool:
    text = f"[extensions.{json.dumps(client_id)}]\nsecrets = ['c2VjcmV0IG9mIDMyIGJ5dGVzIG9yIG1vcmUsIHllcw==']\n"
    return client_id in parse(Path("extensions.toml"), text).tables


def in_seed(client_id: str) -> bool:
    document = {"extcli": 1, "client_id": client_id, "channel": "777", "links": [{}]}
    return read_seed(json.dumps(document).encode())["client_id"] == client_id


PLACES: dict[str, Callable[[str], bool]] = {
    "header": in_header,
    "header without a token": lambda client_id: bare_client_id(client_id) == client_id != "",
    "body": lambda client_id: checked_client_id(client_id, "identifier") == client_id,
    "path": lambda client_id: path_client_id(f"/0.2.0/{client_id}") == client_id != "",
    "extensions file": in_extensions_file,
    "call": lambda client_id: check_call(CallBody("/v1/e/vote", client_id)) is None,
    "seed": in_seed,
}


@pytest.mark.parametrize("place", PLACES)
def test_all_places_accept_the_same_client_ids(place: str):
    def is_accepted(client_id: str) -> bool:
        try:
            return PLACES[place](client_id)
        except (ServiceError, InvalidExtensions):
            return False

    assert CLIENT_IDS == [each for each in (*CLIENT_IDS, *OTHERS) if is_accepted(each)]


PATHS = {
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


@pytest.mark.parametrize("path", PATHS)
def test_the_last_segment_is_the_client_id(path: str):
    assert PATHS[path] == path_client_id(path)


@pytest.mark.parametrize("path", ["/v1", "/v1/e/ws", "/schema/openapi.json", "/a/b/c/d/e/game"])
def test_any_other_path_has_no_socket(path: str):
    with pytest.raises(NotFound):
        path_client_id(path)
