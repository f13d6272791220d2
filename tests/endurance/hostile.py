"""Requests and messages that are as expensive as their size allows, by kind, and ordinary ones at the same time."""

from __future__ import annotations

import base64
import hmac
import json
import random
import string
from collections.abc import Callable, Iterator
from typing import Any

from audience import authorization
from common import CLIENT_ID, SECRET
from load import request

KIB, MIB = 1024, 1024 * 1024
ROLES = ("viewer", "broadcaster", "backend", "admin")
CHANNEL = "777"

choose = random.Random(5)
Json = Any


def token(role: str, user: int | str = 777) -> str:
    """Return a signed token."""
    return authorization(str(user), role, CHANNEL).partition(" ")[2]


TOKENS = {role: token(role) for role in ROLES}
VIEWERS = [token("viewer", user) for user in range(1_000)]


def http(method: str, path: str, body: bytes = b"", *, bearer: str = "", role: str = "", head: str = "") -> bytes:
    """Return the bytes of one request to `/v1/e/`."""
    bearer = bearer or (TOKENS[role] if role else choose.choice(VIEWERS))
    return request(method, f"/v1/e/{path}", f"{CLIENT_ID} {bearer}", body, head)


def compact(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def filled(size: int = 64 * KIB - 64) -> bytes:
    """Return an expensive JSON value of at most `size` bytes."""
    values: list[Callable[[], bytes]] = [
        lambda: b"[" + b"[]," * (size // 3 - 1) + b"0]",
        lambda: b"[" + b"{}," * (size // 3 - 1) + b"0]",
        lambda: b"[" + b"0," * (size // 2 - 2) + b"0]",
        lambda: b"[" + b"1.5e-7," * (size // 7 - 1) + b"0]",
        lambda: b'["' + "".join(choose.choices("ab", k=size - 4)).encode() + b'"]',
        lambda: b'["' + b"\\u0061" * ((size - 4) // 6) + b'"]',
        lambda: b'["' + "é".encode() * ((size - 4) // 2) + b'"]',
        lambda: b"{" + b",".join(b'"%x":0' % number for number in range(size // 10)) + b"}",
        lambda: b"{" + b",".join([b'"a":[]'] * (size // 7 - 1)) + b"}",
        lambda: b"[" + b",".join([nested(450)] * (size // 901 - 1)) + b"]",
        lambda: b"[" + b",".join([b"9" * 4_300] * (size // 4_301)) + b"]",
        lambda: nested(size // 2),
        lambda: b"9" * size,
        lambda: b'[{"a":' + filled(size - 100) + b"}" if size > 300 else b"[]",
    ]
    return choose.choice(values)()


def op(name: str, path: str, **members: Json) -> dict[str, Json]:
    return {"op": name, "path": path, **members}


DEEP = op("add", "/n", value=json.loads(nested(450)))


def long_patch() -> bytes:
    """Return a JSON Patch whose work could multiply, of at most 64 KiB; the document holds `a`, `list` and `deep`."""
    patches: list[Callable[[], Json]] = [
        lambda: [DEEP, *(op("copy", f"/n{i}", **{"from": "/n"}) for i in range(280))],
        lambda: [op("copy", f"/list{i}", **{"from": "/list"}) for i in range(999)],
        lambda: [op("copy", "/list/-", **{"from": "/list"})] * 40,
        lambda: [op("add", "/list/0", value=0)] * 999,
        lambda: [op("move", "/list/0", **{"from": "/list/19999"})] * 999,
        lambda: [op("move", f"/m{i % 2}", **{"from": f"/m{(i + 1) % 2}" if i else "/list"}) for i in range(999)],
        lambda: [op("test", "/list", value=[0] * 20_000)],
        lambda: [op("test", "/deep" + "/a" * 400, value={})] * 70,
        lambda: [op("add", "/a" * 30_000, value=1)],
        lambda: [op("add", "/" + "~0" * 30_000, value=1)],
        lambda: [op("remove", "/absent")] * 2_000,
        lambda: [op("add", f"/w{i}", value=[]) for i in range(999)],
        lambda: [op("replace", "/list", value=[[]] * 18_000)],
        lambda: {f"m{i}": {"a": {"b": {}}} for i in range(2_500)},
        lambda: {"deep": json.loads(b'{"a":' * 450 + b"0" + b"}" * 450)},
        lambda: [5] * 20_000,
    ]
    return compact(choose.choice(patches)())[: 64 * KIB]


DOCUMENT = compact({"a": 1, "list": [0] * 20_000, "deep": json.loads(b'{"a":' * 450 + b"{}" + b"}" * 450)})


def user_map() -> bytes:
    """Return an admin's PATCH of many users, of at most 4 MiB."""
    maps: list[Callable[[], bytes]] = [
        lambda: compact({str(user): {"n": user} for user in range(1_000)}),
        lambda: compact({str(user): [op("add", "/n", value=1)] for user in range(1_000)}),
        lambda: b'{"1":' + b"[" + b"[]," * (4 * MIB // 3 - 20) + b"0]}",
        lambda: b"{" + b",".join(b'"%d":[]' % user for user in range(300_000)) + b"}",
        lambda: b"{" + b",".join(b'"%d":{"a":%s}' % (user, filled(60 * KIB)) for user in range(60)) + b"}",
        lambda: compact({str(user): {"a": "x" * 4_000} for user in range(1_000)}),
        lambda: b'{"a":' + filled(4 * MIB - 100) + b"}",
        lambda: compact('{"1":[' + "[]," * 1_000_000 + "0]}"),
    ]
    return choose.choice(maps)()


def bad_tokens() -> bytes:
    """Return a request whose credential is expensive to read."""

    def part(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    head = part(b'{"alg":"HS256","typ":"JWT"}')
    payloads = [nested(2_500), b'{"a":' * 900 + b"0" + b"}" * 900, b'{"exp":' + b"9" * 5_000 + b"}", filled(5_000)]
    payload = choose.choice([part(each) for each in payloads])
    signed = hmac.digest(SECRET, f"{head}.{payload}".encode(), "sha256")
    tokens = [
        f"{head}.{payload}.{part(signed)}",
        f"{head}.{payload}.x",
        f"{part(nested(2_500))}.{payload}.x",
        "." * 7_000,
    ]
    return http("GET", "vote", bearer=choose.choice(tokens))


def queries() -> bytes:
    """Return a request with a long query or path."""
    size = 60 * KIB
    query = choose.choice(
        [
            "a&" * (size // 2),
            "%41=%41&" * (size // 8),
            "id=" + "%41" * (size // 3),
            "id=" + "x" * size,
            "+" * size,
            "user_ids=" + "1," * (size // 2),
            "user_ids=" + ",".join(map(str, range(10_000))),
            "data=" + "%5B%5D%2C" * (size // 9),
            "event=a&data=" + "[" * size,
            "start=" + "9" * size,
            "limit=" + "9" * 4_000,
            "&" * size,
        ]
    )
    path = choose.choice(
        ["vote", "viewer_state", "broadcast", "vote_logs", "accumulate", "rank", "x/" * 1_000, "%2f" * 5_000]
    )
    return http("GET", f"{path}?{query}", role=choose.choice(ROLES))


def headers() -> bytes:
    """Return a request with a long head."""
    lines = choose.choice(
        [
            "a:\r\n" * 15_000,
            "X-Request-Id: " + "é" * 20_000 + "\r\n",
            "Cookie: a=b;" * 1_000 + "\r\n",
            "".join(f"x{number}: y\r\n" for number in range(5_000)),
        ]
    )
    return http("GET", "vote", head=lines)


def small() -> bytes:
    """Return an ordinary request."""
    calls = [
        ("POST", "vote", b'{"value":%d}' % choose.randrange(9)),
        ("GET", "vote", b""),
        ("POST", "rank", b'{"key":"blue"}'),
        ("POST", "accumulate", b'{"rating":5}'),
        ("GET", "all_state", b""),
        ("PATCH", "viewer_state", b'{"a":1}'),
        ("GET", "all_config", b""),
        ("POST", "datastream", b'{"a":1}'),
        ("GET", "user_info", b""),
        ("GET", "codes/eligible", b""),
        ("GET", "curated_polls", b""),
    ]
    return http(*choose.choice(calls))


def of_broadcasters() -> bytes:
    """Return an ordinary request of a broadcaster, backend or admin."""
    calls = [
        ("PATCH", "channel_state", b'[{"op":"add","path":"/round","value":4}]'),
        ("GET", "vote_logs?limit=100", b""),
        ("GET", "rank", b""),
        ("GET", "accumulate?start=0", b""),
        ("POST", "broadcast", b'{"event":"a","data":[1]}'),
        ("POST", "json_store?id=a", b'{"a":1}'),
        ("POST", "link/pin", b""),
        ("GET", "pin_token_exists", b""),
        ("POST", "validate_pin", b'{"pin":"ABCDEF"}'),
        ("DELETE", "rank?id=b", b""),
    ]
    return http(*choose.choice(calls), role=choose.choice(ROLES[1:]))


def bodies() -> bytes:
    """Return a body of 64 KiB for any endpoint."""
    paths = [
        ("POST", name)
        for name in (
            "vote",
            "rank",
            "accumulate",
            "json_store",
            "datastream",
            "whisper_self",
            "broadcast",
            "extension_broadcast",
            "vote_config",
            "curated_poll",
            "validate_pin",
            "unauthed/pin",
            "bits/transactions",
            "viewer_state",
            "channel_state",
            "channel_config",
            "extension_hidden_state",
            "codes/mark_from_poll",
            "pin",
        )
    ]
    method, path = choose.choice(paths)
    members = ("value", "key", "data", "config", "options", "question", "pin", "transactionReceipt", "prizes", "ids")
    body = filled()
    if choose.random() < 0.7:
        body = b'{"id":"p","event":"e","%s":%s}' % (choose.choice(members).encode(), filled(64 * KIB - 100))
    return http(method, path, body[: 64 * KIB], role=choose.choice(ROLES))


def broadcasts() -> bytes:
    """Return a broadcast that is slow to compress."""
    letters = choose.choice(["ab", "abc", string.ascii_letters, "a"])
    text = "".join(
        choose.choices(letters, [30] + [1] * (len(letters) - 1) if choose.random() < 0.5 else None, k=64_000)
    )
    path = choose.choice(["broadcast", "extension_broadcast", "whisper_self"])
    return http("POST", path, compact({"event": "news", "data": text}), role="admin")


def uploads() -> bytes:
    """Return an upload of codes or of users."""
    if choose.random() < 0.5:
        prefix = choose.randbytes(4).hex()
        codes = [f"{prefix}-{number}" for number in range(20_000)]
        return http("PUT", "codes", compact({"names": [prefix], "codes": [codes]}), role="backend")
    users = choose.choice([compact([str(user) for user in range(50_000)]), filled(1 * MIB)])
    return http("POST", "codes/mark_from_list", b'{"prizes":[0],"prize_limits":[9],"users":%s}' % users, role="backend")


def too_large() -> bytes:
    """Return the head of a request whose body is over the limit of its role."""
    return http("PATCH", "viewer_state", b"", role=choose.choice(ROLES[:3])).replace(
        b"Content-Length: 0", b"Content-Length: 4000000"
    )


HTTP: dict[str, tuple[float, Callable[[], bytes]]] = {
    "small requests of viewers": (30, small),
    "small requests of others": (10, of_broadcasters),
    "bodies of 64 KiB": (6, bodies),
    "patches": (4, lambda: http("PATCH", "channel_state", long_patch(), role=choose.choice(ROLES[1:]))),
    "patches of own records": (2, lambda: http("PATCH", "viewer_state", long_patch())),
    "stores written": (
        2,
        lambda: http("POST", "channel_state", choose.choice([DOCUMENT, b'{"a":%s}' % filled()]), role="broadcaster"),
    ),
    "stores read": (2, lambda: http("GET", choose.choice(["all_state", "channel_state"]))),
    "PATCH of many users": (0.05, lambda: http("PATCH", "extension_viewer_state", user_map(), role="admin")),
    "GET of many users": (
        0.1,
        lambda: http("GET", "extension_viewer_state?user_ids=" + ",".join(map(str, range(1_000))), role="admin"),
    ),
    "broadcasts of 64 KiB": (1, broadcasts),
    "credentials": (8, bad_tokens),
    "queries and paths of 60 KiB": (6, queries),
    "headers of 60 KiB": (1, headers),
    "uploads of codes and users": (0.03, uploads),
    "bodies over the limit": (1, too_large),
    "whole vote logs": (0.02, lambda: http("GET", "vote_logs?id=big", role="admin")),
}


def message(action: str, target: str = "", data: bytes = b"{}", request_id: int = 1) -> bytes:
    """Return one socket request."""
    return b'{"action":"%s","params":{"request_id":%d,"target":"%s"},"data":%s}' % (
        action.encode(),
        request_id,
        target.encode(),
        data,
    )


def large_messages() -> bytes:
    """Return a socket request of 64 KiB."""
    state = filled(63 * KIB)
    return choose.choice(
        [
            message("patch", "state", b'{"state_id":"channel","state":%s}' % long_patch()),
            message("set", "state", b'{"state_id":"channel","state":{"a":%s}}' % state),
            message("set", "config", b'{"config_id":"channel","config":{"a":%s}}' % state),
            message("create", "poll", b'{"poll_id":"p","options":%s}' % state),
            message("create", "poll", b'{"poll_id":"p","user_data":%s}' % state),
            message("broadcast", "", b'{"topic":"news","data":%s}' % state),
            message("broadcast", "", compact({"topic": "news", "data": 1, "ids": [str(user) for user in range(999)]})),
            message("broadcast", "", compact({"topic": "news", "data": 1, "ids": ["1"] * 15_000})),
            message("subscribe", "state", b'{"topic_id":%s}' % state),
            message("authenticate", "", b'{"client_id":"bench","jwt":"%s"}' % (b"." * 60_000)),
            message("x" * 60_000),
            state,
        ]
    )


def huge_messages() -> bytes:
    """Return a socket request of 2 MiB."""
    data = filled(2 * MIB - 500)
    return choose.choice(
        [
            message("set", "state", data),
            message("set", "gameMetadata", data),
            b'{"action":%s}' % data,
            data,
            message("patch", "state", b'{"state":%s}' % filled(2 * MIB - 600)),
        ]
    )


def small_messages() -> bytes:
    """Return an ordinary socket request."""
    return choose.choice(
        [
            message("get", "state", b'{"state_id":"channel"}'),
            message("get", "poll", b'{"poll_id":"p"}'),
            message("nonsense"),
            message("subscribe", f"event{choose.randrange(900)}"),
            message("broadcast", "", b'{"topic":"news","data":1}'),
            message("patch", "state", b'{"state_id":"channel","state":[{"op":"add","path":"/a","value":1}]}'),
        ]
    )


def unauthenticated_messages() -> bytes:
    """Return a message of at most 4 KiB."""
    data = filled(3_900)
    return choose.choice(
        [
            message("authenticate", "", b'{"client_id":"bench","x":%s}' % data),
            message("get", "state", data),
            data,
            message("subscribe", "authentication", b'{"client_id":%s}' % data),
        ]
    )


def frames_of(messages: Callable[[], bytes]) -> Iterator[bytes]:
    while True:
        yield messages()
