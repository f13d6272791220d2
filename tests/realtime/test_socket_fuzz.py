"""Whatever text is sent, each gets one well-formed reply, nothing fails inside, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.service import CHANNEL, CLIENT_ID, LiveServer, live_server
from support.socket_client import NO_REQUEST, SocketClient, linked_game, request_pin

LOGGERS = ("emulator", "asyncio", "uvicorn")
AT_ONCE = 40
"""Frames that are on their way before the first reply is read."""
MOST_AUTHENTICATIONS = 9
"""On one connection: the tenth that fails would close it (ruling T4)."""
LAST = 54_321

ACTIONS = [
    "get",
    "set",
    "patch",
    "update",
    "create",
    "delete",
    "reconfigure",
    "broadcast",
    "subscribe",
    "unsubscribe",
    "authenticate",
    "validate",
    "refund",
    "",
    "GET",
    "frobnicate",
    "__init__",
    "\U0001f600",
]
TARGETS = [
    "state",
    "config",
    "poll",
    "channel",
    "extension",
    "authentication",
    "broadcast",
    "match",
    "drops",
    "news",
    "*",
    "transaction",
    "datastream",
    "twitchPurchaseBits",
    "",
    "__class__",
    "\x00",
    "x" * 300,
]
MEMBERS = [
    "state_id",
    "config_id",
    "topic_id",
    "poll_id",
    "state",
    "config",
    "topic",
    "data",
    "ids",
    "message",
    "prompt",
    "options",
    "user_data",
    "client_id",
    "pin",
    "refresh",
    "jwt",
    "sku",
    "target",
    "transaction_id",
    "user_id",
    "game_id",
    "é",
]
SETTINGS = [
    "startsAt",
    "endsAt",
    "startsIn",
    "endsIn",
    "disabled",
    "userIDVoting",
    "totalVotesPerUser",
    "votesPerOption",
    "distinctOptionsPerUser",
    "global",
    "options",
    "prompt",
    "userData",
    "id",
    "status",
]
PAIRS = [
    *(
        (action, target)
        for action in ("get", "set", "patch", "subscribe", "unsubscribe")
        for target in ("state", "config")
    ),
    *((action, "poll") for action in ("create", "get", "delete", "reconfigure", "subscribe", "unsubscribe")),
    *(
        ("broadcast", ""),
        ("subscribe", "broadcast"),
        ("subscribe", "news"),
        ("update", "channel"),
        ("get", "extension"),
    ),
    *(("authenticate", ""), ("subscribe", "authentication"), ("get", "transaction"), ("subscribe", "datastream")),
]
"""What the service knows."""
OPERATIONS = ["add", "remove", "replace", "copy", "move", "test", "add_intermediates", "remove_value", "", "ADD"]
POINTERS = [
    "",
    "/",
    "/a",
    "/a/b",
    "/a/-",
    "/a/0",
    "/a/01",
    "/a/-1",
    "/a/99999999999",
    "a",
    "/~",
    "/~0~1",
    "/é",
    "/a/b/c/d/e",
    "//",
    "/-",
]
SCALARS: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    7.0,
    1.5,
    63,
    65_535,
    2**31,
    -(2**63),
    2**64,
    1e300,
    -0.0,
    "",
    "channel",
    "extension",
    "combined",
    "p",
    "global-p",
    "*",
    "sandbox",
    CLIENT_ID,
    CHANNEL,
    "ABCDEF",
    "a.b.c",
    "\x00",
    "\U0001f600",
    "\u2028",
    "x" * 2_000,
    "<&>",
    "é" * 130,
]
GARBAGE = [
    "",
    " ",
    "{",
    "}",
    "nul",
    "[1,",
    '"',
    "{}{}",
    "\ufeff{}",
    "NaN",
    '{"action":NaN}',
    '{"a":1e999}',
    "[" * 5_000,
    '{"a":' * 5_000,
    '{"action":"\\ud800"}',
    "[]",
    "{}",
    "0",
    "null",
    '"get"',
    "\x00",
    "{this is not json",
]


class Maker:
    """Makes requests: most are nearly right, so that they reach what lies behind the first checks."""

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
        some = {name: self.one(0, 1, -1, 5, 64, 2_000_000_000) for name in SETTINGS[:9] if self.odds(0.2)}
        return {**some, self.one(*SETTINGS): self.value()} if self.odds(0.3) else some

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


def is_update(message: dict[str, Any]) -> bool:
    return message["meta"]["action"] == "update" and message["meta"]["request_id"] == NO_REQUEST and "data" in message


def is_ambiguous(text: str) -> bool:
    """Whether its reply could be taken for an update: of the action `update`, and without an id."""
    try:
        request = json.loads(text)
        return request["action"] == "update" and request["params"].get("request_id", NO_REQUEST) == NO_REQUEST
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return '"update"' in text


def sendable(texts: list[str]) -> list[str]:
    """What one connection may be sent without being closed for too many failures."""
    kept, attempts = [], 0
    for text in texts:
        attempts += '"authenticate"' in text
        if not is_ambiguous(text) and ('"authenticate"' not in text or attempts <= MOST_AUTHENTICATIONS):
            kept.append(text)
    return kept


def check(message: Any) -> None:
    """A reply or an update, well-formed, and no failure of the service's own."""
    meta = message["meta"]
    assert {"request_id", "action", "target", "timestamp"} == meta.keys()
    assert [str, str, int] == [type(meta[name]) for name in ("action", "target", "timestamp")]
    assert type(meta["request_id"]) in (int, float)
    assert message.keys() in ({"meta", "data"}, {"meta", "errors"})
    if "data" in message:
        assert isinstance(message["data"], dict)
        return
    (error,) = message["errors"]
    assert [int, int, str, str] == [type(error[name]) for name in ("status", "number", "title", "detail")]
    assert 400 <= error["status"] == error["number"] < 500, message


