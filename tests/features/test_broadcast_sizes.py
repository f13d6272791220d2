"""How large a message may be, to the byte, on every way in and every way out (Limits; Errors 3; Events 3; ruling B2).

Games are sent plain JSON whatever the size; pages plain JSON, or above 4,096 bytes base64 of zlib of it.
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

from support.pusher_client import PusherClient, pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID, Client
from support.socket_client import SocketClient

KIB = 1_024
LARGEST = 4 * KIB
REFUSED = (400, "Message too large")
SENT = (200, "")

Send = Callable[[object], tuple[int, str]]


def noise(size: int) -> str:
    """Text that cannot be compressed to less than about six bits for each character."""
    return "".join(random.Random(7).choices(string.ascii_letters + string.digits + "+/", k=size))


def compact(data: object) -> bytes:
    """The JSON whose bytes are counted."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def squeezed(data: object) -> int:
    """Bytes of the data's JSON as zlib, which base64 turns from each three into four."""
    return len(zlib.compress(compact(data), 9))


def encoded(data: object) -> bytes:
    """The data's JSON as base64 of zlib."""
    return base64.b64encode(zlib.compress(compact(data), 9))


def words(size: int) -> str:
    """Text such as people write, of so many characters."""
    choose = random.Random(3)
    known = ["".join(choose.choices(string.ascii_lowercase, k=choose.randrange(2, 9))) for _ in range(200)]
    return " ".join(choose.choices(known, k=size))[:size]


@cache
def squeezed_to(size: int) -> object:
    """Data over 4,096 bytes of JSON, and of exactly so many as zlib."""
    for length in count(3_800):
        data = {"noise": noise(length), "rest": "a" * 2_000}
        if squeezed(data) == size:
            return data
        assert squeezed(data) < size + 10, f"no data has {size} bytes"
    raise AssertionError


@pytest.fixture
def page(live) -> Iterator[PusherClient]:
    with subscribed_page(live) as page:
        yield page


@pytest.fixture
def listener(live) -> Iterator[SocketClient]:
    """A game with the rights and the name of the admin, that follows all events of channel 777."""
    client = live.client("admin", user="9001", channel=CHANNEL)
    with SocketClient(live) as game:
        token = client.headers["Authorization"].split()[1]
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
        game.data("subscribe", "*")
        yield game


@pytest.fixture(
    params=["GET", "query", "broadcast", "extension_broadcast", "whisper_self", "pusher_broadcast", "socket"]
)
def send(request: pytest.FixtureRequest, admin: Client, game: SocketClient) -> Send:
    """Sends data one way; returns status and reason."""
    way = request.param

    def send(data: object) -> tuple[int, str]:
        if way == "socket":
            reply = game.request("broadcast", data={"topic": "news", "data": data})
            (error,) = reply.get("errors", [None])
            return (
                (error["status"], "Message too large" if "when compressed" in error["detail"] else "")
                if error
                else SENT
            )
        body = {"event": f"sandbox:{CLIENT_ID}:news" if way == "pusher_broadcast" else "news", "data": data}
        if way == "query":
            answer = admin.get("broadcast", params=body | {"data": json.dumps(data)})
        else:
            answer = admin.request("GET" if way == "GET" else "POST", "broadcast" if way == "GET" else way, json=body)
        return answer.status_code, answer.json().get("reason", "")

    return send


def heard_by_page(page: PusherClient) -> tuple[object, bool]:
    """The data of the one message that has come, and whether it came as plain JSON."""
    (heard,) = {json.dumps(each.data): each for each in page.broadcasts()}.values()  # a whisper has two names
    assert f"sandbox:{CLIENT_ID}:news" == heard.event
    return heard.data, heard.is_plain


def heard_by_game(game: SocketClient) -> object:
    """The data of the one update that has come."""
    update = game.update()
    assert game.no_update()
    return update["data"]["data"]


@pytest.mark.ruling("B2")
@pytest.mark.parametrize("size", [LARGEST - 1, LARGEST])
@pytest.mark.parametrize("text", [noise, words, "x".__mul__], ids=["noise", "words", "one letter"])
def test_up_to_4096_bytes_of_json_are_sent_plainly_to_everybody(send, page, listener, size, text):
    data = text(size - 2)
    assert size == len(compact(data))

    assert SENT == send(data)

    assert (data, True) == heard_by_page(page)
    assert data == heard_by_game(listener)


@pytest.mark.ruling("B2")
def test_4097_bytes_that_can_be_compressed_are_sent_compressed_to_pages_and_plainly_to_games(send, page, listener):
    data = "x" * (LARGEST - 1)
    assert LARGEST + 1 == len(compact(data))

    assert SENT == send(data)

    assert (data, False) == heard_by_page(page)
    assert data == heard_by_game(listener)


