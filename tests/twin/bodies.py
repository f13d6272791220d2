"""Random bodies, ids and queries for the calls: most are valid, some nearly so, some hostile."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from twin.credentials import secret, signed

POINTERS = ["", "/a", "/b", "/a/b", "/a/b/c", "/list", "/list/0", "/list/-", "/list/01", "/x~1y", "/", "a", "/é", "/~"]
LEAVES: list[Any] = [None, True, 0, 1, -1, 2.5, 1e21, 10**20, "", "text", "é\u2028", [], {}, [1, 2], {"b": {"c": [3]}}]
IDS = ["default", "default", "rps", "rps", "rps", "rps", "q1", "q1", "q1", "a$b", "global-x", "global-y", "A", "a"]
HOSTILE_IDS = [
    *("", "%00", "%F0%9F%98%80", "..%2F..", "a%20b", "x" * 300, "global-", "%27%3B--", "%ff", "a%2Fb", "null", "-1"),
    *("a.b", "a:b", "*", "%7B%7D", "__proto__", "a&id=b", "%E2%80%AE", "default%0A"),
]
GARBAGE = [
    *(b"", b"{", b"nul", b"[1,", b'"', b"{}{}", b"\xff\xfe", b"\xef\xbb\xbf{}", b"NaN", b'{"value":NaN}', b"a=1&b=2"),
    *(b'{"value":1e999}', b'{"value":99999999999999999999}', b'{"a":"\\ud800"}', b"\x00", b'{"a":1,"a":2}', b"{}\n"),
    *(b"[" * 3_000, b'{"a":' * 3_000, b"null", b"[]", b"0", b'"{\\"value\\": 3}"', b"%7B%22value%22%3A1%7D"),
    b"\x1f\x8b",
]
"""Bodies that are hardly JSON."""


class Bodies:
    """Bodies for one episode."""

    def __init__(self, chosen: random.Random, name: str, channel: str) -> None:
        self.random, self._name, self._channel = chosen, name, channel
        self._purchase = 0
        self.kinds: dict[str, Callable[[int], Any]] = {
            "": lambda now: None,
            "vote": lambda now: self._maybe({"value": self.one(0, 1, 2, 2, 63, 64, -99, 99, -1)}, count=(1, 2, 30, 31)),
            "definition": self._definition,
            "answer": lambda now: {"key": self.one("blue", "red", "red", "", "é" * 20, "x" * 300, 5)},
            "blob": lambda now: self.one({"stars": 5}, 1, None, "x" * 253, "x" * 254, ["é", True], 0.5, {"n": now}),
            "document": lambda now: self.document(),
            "patch": lambda now: self.patch(),
            "identifier": lambda now: self._maybe({"identifier": self._name}),
            "pin": lambda now: {"pin": self.one("@@pin@@", "@@pin@@", "AAAAAA", "@@pin@@x", "", 5)},
            "pin token": lambda now: {"identifier": self._name, "jwt": "@@pin token@@"},
            "message": lambda now: self._message(),
            "page message": lambda now: self._page_message(),
            "codes": lambda now: self._codes(),
            "poll grant": lambda now: (
                self._grant() | {"correct": self.one(0, 1, 2), "cutoff_timestamp": self._cut(now)}
            ),
            "list grant": lambda now: (
                self._grant() | {"users": self.one(["U5"], ["5", "6"], ["U5", "U5"], [], ["U" * 99])}
            ),
            "redeem": lambda now: {
                self.one("prize", "prize", "all_prizes", "index"): self.one(0, 0, 1, 3, 10, -1, "0")
            },
            "receipt": lambda now: {"transactionReceipt": self._receipt(now)},
            "anything": lambda now: self.one({"click": 1}, [1], 5, "x" * 70_000, {"a": "é"}, None),
            "question": lambda now: self._maybe({"id": self.one(*IDS)}, name=("Which?", 5), order=(1, 2, -1)),
            "question id": lambda now: {"id": self.one(*IDS)},
            "option": lambda now: {
                "id": self.one(*IDS),
                "option": {"id": self.one("o1", "o2"), "name": self.one("A", "")},
            },
            "option id": lambda now: {"question": self.one(*IDS), "option": self.one("o1", "o2", "o9")},
            "transition": lambda now: self._transition(),
            "question vote": lambda now: {"question_id": self.one(*IDS), "vote": self.one("o1", "o1", "o2", "o9")},
            "authtoken": lambda now: self._authtoken(),
        }

    def one(self, *among: Any) -> Any:
        return self.random.choice(among)

    def odds(self, chance: float) -> bool:
        return self.random.random() < chance

    def body(self, kind: str, now: int) -> bytes:
        """Return a body of a kind: usually as meant, sometimes with wrong types, sometimes garbage."""
        if self.odds(0.04):
            return self.one(*GARBAGE)
        value = self.kinds[kind](now)
        if value is None and not kind:
            return b""
        if isinstance(value, dict) and value and self.odds(0.06):
            value[self.one(*value)] = self.one(*LEAVES)
        if isinstance(value, dict) and value and self.odds(0.03):
            del value[self.one(*value)]
        text = json.dumps(value, ensure_ascii=self.odds(0.5)).encode("utf-8", "surrogatepass")
        return json.dumps(text.decode()).encode() if self.odds(0.02) else text

    def id(self) -> str:
        """Return the value of a query parameter `id`, already encoded."""
        return str(self.one(*HOSTILE_IDS) if self.odds(0.06) else self.one(*IDS))

    def query(self, parameters: str, now: int) -> str:
        """Return a query with some of these parameters, named as `calls.py` does."""
        chosen = []
        for name in parameters.split():
            value = {
                "id": lambda: self.id(),
                "channel_id": lambda: self.one(self._channel, self._channel, "4242", "", "all", "%00"),
                "limit": lambda: self.one("1", "2", "100", "0", "-1", "x", "1e3", "99999999999999999999"),
                "cursor": lambda: self.one("@@next@@", "", "x", "eyJ9"),
                "since": lambda: self.one("0", "1", str(now - 1_000), "x", "-1"),
                "start": lambda: self.one("0", str(now - 60_000), str(now), str(now + 1), "x", "9" * 30),
                "user_ids": lambda: self.one("5", "5,6", "U5,U6", ",", "x" * 200, "5,5"),
                "userID": lambda: self.one("5", "6", ""),
            }[name]
            if self.odds(0.85 if name == "id" else 0.25):
                chosen.append(f"{name}={value()}")
        if self.odds(0.02):
            chosen.append(self.one("id=1&id=2", "unknown=1", "%", "&&", "=", "a=%zz", "id"))
        return "?" + "&".join(chosen) if chosen else ""

    def document(self) -> Any:
        if self.odds(0.03):
            return {"a": "é" * self.one(10, 2_040, 16_000, 32_764)}
        names = ["a", "b", "list", "x/y", "", "é", "z"]
        return {name: self.value() for name in names if self.odds(0.35)}

    def value(self, depth: int = 0) -> Any:
        if depth > 2 or self.odds(0.75):
            return self.one(*LEAVES)
        return {self.one("b", "c", "d"): self.value(depth + 1)} if self.odds(0.5) else [self.value(depth + 1)] * 2

    def patch(self) -> Any:
        if self.odds(0.4):
            return self.document()
        return [self._operation() for _ in range(self.one(1, 1, 2, 3))]

    def _operation(self) -> Any:
        made = {
            "op": self.one("add", "add", "replace", "remove", "test", "move", "copy", "add_intermediates", "ADD", "")
        }
        made |= {"path": self.one(*POINTERS), "value": self.value()}
        return made | ({"from": self.one(*POINTERS)} if made["op"] in ("move", "copy") or self.odds(0.1) else {})

    def _maybe(self, value: dict[str, Any], **more: tuple[Any, ...]) -> dict[str, Any]:
        return value | {name: self.one(*among) for name, among in more.items() if self.odds(0.2)}

    def _definition(self, now: int) -> Any:
        config = self._maybe(
            {},
            prompt=("Which?", "", "é" * 200),
            options=(["a", "b"], ["a"], [], ["é" * 100]),
            userData=(None, {"hard": [1]}, "x" * 1_100),
            startsAt=(now // 1000 + 60, now // 1000 - 60, -1),
            endsAt=(now // 1000 + 60, -1, 5),
            startsIn=(10, 0),
            endsIn=(10, 600),
            userIDVoting=(True, False),
            disabled=(True, False, False),
            distinctOptionsPerUser=(1, 2, 3),
            totalVotesPerUser=(1, 2, 4, 1_025),
            votesPerOption=(1, 2, 3),
        )
        return {"config": config} if self.odds(0.6) else {"id": self.one(*IDS), "config": config}

    def _message(self) -> Any:
        data = self.one(
            {}, {"round": 2}, [1], "text", None, "é" * 1_000, "xy" * 3_000, self.random.randbytes(3_500).hex()
        )
        message = {"event": self.one("round", "news", "", "é", "x" * 300), "data": data}
        return self._maybe(
            message, target=("broadcast", "whisper-5", "whisper-U6", "other"), user_id=(self._channel, "5")
        )

    def _page_message(self) -> Any:
        stage = self.one("sandbox", "sandbox", "production")
        return {"event": f"{stage}:{self._name}:e", "data": self.one({}, 1), "target": "broadcast"}

    def _codes(self) -> Any:
        number = self.one(1, 1, 2, 2, 3)
        pool = [f"{letter}{digit}" for letter in "ABC" for digit in range(6)]
        lists = [self.random.sample(pool, self.random.randrange(7)) for _ in range(number)]
        body: dict[str, Any] = {"codes": lists, "names": self.random.sample(["Hat", "Sword", "Boots", "Cap"], number)}
        if self.odds(0.3):
            body["indices"] = [self.one(0, 1, 2, 9, 10) for _ in range(number)]
        if self.odds(0.05):
            body["codes"][0].append(self.one("x" * 64, "", 5))
        return body

    def _grant(self) -> dict[str, Any]:
        return {"prizes": [self.one(0, 0, 1, 3)], "prize_limits": [self.one(0, 1, 2) for _ in range(self.one(1, 2, 4))]}

    def _cut(self, now: int) -> int:
        return self.one(now, now // 1000, now - 1_000, 0, now + 10**6)

    def _receipt(self, now: int) -> str:
        if self.odds(0.7):
            self._purchase += 1
        product = {"sku": self.one("hat", "cape"), "cost": {"amount": self.one(5, 0), "type": "bits"}}
        data = {"transactionId": f"t{self._purchase}", "userId": self.one("5", "6"), "product": product}
        claims = {"data": data, "exp": (now + self.one(3_600_000, 3_600_000, -1_000)) // 1000}
        return signed(
            claims, self.one(secret(self._name), secret(self._name), secret(self._name), b"another secret, wrong")
        )

    def _transition(self) -> Any:
        state = self.one(
            "unlocked", "locked", "results", "inactive", "state-unlocked", "state-locked", "state-results", "x"
        )
        return self._maybe({"transition": state}, winner=("o1", "o2", "o9"))

    def _authtoken(self) -> Any:
        return self._maybe(
            {},
            extension_id=(self._name, self._name, "no-such-extension"),
            role=("viewer", "broadcaster", "admin", "backend", "moderator"),
            user_id=("5", "U6", ""),
            channel_id=(self._channel, ""),
            opaque_user_id=("U5", "A1"),
        )