def converse(game: SocketClient, texts: list[str]) -> int:
    """Send them, and read one reply to each, in order; the number of texts."""
    texts = sendable(texts)
    for begin in range(0, len(texts), AT_ONCE):
        some = texts[begin : begin + AT_ONCE]
        for text in some:
            game.socket.send(text)
        replies = []
        while len(replies) < len(some):
            message = game.message()
            check(message)
            if not is_update(message):
                replies.append(message)
        assert [expected_id(text, reply) for text, reply in zip(some, replies, strict=True)] == [
            reply["meta"]["request_id"] for reply in replies
        ]
    game.socket.send(json.dumps({"action": "get", "params": {"request_id": LAST, "target": "nothing"}}))
    while is_update(last := game.message()):
        check(last)
    assert LAST == last["meta"]["request_id"]
    return len(texts)


def expected_id(text: str, reply: dict[str, Any]) -> Any:
    """The id that the reply is to echo; where the request is refused as unreadable, 65535 will do."""
    try:
        params = json.loads(text)["params"]
        request_id = params["request_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return reply["meta"]["request_id"]
    unreadable = "errors" in reply and reply["meta"]["request_id"] == NO_REQUEST
    return NO_REQUEST if unreadable else request_id


class Complaints(logging.Handler):
    """What the service logs as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in LOGGERS:
            self.lines.append(self.format(record))


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[LiveServer]:
    """A service of its own; at the end it is as it was, and has not complained."""
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    with live_server() as live:
        before = live.run(_held(live))
        yield live
        turns = 0
        while (after := live.run(_held(live))) != before and turns < 2_000:  # an end may still have to be seen
            turns += 1
        with linked_game(live) as game:
            assert {"ok": True} == game.data("subscribe", "state", {"topic_id": "channel"})
    logging.getLogger().removeHandler(complaints)
    assert [] == complaints.lines
    assert before == after


async def _held(live: LiveServer) -> tuple[int, int, int]:
    """Sessions, followed topics, and tasks, when what is under way has ended."""
    await live.service.polls.updates.clock_moved()
    await live.service.engine.check()
    return live.service.gateway.size, len(live.service.hub._subscribers), len(asyncio.all_tasks())


@pytest.mark.ruling("X2", "X3")
@pytest.mark.parametrize("seed", range(20))
def test_every_request_of_many_conversations_is_answered_once(fuzzed, seed):
    maker, sent = Maker(random.Random(seed)), 0
    for conversation in range(25):
        with linked_game(fuzzed) if conversation % 5 else SocketClient(fuzzed) as game:
            sent += converse(game, [maker.text() for _ in range(50)])

    assert sent > 1_000


numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8"), max_size=30)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.sampled_from(MEMBERS), inner, max_size=4)
    ),
    max_leaves=12,
)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(OPERATIONS), "path": st.sampled_from(POINTERS)},
    optional={"from": st.sampled_from(POINTERS), "value": documents},
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        **{name: documents for name in MEMBERS},
        "state_id": st.sampled_from(["channel", "extension"]),
        "state": documents | st.lists(operations, max_size=4),
        "poll_id": st.sampled_from(["p", "q"]),
    },
)
requests = st.fixed_dictionaries(
    {
        "action": st.sampled_from(ACTIONS) | st.text(max_size=10),
        "params": st.fixed_dictionaries({"target": st.sampled_from(TARGETS)}, optional={"request_id": numbers}),
        "data": bodies | documents,
    }
)
texts = requests.map(json.dumps) | documents.map(json.dumps) | st.text(st.characters(codec="utf-8"), max_size=60)


@pytest.mark.ruling("X2", "X3")
@settings(max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(conversation=st.lists(texts, min_size=5, max_size=30))
def test_every_text_is_answered_once(fuzzed, conversation):
    with linked_game(fuzzed) as game:
        converse(game, conversation)


@pytest.mark.ruling("X2", "X4")
@settings(max_examples=30, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    credentials=st.lists(st.dictionaries(st.sampled_from(["client_id", "pin", "refresh", "jwt"]), scalars), max_size=9)
)
def test_no_credential_but_the_right_one_gives_rights(fuzzed, credentials):
    with SocketClient(fuzzed) as game:
        statuses = {game.error("authenticate", data=each)["status"] for each in credentials}

        assert statuses <= {400, 401}
        assert 401 == game.error("get", "state", {"state_id": "channel"})["status"]
        if len(credentials) < MOST_AUTHENTICATIONS:
            assert (
                CHANNEL
                == game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(fuzzed)})["twitch_id"]
            )
