"""Generates random requests of the socket."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import product
from typing import Any

from support.constants import CHANNEL, CLIENT_ID

ACTIONS = [
    *("get", "set", "patch", "update", "create", "delete", "reconfigure", "broadcast", "subscribe", "unsubscribe"),
    *("authenticate", "validate", "refund", "", "GET", "frobnicate", "__init__", "\U0001f600"),
]
TARGETS = [
    *("state", "config", "poll", "channel", "extension", "authentication", "broadcast", "match", "drops", "news", "*"),
    *("transaction", "datastream", "twitchPurchaseBits", "", "__class__", "\x00", "x" * 300),
]
MEMBERS = [
    *("state_id", "config_id", "topic_id", "poll_id", "state", "config", "topic", "data", "ids", "message", "prompt"),
    *("options", "user_data", "client_id", "pin", "refresh", "jwt", "sku", "target", "transaction_id", "user_id"),
    *("game_id", "é"),
]
SETTINGS = [
    *("startsAt", "endsAt", "startsIn", "endsIn", "disabled", "userIDVoting", "totalVotesPerUser", "votesPerOption"),
    *("distinctOptionsPerUser", "global", "options", "prompt", "userData", "id", "status"),
]
PAIRS = [
    *product(("get", "set", "patch", "subscribe", "unsubscribe"), ("state", "config")),
    *product(("create", "get", "delete", "reconfigure", "subscribe", "unsubscribe"), ("poll",)),
    *(
        ("broadcast", ""),
        ("subscribe", "broadcast"),
        ("subscribe", "news"),
        ("update", "channel"),
        ("get", "extension"),
    ),
    *(("authenticate", ""), ("subscribe", "authentication"), ("get", "transaction"), ("subscribe", "datastream")),
]
"""Actions and targets that the service knows."""
OPERATIONS = ["add", "remove", "replace", "copy", "move", "test", "add_intermediates", "remove_value", "", "ADD"]
POINTERS = [
    *("", "/", "/a", "/a/b", "/a/-", "/a/0", "/a/01", "/a/-1", "/a/99999999999", "a", "/~", "/~0~1", "/é"),
    *("/a/b/c/d/e", "//", "/-"),
]
SCALARS: list[Any] = [
    *(None, True, False, 0, 1, -1, 7.0, 1.5, 63, 65_535, 2**31, -(2**63), 2**64, 1e300, -0.0),
    *("", "channel", "extension", "combined", "p", "global-p", "*", "sandbox", CLIENT_ID, CHANNEL, "ABCDEF", "a.b.c"),
    *("\x00", "\U0001f600", "\u2028", "x" * 2_000, "<&>", "é" * 130),
]
GARBAGE = [
    *("", " ", "{", "}", "nul", "[1,", '"', "{}{}", "\ufeff{}", "NaN", '{"action":NaN}', '{"a":1e999}', "[" * 5_000),
    *('{"a":' * 5_000, '{"action":"\\ud800"}', "[]", "{}", "0", "null", '"get"', "\x00", "{this is not json"),
]


class RequestGenerator:
    """Generates requests. Most are nearly valid, so that they pass the first checks."""

    def __init__(self, choose: random.Random) -> None:
        self._choose = choose

    def one(self, *among: Any) -> Any:
        return self._choose.choice(among)

    def odds(self, chance: float) -> bool:
        return self._choose.random() < chance

    def value(self, depth: int = 0) -> Any:
        if depth > 3 or self.odds(0.6):
            return self.one(*SCALARS)
        if self.odds(0.02):
            return nested(self.one(10, 200, 600))
        if self.odds(0.5):
            return [self.value(depth + 1) for _ in range(self._choose.randrange(4))]
        return {self.one(*MEMBERS, "a", "b"): self.value(depth + 1) for _ in range(self._choose.randrange(4))}

    def patch(self) -> Any:
        if self.odds(0.2):
            return self.value()
        return [self.operation() for _ in range(self._choose.randrange(4))]

    def operation(self) -> Any:
        if self.odds(0.05):
            return self.value()
        operation = {"op": self.one(*OPERATIONS), "path": self.one(*POINTERS), "value": self.value()}
        if self.odds(0.4):
            operation["from"] = self.one(*POINTERS)
        if self.odds(0.15):
            operation[self.one("op", "path", "from", "value")] = self.value()
        if self.odds(0.1):
            del operation[self.one("op", "path", "value")]
        return operation

    def data(self) -> Any:
        if self.odds(0.02):
            return self.value()
        likely: dict[str, Callable[[], Any]] = {
            "state_id": lambda: self.one("channel", "extension"),
            "config_id": lambda: self.one("channel", "extension", "combined"),
            "topic_id": lambda: self.one("channel", "extension", "p", "*", "news"),
            "poll_id": lambda: self.one("p", "q", "global-p"),
            "state": lambda: self.patch() if self.odds(0.5) else {"a": self.value()},
            "config": lambda: self.one(self.patch, self.configuration)(),
            "topic": lambda: self.one("news", "x"),
            "data": self.value,
            "options": lambda: ["a", "b"],
            "ids": lambda: ["1", "U1"][: self._choose.randrange(3)],
            "sku": lambda: "*",
            "prompt": lambda: "?",
            "client_id": lambda: CLIENT_ID,
        }
        names = [name for name in MEMBERS if self.odds(0.8 if name in likely else 0.2)]
        return {name: self.value() if self.odds(0.1) else likely.get(name, self.value)() for name in names}

    def configuration(self) -> Any:
        common = {name: self.one(0, 1, -1, 5, 64, 2_000_000_000) for name in SETTINGS[:9] if self.odds(0.2)}
        return {**common, self.one(*SETTINGS): self.value()} if self.odds(0.3) else common

    def request(self) -> dict[str, Any]:
        action, target = self.one(*PAIRS) if self.odds(0.8) else (self.one(*ACTIONS), self.one(*TARGETS))
        params: Any = {"request_id": self._choose.randrange(50_000), "target": target}
        if self.odds(0.05):
            params["request_id"] = self.value()
        if self.odds(0.02):
            params = self.value()
        request = {"action": action, "params": params, "data": self.data()}
        if self.odds(0.02):
            request[self.one("action", "data", "x")] = self.value()
        if self.odds(0.02):
            del request[self.one("action", "params", "data")]
        return request

    def text(self) -> str:
        if self.odds(0.04):
            return str(self.one(*GARBAGE))
        text = json.dumps(self.request(), ensure_ascii=self.odds(0.5))
        if self.odds(0.05):
            at = self._choose.randrange(len(text))
            text = (
                text[:at] + self.one("", '"', "{", "\\", "\x00", "é", "0", ",") + text[at + self._choose.randrange(3) :]
            )
        return text


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value
