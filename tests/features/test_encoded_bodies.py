"""A body that is no UTF-8 is refused by name: compressed, with a byte order mark, in UTF-16, with a lone surrogate.

Ruling W2.
"""

from __future__ import annotations

import gzip
import zlib

import pytest

from support.service import Client, LiveServer
from support.socket_client import SocketClient

TEXT = '{"value":1,"codes":[["é"]],"names":["a"]}'
BYTES = TEXT.encode()
BODIES = [
    (gzip.compress(BYTES), "is compressed with gzip"),
    (zlib.compress(BYTES), "is compressed with deflate"),
    (zlib.compress(BYTES, 1), "is compressed with deflate"),
    (b"\x28\xb5\x2f\xfd" + BYTES, "is compressed with zstd"),
    (b"PK\3\4" + BYTES, "is compressed with zip"),
    (b"\xef\xbb\xbf" + BYTES, "begins with a byte order mark"),
    *((TEXT.encode(f"utf-16{order}"), "is UTF-16") for order in ("", "-le", "-be")),
    *((TEXT.encode(f"utf-32{order}"), "is UTF-32") for order in ("", "-be")),
    (TEXT.encode("latin-1"), "is not UTF-8: byte 0xe9"),
    (BYTES.replace("é".encode(), b"a\\uDE00b"), "has the lone surrogate \\uDE00"),
    (BYTES.replace("é".encode(), b"\\ud83d\\ude00\\ude01"), "has the lone surrogate \\ude01"),
    (BYTES.replace("é".encode(), b"\\\\\\ud83d"), "has the lone surrogate \\ud83d"),
    (BYTES.replace("é".encode(), b"\xed\xa0\xbd"), "has a lone surrogate in UTF-8"),
]
CALLS = [("POST", "vote"), ("POST", "accumulate"), ("POST", "channel_state"), ("PUT", "codes")]


@pytest.mark.parametrize(("method", "path"), CALLS[1:])
def test_a_body_in_another_encoding_is_refused_by_name(admin: Client, method: str, path: str):
    for body, problem in BODIES:
        answer = admin.request(method, path, content=body)

        assert (400, "Malformed json body") == (answer.status_code, answer.json()["reason"]), problem
        assert answer.json()["info"].startswith(f"the body is not valid JSON: it {problem}")


@pytest.mark.parametrize("encoding", ["gzip", "x-made-up", "gzip, br"])
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_the_header_content_encoding_is_named_if_the_body_is_unreadable(admin: Client, method, path, encoding: str):
    answer = admin.request(method, path, content=b"\x8b\x14\x80{}\3", headers={"Content-Encoding": encoding})

    assert (400, True) == (answer.status_code, f"its Content-Encoding is {encoding};" in answer.json()["info"])


def test_plain_json_is_read_whatever_its_content_encoding(admin: Client):
    assert 200 == admin.post("vote", content=BYTES, headers={"Content-Encoding": "identity"}).status_code


@pytest.mark.parametrize(
    ("text", "problem"), [('{"a":"\\ud83d"}', "lone surrogate"), ('\ufeff{"action":"get"}', "byte order mark")]
)
def test_a_frame_in_another_encoding_is_refused_by_name(live: LiveServer, text: str, problem: str):
    with SocketClient(live) as game:
        game.socket.send(text)

        assert problem in game.message()["errors"][0]["detail"]
