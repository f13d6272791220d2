"""The hot path answers exactly like the router."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import jwt
import pytest

from emulator.web.front import HOT
from support.service import CLIENT_ID, SECRET, Client, LiveServer, live_server

pytestmark = pytest.mark.slow

NOW = 1_900_000_000_000
SAMPLE = 400

PATHS = [
    *("vote", "//vote", "vote/", "rank", "accumulate", "channel_state", "vote%2F", "vot%65"),
    *("vote?id=global-x", "vote?id=Poll$1", "vote?id=", "vote?id=a.b", "vote?id=" + "i" * 65, "vote?channel_id=888"),
    *("rank?id=a%20b", "rank?id=%00", "accumulate?id=x&id=y", "accumulate?id=%F0%9F%8E%B2", "accumulate?%"),
    *("channel_state?channel_id=888", "channel_state?channel_id=%0A", "channel_state?user_ids=1,2"),
]
METHODS = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"]
BODIES = [
    *(b"", b"{}", b"[]", b"null", b"{", b"\xff", b'"text"', b"[" * 5_000, b" " * 65_537),
    *(
        b'{"value":3}',
        b'{"value":-99}',
        b'{"value":100}',
        b'{"value":1.0}',
        b'{"value":true}',
        b'{"value":5,"count":2}',
    ),
    *(b'{"key":"blue"}', b'{"key":"\\u00e9"}', b'{"key":5}', b'"{\\"value\\":7}"', b'{"value":1,"value":2}'),
    *(b'{"a":{"b":1}}', b'{"a":null}', b'{"a":NaN}', b'{"big":18446744073709551616}', b'{"a":"' + b"x" * 300 + b'"}'),
    b'[{"op":"add","path":"/round","value":4}]',
    b'[{"op":"add","path":"/deep/er","value":4},{"op":"test","path":"/a","value":1}]',
    b'[{"op":"remove","path":"/absent"}]',
]


def credentials() -> list[str | None]:
    claims_sets = [
        {"role": "viewer", "channel_id": "777", "user_id": "5551"},
        {"role": "viewer", "channel_id": "777", "opaque_user_id": "Aabc"},
        {"role": "viewer"},
        {"role": "broadcaster", "user_id": "777"},
        {"role": "admin", "channel_id": "777"},
        {"role": "backend"},
        {"role": "viewer", "exp": NOW // 1000 - 1},
        {"role": "viewer", "nbf": NOW // 1000 + 1},
        {"role": "viewer", "user_id": {}},
    ]
    tokens = [f"{CLIENT_ID} {jwt.encode(claims, SECRET)}" for claims in claims_sets]
    return [*tokens, f"other {tokens[0].split()[1]}", None, "", "Bearer x", f"{CLIENT_ID} a.b.c", tokens[0] + " x"]


class Answer(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Request(NamedTuple):
    method: str
    path: str
    credential: str | None
    body: bytes

    def send(self, client: Client) -> Answer:
        headers = {"X-Request-Id": "the-same"} | ({} if self.credential is None else {"Authorization": self.credential})
        answer = client.request(self.method, f"/v1/e/{self.path}", content=self.body, headers=headers)
        return Answer(
            answer.status_code,
            sorted((name.lower(), value) for name, value in answer.headers.raw if name.lower() != b"date"),
            answer.content,
        )


@pytest.fixture
def services() -> Iterator[tuple[Client, Client]]:
    """Clients of two empty services at the same time: with the hot path, and without it."""
    with live_server() as hot, live_server(hot=frozenset()) as ordinary:
        for live in (hot, ordinary):
            live.set(NOW)
        with Client(base_url=hot.url) as one, Client(base_url=ordinary.url) as other:
            yield one, other


def test_the_hot_path_answers_like_the_router(services: tuple[Client, Client]):
    hot, ordinary = services
    combinations = list(product(METHODS, PATHS, credentials(), BODIES))
    sampled = [Request(*each) for each in random.Random(1).sample(combinations, SAMPLE)]
    common = [
        Request(method, path.removeprefix("/v1/e/"), credential, body)
        for (method, path), credential, body in product(sorted(HOT), credentials()[:3], BODIES)
    ]

    differing = [request for request in sampled + common if request.send(hot) != request.send(ordinary)]

    assert [] == differing


def test_the_compared_requests_cover_every_status(live: LiveServer):
    with Client(base_url=live.url) as client:
        statuses = {
            Request(method, path.removeprefix("/v1/e/"), credential, body).send(client).status
            for (method, path), credential, body in product(sorted(HOT), credentials()[::2], BODIES[:12])
        }

    assert {200, 400, 401, 403, 413} == statuses
