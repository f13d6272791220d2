"""The size limit of a message, in every form of request (Limits; Errors 3; Events 3; ruling B2).

Games receive plain JSON of any size. Pages receive plain JSON, or above 4,096 bytes base64 of its zlib compression.
"""

from __future__ import annotations

import base64
import json
import random
import string
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count

import pytest

from emulator.core.settings import Limits, Settings
from support.broadcasts import subscribed_game
from support.pusher_client import PusherClient, subscribed_page
from support.service import CLIENT_ID, Client, LiveServer, live_server
from support.socket_client import SocketClient

KIB = 1_024
LIMIT = 4 * KIB
REFUSED = (400, "Message too large")
SENT = (200, "")

Send = Callable[[object], tuple[int, str]]


def noise(size: int) -> str:
    """Return text that compresses to about six bits per character."""
    return "".join(random.Random(7).choices(string.ascii_letters + string.digits + "+/", k=size))


def compact(data: object) -> bytes:
    """Return the JSON whose bytes count."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def zlib_size(data: object) -> int:
    """Return the size of the data's JSON after zlib; base64 makes four bytes of each three."""
    return min(len(compressed) for compressed in compressions(data))


def encoded(data: object) -> bytes:
    """Return the data's JSON after zlib and base64."""
    return base64.b64encode(min(compressions(data), key=len))


def compressions(data: object) -> Iterator[bytes]:
    """Yield the data's JSON after zlib, by each strategy that the service tries."""
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY):
        compressor = zlib.compressobj(9, strategy=strategy)
        yield compressor.compress(compact(data)) + compressor.flush()


@cache
def data_of_zlib_size(size: int) -> object:
    """Return data with over 4,096 bytes of JSON and exactly `size` bytes after zlib."""
    for length in count(3_800):
        data = {"noise": noise(length), "rest": "a" * 2_000}
        if zlib_size(data) == size:
            return data
        assert zlib_size(data) < size + 10, f"no data has {size} bytes"
    raise AssertionError


@pytest.fixture(
    params=["GET", "query", "broadcast", "extension_broadcast", "whisper_self", "pusher_broadcast", "socket"]
)
def send(request: pytest.FixtureRequest, admin: Client, game: SocketClient) -> Send:
    """Send data in one form of request; return status and reason."""
    form = request.param

    def send(data: object) -> tuple[int, str]:
        if form == "socket":
            reply = game.request("broadcast", data={"topic": "news", "data": data})
            if "errors" not in reply:
                return SENT
            (error,) = reply["errors"]
            is_size = "bytes compressed; the limit is 4096" in error["detail"]
            return error["status"], "Message too large" if is_size else error["detail"]
        body = {"event": f"sandbox:{CLIENT_ID}:news" if form == "pusher_broadcast" else "news", "data": data}
        if form == "query":
            answer = admin.get("broadcast", params=body | {"data": json.dumps(data)})
        else:
            answer = admin.request(
                "GET" if form == "GET" else "POST", "broadcast" if form == "GET" else form, json=body
            )
        return answer.status_code, answer.json().get("reason", "")

    return send


def received_by_page(page: PusherClient) -> tuple[object, bool]:
    """Return the data of the one event, and whether it is plain JSON."""
    (broadcast,) = {
        json.dumps(each.data): each for each in page.broadcasts()
    }.values()  # a whisper arrives under two names
    return broadcast.data, broadcast.is_plain


def received_by_game(game: SocketClient) -> object:
    """Return the data of the one update."""
    update = game.update()
    assert game.no_update()
    return update["data"]["data"]


def test_4097_compressible_bytes_are_sent_compressed_to_pages_only(send, page, admin_game):
    data = "x" * (LIMIT - 1)
    assert LIMIT + 1 == len(compact(data))

    assert SENT == send(data)

    assert (data, False) == received_by_page(page)
    assert data == received_by_game(admin_game)


@pytest.mark.parametrize("size", [6_000, 60_000], ids=["short", "long"])
def test_a_refusal_gives_both_sizes(admin, game, size):
    data = noise(size - 2)
    sizes = f"data: {size} bytes of compact JSON, {len(encoded(data))} bytes compressed"

    infos = [admin.post(path, json={"data": data}).json()["info"] for path in ("broadcast", "whisper_self")]
    infos.append(game.error("broadcast", data={"topic": "news", "data": data})["detail"])

    assert all(each.startswith(sizes) for each in infos)


@pytest.mark.slow
def test_4096_bytes_after_compression_are_sent_and_more_are_refused(send, page, admin_game):
    fitting, too_large = data_of_zlib_size(LIMIT // 4 * 3), data_of_zlib_size(LIMIT // 4 * 3 + 1)
    assert [LIMIT, LIMIT + 4] == [len(encoded(fitting)), len(encoded(too_large))]

    assert [SENT, REFUSED] == [send(fitting), send(too_large)]

    assert (fitting, False) == received_by_page(page)
    assert fitting == received_by_game(admin_game)


def test_the_limit_counts_bytes_of_compact_json_of_the_data_in_utf_8(admin, page):
    data = {"a": ["é" * 1_000, noise(LIMIT - 2_000 - 13)]}
    assert LIMIT == len(compact(data))

    assert 200 == admin.post("broadcast", content=json.dumps({"event": "e" * 256, "data": data}, indent=4)).status_code

    assert [(data, True)] == [(each.data, each.is_plain) for each in page.broadcasts()]


def test_large_and_small_messages_keep_their_order(admin, page):
    sizes = [(number * 997) % 9_000 for number in range(40)]

    for size in sizes:
        admin.post("broadcast", json={"data": "x" * size}).raise_for_status()

    assert sizes == [len(each.data) for each in page.broadcasts()]


@pytest.fixture
def roomy() -> Iterator[LiveServer]:
    """A service that takes requests of 4 MiB."""
    with live_server(Settings(limits=Limits(body=4 * KIB * KIB, frame=5 * KIB * KIB))) as live:
        yield live


def test_over_512_kib_are_refused_even_if_compressible(roomy: LiveServer):
    fitting = "x" * (512 * KIB - 2)
    with subscribed_page(roomy) as page, subscribed_game(roomy, "admin", user="9001") as game:
        error = game.error("broadcast", data={"topic": "news", "data": fitting + "x"})
        game.data("broadcast", data={"topic": "news", "data": fitting})

        assert 400 == error["status"]
        assert f"{512 * KIB + 1} bytes" in error["detail"]
        assert (fitting, False) == received_by_page(page)
        assert fitting == received_by_game(game)