@pytest.mark.ruling("B2")
def test_4097_bytes_that_cannot_be_compressed_are_too_large_and_nobody_hears(send, page, listener):
    data = noise(LARGEST - 1)
    assert LARGEST + 1 == len(compact(data))

    assert REFUSED == send(data)

    assert [] == page.broadcasts()
    assert listener.no_update()


@pytest.mark.ruling("B2")
def test_data_that_fills_4096_bytes_when_compressed_is_sent_and_one_more_is_too_large(send, page, listener):
    fitting, too_large = squeezed_to(LARGEST // 4 * 3), squeezed_to(LARGEST // 4 * 3 + 1)
    assert [LARGEST, LARGEST + 4] == [len(encoded(fitting)), len(encoded(too_large))]

    assert [SENT, REFUSED] == [send(fitting), send(too_large)]

    assert (fitting, False) == heard_by_page(page)
    assert fitting == heard_by_game(listener)


@pytest.mark.ruling("B2")
def test_the_size_is_that_of_the_data_and_not_of_what_is_sent_around_it(admin, page):
    event = "e" * 256
    data = noise(LARGEST - 2)

    assert 200 == admin.post("broadcast", json={"event": event, "data": data}).status_code

    assert [(data, True)] == [(each.data, each.is_plain) for each in page.broadcasts()]


@pytest.mark.ruling("B2")
def test_the_size_is_that_of_compact_json_in_utf_8(admin, page, listener):
    data = {"a": ["é" * 1_000, noise(LARGEST - 2_000 - 13)]}
    assert LARGEST == len(compact(data))
    spaced = json.dumps({"event": "news", "data": data}, indent=4)  # with each é in six bytes
    assert len(spaced) > LARGEST + 4_000

    assert 200 == admin.post("broadcast", content=spaced).status_code

    assert (data, True) == heard_by_page(page)
    assert data == heard_by_game(listener)


@pytest.mark.ruling("B2")
@pytest.mark.parametrize("size", [LARGEST, 6_000, 20_000])
def test_6_kilobytes_of_what_people_write_are_safe_and_more_if_it_can_be_compressed(send, page, listener, size):
    data = {"text": words(6_000), "rest": "ab" * ((size - 6_000) // 2)} if size > LARGEST else {"text": words(LARGEST)}

    assert SENT == send(data)

    assert (data, False) == heard_by_page(page)
    assert data == heard_by_game(listener)


@pytest.mark.ruling("B2")
def test_a_compressed_message_may_hold_any_characters(admin, page):
    data = {"é\U0001f600": '\u2028\0\\"<&>' * 700}

    assert 200 == admin.post("broadcast", json={"event": "news", "data": data}).status_code

    assert (data, False) == heard_by_page(page)


@pytest.mark.ruling("B2")
def test_large_and_small_messages_keep_their_order(admin, page):
    sizes = [(number * 997) % 9_000 for number in range(40)]

    for size in sizes:
        admin.post("broadcast", json={"data": "x" * size}).raise_for_status()

    assert sizes == [len(each.data) for each in page.broadcasts()]


@pytest.mark.ruling("B2")
def test_a_large_whisper_is_compressed_under_both_names(admin, page):
    admin.post("broadcast", json={"data": "x" * 9_000, "target": "whisper-5551"}).raise_for_status()

    heard = page.broadcasts()
    assert [pusher_channel()] * 2 == [each.channel for each in heard]
    assert {("whisper-5551", 9_000, False), ("whisper-U5551", 9_000, False)} == {
        (each.target, len(each.data), each.is_plain) for each in heard
    }


@pytest.mark.ruling("B2")
def test_no_message_is_larger_than_the_readers_of_games_take_however_well_it_can_be_compressed(game, page, listener):
    fitting = "x" * (512 * KIB - 2)

    error = game.error("broadcast", data={"topic": "news", "data": fitting + "x"})
    game.data("broadcast", data={"topic": "news", "data": fitting})

    assert 400 == error["status"]
    assert f"{512 * KIB + 1} bytes" in error["detail"]
    assert (fitting, False) == heard_by_page(page)
    assert fitting == heard_by_game(listener)


@pytest.mark.ruling("B2")
def test_almost_two_megabytes_that_cannot_be_compressed_are_too_large(game, page):
    error = game.error("broadcast", data={"topic": "news", "data": words(2_000_000)})

    assert 400 == error["status"]
    assert "2000002 bytes" in error["detail"]
    assert [] == page.broadcasts()
