"""Generates calls of the control API, the dashboard, namespaces and monitoring, which only a sandbox has."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from twin.calls import Call, Calls
from twin.credentials import DAY, HOUR, MINUTE, SECOND

SCREENS = ["overview", "polls", "rankings", "buffers", "stores", "codes", "pins", "sockets", "broadcasts", "requests",
           "clock", "faults", "namespaces", "nothing"]  # fmt: skip
KINDS = ["polls", "rankings", "buffers", "stores", "json_stores", "codes", "pins", "nothing"]
MOVES = [0, 1, SECOND, 10 * SECOND, MINUTE, 5 * MINUTE, HOUR, DAY, 7 * DAY, 8 * DAY, 31 * DAY, 91 * DAY, 366 * DAY]
"""Moves of the clock: lifetimes, and a little less and more."""
JOURNAL = ["status=4xx", "status=2xx", "status=403", "path=/v1/e/vote", "method=POST", "role=viewer", "user=5",
           "limit=3", "kind=request", "kind=frame", "search=vote", "production=refuse", "order=oldest", "since=5",
           "before=9", "status=x", "limit=0", "probes=true",
           "client_id=twin-1", "channel_id=1001", "id=@@request@@"]  # fmt: skip
WAITS = ["votes&id=rps&count=1", "sockets&count=0", "request&path=/v1/e/vote", "nothing", "store",
         "votes&id=rps&count=x", "rank&id=rps&key=red&score=1",
         "entries&id=rps&count=>0", "request&method=POST&status=200"]  # fmt: skip
MONITORING = ["live", "ready", "metrics", "faults", "sockets", "parity", "clock",
              "clock/next", "clock/next?limit=2", "contents", "nothing", "parity?of=rate"]  # fmt: skip

SCRIPTS = ["sdk.js", "platform-helper.js"]
"""Read in a namespace of their own, because the reference counts them among the calls that production refuses."""
FOREIGN = (
    b'{"extcli_snapshot":1,"version":"","environment":"production","clock":{},"keys":false,"counts":{},"records":[\n]}'
)
"""A snapshot of another environment."""


class Control:
    """Generates the control calls of one episode."""

    def __init__(self, chosen: random.Random, calls: Calls, name: str, channel: str) -> None:
        self.random, self._calls, self._name, self._channel = chosen, calls, name, channel
        self.namespaces = [f"red-{channel}", f"blue-{channel}", f"scripts-{channel}"]
        self.snapshots: list[bytes] = []
        """Of the reference version; both versions load the same."""
        self._made: list[tuple[int, Callable[[int], Call]]] = [
            (8, lambda now: self._get(f"/_emulator/{self._one(*MONITORING)}")),
            (1, lambda now: self._script()),
            (6, lambda now: self._get("/_emulator/explain?id=@@request@@")),
            (2, lambda now: self._get(f"/_emulator/explain?rule={self._one('A1', 'S2', 'P4', 'Z9', '', 'a1', 'X5')}")),
            (4, lambda now: self._contents()),
            (4, lambda now: self._get(f"/_emulator/journal?{'&'.join(self.random.sample(JOURNAL, 2))}")),
            (3, lambda now: self._entry()),
            (2, lambda now: self._get("/_emulator/journal/stream?timeout=0&since=0")),
            (2, lambda now: self._get(f"/_emulator/wait?timeout=0&for={self._one(*WAITS)}&client_id={self._name}")),
            (3, lambda now: self._get("/_emulator/snapshot" + self._one("", "?keys=true"))),
            (2, self._load),
            (5, self._page),
            (2, lambda now: self._form()),
            (7, self._move),
            (2, lambda now: self._post("/_emulator/reset" + self._one("", "?undo=60", "?undo=x"))),
            (1, lambda now: self._post("/_emulator/undo")),
            (4, lambda now: self._fault()),
            (2, lambda now: self._remove_fault()),
            (3, lambda now: self._call("PUT", "/_emulator/seed", self._seed(now))),
            (4, lambda now: self._post("/_emulator/call", self._inner_call())),
            (1, lambda now: self._post("/_emulator/sockets/close", self._one({"all": True}, {"socket": 99}, {}))),
            (1, lambda now: self._post("/_emulator/sockets/stall", self._one({"all": True, "stalled": False}, {}))),
            (2, lambda now: self._post("/_emulator/pins/expire", {"client_id": self._name, "pin": "@@pin@@"})),
            (4, lambda now: self._namespace()),
            (1, lambda now: self._get(self._one("/schema/openapi.json", "/schema", "/", "/nothing", "/favicon.ico"))),
        ]

    def next(self, now: int) -> Call:
        """Generate a call."""
        (make,) = self.random.choices([each for _, each in self._made], [weight for weight, _ in self._made])
        return make(now)

    def _one(self, *among: Any) -> Any:
        return self.random.choice(among)

    def _get(self, path: str) -> Call:
        return self._calls.plain("GET", path)

    def _post(self, path: str, body: object = None) -> Call:
        return self._call("POST", path, body)

    def _call(self, method: str, path: str, body: object = None) -> Call:
        if self.random.random() < 0.04:
            body = self._one(b"", b"{", b"[]", b"null", {"unknown": 1}, {"all": 5})
        return self._calls.plain(method, path, body)

    def _script(self) -> Call:
        path = f"/_emulator/{self._one(*SCRIPTS)}"
        return self._get(f"/_ns/scripts-{self._channel}{path}")._replace(place=f"GET {path}")

    def _contents(self) -> Call:
        kind, filters = self._one(*KINDS), self._filters()
        if kind == "pins":  # random digests sort them, so which one is the first is by chance
            filters = filters.replace("limit=1", "limit=1000")
        return self._get(f"/_emulator/contents/{kind}{filters}")

    def _filters(self) -> str:
        filters = {"client_id": (self._name, "x"), "channel_id": (self._channel, ""), "search": ("rps", "%00"),
                   "limit": ("1", "0", "x"), "cursor": ("@@next@@", "x")}  # fmt: skip
        chosen = [f"{name}={self._one(*among)}" for name, among in filters.items() if self.random.random() < 0.25]
        return "?" + "&".join(chosen) if chosen else ""

    def _entry(self) -> Call:
        form = self._one("", "", "&as=curl", "&as=extcli", "&as=python", "&as=x")
        return self._get(f"/_emulator/journal/entry?id={self._one('latest', '@@request@@', 'x')}{form}")

    def _load(self, now: int) -> Call:
        body = self._one(*self.snapshots[-3:]) if self.snapshots and self.random.random() < 0.8 else FOREIGN
        return self._calls.plain("PUT", "/_emulator/snapshot", body)

    def _page(self, now: int) -> Call:
        if self.random.random() < 0.1:
            return self._get(self._one("/_emulator", "/_emulator/", "/_emulator/rig", "/_emulator/rig?page=http://x/"))
        query = self._one(
            "", "", f"?client_id={self._name}", "?id=rps", f"?channel_id={self._channel}&id=default", "?part=main"
        )
        return self._get(f"/_emulator/ui/{self._one(*SCREENS)}{query}")

    def _form(self) -> Call:
        fields = self._one(
            "", "action=advance&by=1h", "id=rps&value=1", "do=reset", "name=red", "x=%00", "match=GET+/v1/e/rank"
        )
        head = f"POST {self._calls.prefix}/_emulator/ui/{self._one(*SCREENS)} HTTP/1.1\r\nHost: localhost\r\n"
        head += "Content-Type: application/x-www-form-urlencoded\r\n"
        return Call("POST /_emulator/ui", [head.encode(), fields.encode()], fields)

    def _move(self, now: int) -> Call:
        ms = self._one(*MOVES) + self._one(0, 0, -1, 1)
        # Never back: what a write under an earlier clock does to lifetimes is an intended difference.
        moves: list[dict[str, Any]] = [{"advance": ms}] * 3
        moves += [{"freeze": True}, {"freeze": False}, {"set": "x"}, {"advance": -5}, {"set": 10**15}]
        return self._post("/_emulator/clock", self._one(*moves))

    def _fault(self) -> Call:
        effects: list[dict[str, Any]] = [
            {"status": 503}, {"status": 429, "retry_after": 3}, {"status": 42}, {"effect": "drop"}, {"effect": "reset"},
            {"effect": "truncate", "bytes": 5}, {"effect": "nothing"}, {"effect": "delay", "delay": 1},
        ]  # fmt: skip
        limits: list[dict[str, Any]] = [{}, {"times": 1}, {"times": 2}, {"role": "viewer"}, {"user": "5"}]
        limits += [{"share": 1.0}, {"share": 7}, {"after": 1}]
        match = self._one(
            "GET /v1/e/vote", "POST /v1/e/vote", "* /v1/e/rank*", "nothing", "SOCKET connect", "BROADCAST *"
        )
        chosen = self._one(*effects)
        fault = {"match": match, "effect": "status", **chosen, **self._one(*limits), "client_id": self._name}
        if self.random.random() < 0.2:
            return self._call("PUT", "/_emulator/faults", {"faults": [fault]})
        return self._post("/_emulator/faults", fault | self._one({}, {"id": "f9"}, {"id": "no id!"}))

    def _remove_fault(self) -> Call:
        if self.random.random() < 0.6:
            return self._call("DELETE", "/_emulator/faults" + self._one("", "?id=f1", "?id=x"))
        return self._post("/_emulator/faults/remove", self._one({}, {"id": "f1"}, {"ids": ["f1"]}))

    def _seed(self, now: int) -> dict[str, Any]:
        seed: dict[str, Any] = {"extcli": 1, "client_id": self._name, "channel": self._channel}
        parts: dict[str, Any] = {
            "polls": [
                {"id": "rps", "prompt": "Which?", "options": ["A", "B"], "votes": {"U5": 1, "U6": self._one(0, 1, 100)}}
            ],
            "rankings": [{"id": "q1", "answers": {"U5": "blue", "U6": "red"}}],
            "buffers": [{"id": "default", "entries": [{"user": "U5", "data": {"stars": 5}}]}],
            "stores": [{"store": self._one("channel_state", "viewer_state"), "user": "U5", "data": {"a": 1}}],
            "json_stores": [{"id": "a", "data": {"b": self._one(1, "x" * 70_000)}}],
            "codes": [{"index": self._one(0, 9, 10), "name": "Hat", "codes": ["Z1", "Z2"], "marked": {"U5": 1}}],
            "links": [{"channel": "1001"}],
            "clock": {"frozen": self._one(True, False)},
            "nothing": 1,
        }
        return seed | {
            name: value for name, value in parts.items() if self.random.random() < (0.05 if name == "nothing" else 0.4)
        }

    def _inner_call(self) -> dict[str, Any]:
        path = self._one("/v1/e/vote?id=rps", "/v1/e/user_info", "/v1/e/rank?id=q1", "/v1/e/codes", "/nothing", "")
        call = {"path": path, "client_id": self._name, "method": self._one("GET", "POST", "DELETE")}
        call |= {
            "role": self._one("viewer", "backend", "broadcaster", "x"),
            "user_id": "5",
            "channel_id": self._channel,
        }
        return call | self._one({}, {"body": {"value": 2}}, {"body": {"key": "red"}}, {"body": "{"})

    def _namespace(self) -> Call:
        name = self._one(*self.namespaces, "Red Team", quote("é"), "x" * 80, "default")
        kind = self.random.randrange(5)
        if kind == 0:
            return self._get("/_ns")
        if kind == 1:
            # A source in the body would make a copy in the newer version only, without another response.
            query, body = self._one(("?from=default", None), ("", {}), ("", {"from": "nothing"}))
            return self._calls.plain("POST", f"/_ns/{name}{query}", body)
        if kind == 2:
            return self._calls.plain("DELETE", f"/_ns/{name}")
        header = self._calls.credentials.header(self._one("viewer", "admin"), 10**13)
        path = self._one("/v1/e/vote?id=rps", "/v1/e/polls", "/_emulator/ready", "/_emulator/contents", "/")
        return self._calls.plain(self._one("GET", "GET", "POST"), f"/_ns/{name}{path}", {"value": 1}, header=header)
