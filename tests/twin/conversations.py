"""The part that talks over sockets: games and pages in one channel, while others write over REST.

What a service sends on time of its own is left out, because two runs of one version differ in it: updates of a poll, at
most one per second of real time (only the last counts, after a move of the clock has sent it), and the events
`vote_update` of pages, at most one per 5 seconds.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from support.constants import CLIENT_ID
from support.random_requests import RequestGenerator
from twin.calls import ENDPOINTS, Call, Calls
from twin.comparing import Comparison, Difference
from twin.credentials import EXTENSIONS, client_id
from twin.frames import FrameSocket, read_while
from twin.host import START, Clock, Pair, Setup
from twin.names import decoded, kinds
from twin.report import Report
from twin.rest import APART
from twin.wire import TIMEOUT, Wire, readable

STEPS = 7
FIRST = 200
"""Episodes of REST calls come first, so that the clock never moves back."""
PATIENCE = 15.0
"""Seconds to wait for an update that only one version has sent so far."""
CHANNEL = 100_000
"""The channel of the first conversation; longer than a port, so that no text has it in place of one."""
_MARK = 61_000
"""The id of the first request that only asks for a reply: what was sent before has arrived by then."""
_WRITES = {"vote", "vote_config", "channel_state", "extension_state", "channel_config", "extension_config", "broadcast",
           "extension_broadcast", "whisper_self", "datastream", "bits/transactions", "pusher_broadcast"}  # fmt: skip
_WRITING = [each for each in ENDPOINTS if each.path in _WRITES and each.method in ("POST", "PATCH", "DELETE")]
_WRITERS = ("broadcaster", "admin", "backend", "viewer")
_PAGE = "?protocol=7&client=js&version=4.3.1&flash=false"
_PATHS = ["/0.2.0/{}", "/0.2.0/{}", "/0.2.0/{}", "/ws/{}", "/", "/0.2.0/no-such-extension", "/0.2.0/{}?a=b", "/0.1/{}"]

_USER = re.compile(r'"user_id": "U?(\w+)"')
_TIME = re.compile(r'(?<="timestamp":)[0-9]+')
_TOPICS = [("state", "channel"), ("state", "extension"), ("config", "channel"), ("broadcast", "round"),
           ("broadcast", "*"), ("poll", "rps"), ("datastream", ""), ("config", "extension")]  # fmt: skip


class Talk:
    """One connection of both versions."""

    def __init__(self, pair: Pair, path: str, *, is_page: bool) -> None:
        self.is_page, self.path = is_page, path
        self.is_alike = True
        """Whether both versions have done the same so far. If not, the connection is left alone."""
        self.sockets = [FrameSocket(host.port, path) for host in pair]
        self.handshakes = [socket.handshake() for socket in self.sockets]
        self.compared = [0, 0]
        """Replies of each that were compared."""
        self.user: str | None = None
        """The user of all tokens that a page has sent, without the first U; empty if of several, or if one has none."""

    def send(self, text: str) -> None:
        for socket in self.sockets:
            socket.send(text)

    def ask(self, number: int) -> None:
        """Send what is answered after everything else that was sent."""
        if self.is_page:
            text, mark = '{"event":"pusher:ping","data":{}}', '"pusher:pong"'
        else:
            params = {"request_id": _MARK + number, "target": "state"}
            text, mark = (
                json.dumps({"action": "get", "params": params, "data": {"state_id": "channel"}}),
                f"{_MARK + number}",
            )
        for socket in self.sockets:
            socket.mark = mark
        self.send(text)

    def silent(self) -> list[FrameSocket]:
        """Return the sockets that have not been answered yet."""
        return [each for each in self.sockets if each.is_open and each.mark is not None]

    def replies(self) -> list[list[str]]:
        """Return the replies of each that were not compared yet."""
        every = [[text for text in socket.frames if not _is_sent_on_its_own(text)] for socket in self.sockets]
        fresh = [texts[count:] for texts, count in zip(every, self.compared, strict=True)]
        self.compared = [len(texts) for texts in every]
        return fresh

    def updates(self) -> list[list[str]]:
        """Return what each version has sent on its own, in order, without what depends on real time."""
        return [list(_updates(socket.frames)) for socket in self.sockets]

    def close(self) -> None:
        for socket in self.sockets:
            socket.close()


def _is_sent_on_its_own(text: str) -> bool:
    return '"action":"update"' in text[:400] or ('"event":"pusher' not in text[:400] and text.startswith('{"event"'))


def _updates(frames: list[str]) -> Iterator[str]:
    polls: dict[str, str] = {}
    for text in frames:
        if not _is_sent_on_its_own(text) or "vote_update:" in text:
            continue
        if '"target":"poll"' in text:
            polls[_topic(text)] = _TIME.sub("0", text)
        else:
            yield text
    yield from (polls[topic] for topic in sorted(polls))


def _topic(text: str) -> str:
    data: Any = json.loads(text)
    return str(data.get("data", {}).get("topic_id") or data.get("meta", {}).get("topic_id"))


class Conversation:
    """Some connections to one channel of one extension, and requests in turn."""

    def __init__(self, pair: Pair, clock: Clock, setup: Setup, seed: int, number: int, report: Report) -> None:
        self.pair, self.clock, self.setup, self.report = pair, clock, setup, report
        self.part = f"conversations {setup}"
        self.again = f"make twin SEED={seed} ARGS='--only conversations --setup \"{setup}\" --episode {number}'"
        self.random = random.Random(f"{seed} {setup} talk {number}")
        self.name, self.channel = client_id(number), str(CHANNEL + number)
        self.calls = Calls(self.random, self.name, client_id(number + EXTENSIONS // 2), self.channel, "")
        self.requests = RequestGenerator(self.random)
        self.comparison = Comparison(*pair)
        self.wires = [Wire(host.port) for host in pair]
        self.steps: list[str] = []
        self.talks: list[Talk] = []
        self._page_event = f"page event in {'production' if setup.production else 'sandbox'}"
        """What the report calls events of pages: their rights differ by environment."""
        self._marks = 0
        self._differs = False
        clock.set(START + (FIRST + number) * APART)

    def run(self) -> None:
        try:
            self._begin()
            if not self._differs and all(self._step() and not self._differs for _ in range(STEPS)):
                self._finish()
        finally:
            for talk in self.talks:
                talk.close()
            for wire in self.wires:
                wire.close()
        self.report.counts["conversations"] += 1

    def _begin(self) -> None:
        if not self.setup.production:
            self._call(self.calls.plain("POST", "/_emulator/reset"))
        for _ in range(self.random.choice([1, 1, 2])):
            path = self.random.choice(_PATHS) if self.random.random() < 0.15 else _PATHS[0]
            self._open(path.format(self.name), is_page=False)
        if self.random.random() < 0.7:
            self._open(f"/app/key{_PAGE}", is_page=True)

    def _open(self, path: str, *, is_page: bool) -> None:
        talk = Talk(self.pair, path, is_page=is_page)
        self.steps.append(f"connect {path}")
        if self._compared("socket handshake", self.comparison.responses(*talk.handshakes)) and talk.sockets[0].is_open:
            self.talks.append(talk)
            if is_page:
                self._say(talk, self._subscribing(self.channel))
                return
            self._say(talk, self._login())
            for target, topic in self.random.sample(_TOPICS, 3):
                params = {"request_id": 2, "target": target}
                self._say(talk, json.dumps({"action": "subscribe", "params": params, "data": {"topic_id": topic}}))

    def _login(self) -> str:
        role = self.random.choice(["broadcaster", "broadcaster", "admin", "viewer", "backend"])
        data: dict[str, Any] = {"client_id": self.name}
        if self.random.random() < 0.15:
            data["pin"] = "AAAAAA"
        else:
            data["jwt"] = self.calls.credentials.token(role, self.clock.now)
        return json.dumps({"action": "authenticate", "params": {"request_id": 1}, "data": data})

    def _subscription(self) -> str:
        return self._subscribing(self.random.choice([self.channel, self.channel, "all", "all", "4242"]))

    def _subscribing(self, channel: str) -> str:
        """Return a subscription, mostly with the token of the page's viewer, as the SDK sends it."""
        auth, _ = self.calls.credentials.any(self.clock.now) if self.random.random() < 0.8 else ("", "")
        data = {"auth": auth, "channel": f"twitch.pubsub.{self.name}.{channel}"}
        return json.dumps({"event": "pusher:subscribe", "data": data})

    def _page_text(self) -> str:
        drawn = self.random.random()
        if drawn < 0.5:
            return self._subscription()
        event = self.random.choice(["pusher:unsubscribe", "client-x", "pusher:subscribe", "", "pusher:pong"])
        data = self.random.choice(
            [{}, {"channel": f"twitch.pubsub.{self.name}.{self.channel}"}, {"channel": 5}, None, "x"]
        )
        garbage = ["", "{", "[]", "null", '{"event":5}', '{"event":"pusher:subscribe","data":"{"}', "x" * 20_000]
        return self.random.choice(garbage) if drawn > 0.9 else json.dumps({"event": event, "data": data})

    def _step(self) -> bool:
        self.clock.advance(self.random.choice([0, 1, 30, 1_500]))
        drawn = self.random.random()
        if drawn < 0.3 or not self._alike:
            call = self.calls.call(self.random.choice(_WRITING), self.clock.now, roles=_WRITERS)
            return self._call(call) and self._arrived()
        talk = self.random.choice(self._alike)
        text = self._page_text() if talk.is_page else self.requests.text().replace(CLIENT_ID, self.name)
        return self._say(talk, text)

    def _say(self, talk: Talk, text: str) -> bool:
        if not talk.is_alike:
            return True
        self.steps.append(f"{'page' if talk.is_page else 'game'} {self.talks.index(talk)} sends {text:.300}")
        talk.send(text)
        if talk.is_page and '"auth"' in text:
            for user in _USER.findall(" ".join(map(decoded, text.split(".")))) or [""]:
                talk.user = user if talk.user in (None, user) else ""
        self.report.counts["socket frames"] += 1
        return self._arrived(_place(text))

    def _call(self, call: Call) -> bool:
        self.steps.append(f"{call.place} ({call.note}) {call.parts[-1]!r:.300}")
        for wire in self.wires:
            wire.send(call.filled({}))
        for wire in self.wires:
            self._read_while(partial(_is_silent, wire), TIMEOUT, wire)
        old, new = (wire.receive(has_body=call.has_body) for wire in self.wires)
        self.report.counts["REST calls during sockets"] += 1
        return self._compared(call.place, self.comparison.responses(old, new))

    def _arrived(self, place: str = "frame") -> bool:
        """Wait for what every connection was sent, and compare the replies."""
        self._marks += 1
        for talk in self._alike:
            talk.ask(self._marks)
            self._read_while(talk.silent, TIMEOUT)
            for socket in talk.silent():
                socket.end("no reply in time")
            olds, news = talk.replies()
            index = self.talks.index(talk)
            if found := self._texts(olds, news, f"reply of connection {index}"):
                self._differs = not self._compared(self._page_event if talk.is_page else place, found) or self._differs
                # After another text of a refusal, both connections are in the same state.
                talk.is_alike = not self._differs and list(map(_kind, olds)) == list(map(_kind, news))
                self.report.counts["connections that were left, at a listed difference"] += not (
                    self._differs or talk.is_alike
                )
        return not self._differs

    @property
    def _alike(self) -> list[Talk]:
        return [talk for talk in self.talks if talk.is_alike]

    def _finish(self) -> None:
        """Compare what each connection was sent on its own."""
        if not self.setup.production:
            self._call(self.calls.plain("POST", "/_emulator/clock", {"advance": 1}))
            self._arrived()
        for talk in self._alike:
            place = self._page_event if talk.is_page else "frame update"
            self._read_while(partial(self._lacks, talk, place), PATIENCE)
            olds, news = talk.updates()
            self.report.counts["updates and events of sockets"] += len(olds)
            self._compared(place, self._texts(olds, news, self._name(talk)))
        if not self.setup.production and self._alike == self.talks:
            self._call(self.calls.plain("GET", f"/_emulator/sockets?client_id={self.name}"))

    def _read_while(self, is_missing: Callable[[], object], seconds: float, *wires: Wire) -> None:
        read_while(is_missing, [socket for talk in self.talks for socket in talk.sockets], wires, seconds)

    def _lacks(self, talk: Talk, place: str) -> bool:
        """Return whether one version has sent what the other may still send, unless an entry lists the difference."""
        olds, news = talk.updates()
        name = self._name(talk)
        return any(not self.report.changes.lists(Difference(place, each)) for each in self._absent(olds, news, name))

    def _name(self, talk: Talk) -> str:
        return f"connection {self.talks.index(talk)}{f' of {talk.user}' if talk.user else ''}"

    def _texts(self, olds: list[str], news: list[str], name: str) -> list[str]:
        if len(olds) != len(news):
            return list(self._absent(olds, news, name))
        found = []
        for number, (old, new) in enumerate(zip(olds, news, strict=True)):
            shown = _kind(old), _kind(new)
            if shown[0] != shown[1]:  # then the rest differs, too
                found.append(f"{name}, {number}: {shown[0]} -> {shown[1]} ({old:.300} -> {new:.300})")
            else:
                found += self.comparison.texts(old, new, f"{name}, {number}")
        return found

    def _absent(self, olds: list[str], news: list[str], name: str) -> Iterator[str]:
        """Word each frame that only one version has sent."""
        old, new = (
            Counter(side.comparable(text, kinds) for text in texts)
            for side, texts in zip(self.comparison.sides, (olds, news), strict=True)
        )
        yield from (f"{name}: {text:.300} -> absent" for text in (old - new).elements())
        yield from (f"{name}: absent -> {text:.300}" for text in (new - old).elements())

    def _compared(self, place: str, found: list[str]) -> bool:
        return not found or self.report.found(self.part, place, found, self.steps[-10:], self.again)


def _is_silent(wire: Wire) -> bool:
    return not readable([wire], 0)


def _kind(text: str) -> str:
    """Return what a frame is: the event of a page, a game's data or errors, a close."""
    try:
        frame = json.loads(text)
        return str(frame.get("event") or ("errors" if "errors" in frame else "data"))
    except (ValueError, AttributeError):
        return text[:80]


def _place(text: str) -> str:
    """Return how the report names a frame of a game: by its action and target."""
    try:
        request = json.loads(text)
        return f"frame {request['action']} {request['params'].get('target', '')}".strip()[:80]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "frame"


def run(pair: Pair, clock: Clock, setup: Setup, seed: int, numbers: range, report: Report) -> None:
    """Hold conversations on one engine, in sandbox or production."""
    for number in numbers:
        Conversation(pair, clock, setup, seed, number, report).run()
