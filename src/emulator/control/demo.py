"""The demo: a stream that the service plays to itself for three minutes, in a namespace of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from math import pi, sin
from random import Random
from typing import Any, NamedTuple

from litestar.types import ASGIApp

from emulator.auth.tokens import Tokens
from emulator.core.callers import Role
from emulator.core.clock import END_OF_TIME, HOUR, SECOND, monotonic, system_now
from emulator.core.observability.request_context import CONTEXT_KEY, RequestContext, in_context, log_name, request_id
from emulator.core.wire import json_codec

DEMO_NAMESPACE = "demo"
"""Where the demo plays, and nowhere else."""
_log = logging.getLogger("emulator")


class Demo:
    """The demo of one service, which plays only if that is the namespace's."""

    def __init__(self, reset: Callable[[], Awaitable[object]], crowd: Crowd) -> None:
        """`reset` deletes all data of the service, and resets its clock."""
        self._reset = reset
        self._crowd = crowd
        self.pace = 1.0
        """The seconds that a second of the demo takes."""
        self.ends_at = 0
        """When the latest play ends by itself, in Unix ms by the system's time; 0 before the first."""
        self._playing: asyncio.Task[None] | None = None

    @property
    def is_playing(self) -> bool:
        return self._playing is not None and not self._playing.done()

    async def play(self) -> None:
        """Delete all data, reset the clock, and begin a play. An earlier one ends."""
        await self.close()
        await self._reset()
        self.stop()  # another call may have begun a play meanwhile
        self.ends_at = system_now() + DEMO_SECONDS * SECOND
        with in_context(None):  # the play does not belong to the request
            self._playing = asyncio.create_task(self._play())

    def stop(self) -> None:
        """Let the play end, at a reset for example."""
        if self._playing is not None:
            self._playing.cancel()

    async def close(self) -> None:
        """Stop the play, and wait for its end."""
        self.stop()
        if self._playing is not None:
            await asyncio.wait([self._playing])

    async def _play(self) -> None:
        acts = DemoPlay(self._crowd, self.pace)
        try:
            await acts.play()
        except Exception:
            _log.exception("unexpected failure in the demo")
        finally:
            await acts.close()


RANKING_ID = "words"
"""The id of the ranking."""
NEWS_EVENT = "news"
"""The event of the broadcasts; their data is a text."""
_PAGE_COUNT = 12
_SEED = 7


class _Round(NamedTuple):
    poll: str
    prompt: str
    options: tuple[str, ...]
    favor: tuple[int, ...]
    """How often each option is chosen, relative to the others."""


_ROUNDS = (
    _Round("boss", "Which boss is next?", ("Dragon", "Golem", "Hydra", "Kraken"), (5, 2, 4, 3)),
    _Round("weapon", "Which weapon do we take?", ("Sword", "Bow", "Hammer", "Staff"), (3, 4, 2, 1)),
    _Round("place", "Where do we go tonight?", ("Volcano", "Sunken city", "Sky fortress", "Home"), (2, 3, 4, 1)),
)
_WORDS = ("gg", "wow", "clutch", "again", "nerf it")
_ROUND_SECONDS = 60
"""Seconds of a round."""
DEMO_SECONDS = len(_ROUNDS) * _ROUND_SECONDS
_FAULT_AT, _CLOSES_AT, _VOTING_ENDS_AT = 25, 40, 43
"""The seconds of a round at which votes begin to fail, the poll closes, and the last ones give up voting."""
_FAULT = {
    "id": "overload", "match": "POST /v1/e/vote", "effect": "status", "status": 503, "share": 0.1, "lasts": 10 * SECOND,
}  # fmt: skip
_CODES = {"names": ["Hat"], "indices": [0], "codes": [[f"HAT-{number}" for number in range(200)]]}
_WINNER_COUNT = 5
"""Viewers who redeem a code after each round."""


@dataclass(eq=False, repr=False)
class DemoPlay:
    """One play of the demo."""

    _crowd: Crowd
    _pace: float
    """The seconds that a second of the demo takes."""

    def __post_init__(self) -> None:
        self._random = Random(_SEED)
        self._users = map(str, count(10_000))
        self._votes: list[tuple[str, int]] = []
        """The viewers who voted in this round, each with the option."""
        self._began = monotonic()
        self._tasks = set[asyncio.Task[None]]()
        """Requests and sockets that run beside the play."""

    async def _sleep_until(self, second: float) -> None:
        await asyncio.sleep(max(0.0, self._began + self._pace * second - monotonic()))

    def _run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(task := asyncio.create_task(work))
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel what still runs, and wait for its end."""
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def play(self) -> None:
        """Play all rounds before an audience of pages and a game."""
        for listening in self._audience():
            self._run_beside(listening)
        await self._crowd.send("PUT", "/v1/e/codes", _CODES, Role.ADMIN)
        for number, each in enumerate(_ROUNDS):
            begin = number * _ROUND_SECONDS
            await self._sleep_until(begin)
            if number:
                await self._crowd.send("POST", "/_emulator/clock", {"advance": HOUR})
            await self._open_poll(each)
            for second in range(_ROUND_SECONDS):
                if second == _FAULT_AT:
                    await self._crowd.send("POST", "/_emulator/faults", _FAULT)
                elif second == _CLOSES_AT:
                    await self._close_poll(each)
                self._chat(second)
                votes = _vote_count_in(second)
                for vote in range(votes):
                    await self._sleep_until(begin + second + vote / votes)
                    self._vote(each)
                await self._sleep_until(begin + second + 1)

    def _audience(self) -> Iterator[Coroutine[Any, Any, None]]:
        subscribe = {"event": "pusher:subscribe", "data": {"channel": f"twitch.pubsub.{CLIENT_ID}.{CHANNEL}"}}
        for _ in range(_PAGE_COUNT):
            yield self._crowd.listen("/app/demo?protocol=7", subscribe)
        token = self._crowd.token(Role.BROADCASTER)
        log_in = {"action": "authenticate", "params": {"request_id": 1}, "data": {"jwt": token}}
        follow = {"action": "subscribe", "params": {"request_id": 2, "target": "broadcast"}, "data": {"topic_id": "*"}}
        yield self._crowd.listen(f"/0.2.0/{CLIENT_ID}", log_in, follow)

    async def _open_poll(self, each: _Round) -> None:
        """Open the poll of a round."""
        self._votes.clear()
        await self._define_poll(each, endsIn=_CLOSES_AT)
        self._send_beside("POST", "channel_state", {"question": each.prompt}, Role.BROADCASTER)
        self._broadcast("The vote is open")

    async def _close_poll(self, each: _Round) -> None:
        """Close the poll of a round, and draw codes for viewers who voted for the winner."""
        await self._define_poll(each, endsAt=-1)
        self._broadcast("The vote is closed")
        ((winner, _),) = Counter(option for _, option in self._votes).most_common(1)
        grant = {"correct": winner, "cutoff_timestamp": END_OF_TIME, "prizes": [0], "prize_limits": [1]}
        marking = f"/v1/e/codes/mark_from_poll?id={each.poll}&channel_id={CHANNEL}"
        await self._crowd.send("POST", marking, grant, Role.ADMIN)
        for user in [user for user, option in self._votes if option == winner][:_WINNER_COUNT]:
            self._send_beside("POST", "codes/redeem", {"prize": 0}, user=user)

    async def _define_poll(self, each: _Round, **times: int) -> None:
        config = {"prompt": each.prompt, "options": each.options, **times}
        await self._crowd.send("POST", f"/v1/e/vote_config?id={each.poll}", {"config": config}, Role.BROADCASTER)

    def _chat(self, second: int) -> None:
        """Send words, and now and then an announcement or a mistake."""
        for word in self._random.choices(_WORDS, range(len(_WORDS), 0, -1), k=2):
            self._send_beside("POST", f"rank?id={RANKING_ID}", {"key": word}, user=next(self._users))
        if second % 8 == 4:  # viewers may not write it
            self._send_beside("POST", "channel_state", {"question": "Mine"}, user=next(self._users))
        if second in (10, 20, 30):
            self._broadcast(f"{_CLOSES_AT - second} seconds left")

    def _vote(self, each: _Round) -> None:
        user, (option,) = next(self._users), self._random.choices(range(len(each.options)), each.favor)
        self._votes.append((user, option))
        self._send_beside("POST", f"vote?id={each.poll}", {"value": option}, user=user)

    def _broadcast(self, text: str) -> None:
        self._send_beside("POST", "broadcast", {"event": NEWS_EVENT, "data": text}, Role.BROADCASTER)

    def _send_beside(self, method: str, name: str, body: object, role: Role = Role.VIEWER, user: str = "") -> None:
        self._run_beside(self._crowd.send(method, f"/v1/e/{name}", body, role, user))


def _vote_count_in(second: int) -> int:
    """Return how many vote in a second of a round: in two waves, and a few too late."""
    if second < _CLOSES_AT:
        return round(5 + 55 * sin(pi * second / (_CLOSES_AT / 2)) ** 2)
    return 2 if second < _VOTING_ENDS_AT else 0


CLIENT_ID = "demo-extension"
CHANNEL = "1001"
_HOST = "localhost"


@dataclass(eq=False, repr=False)
class Crowd:
    """The callers of one service, all of one extension and channel. They need no address of the service."""

    _app: ASGIApp
    """The service."""
    _name: str
    """Its namespace."""
    _tokens: Tokens
    _accept: Callable[[], asyncio.Protocol]
    """Makes the service's end of a WebSocket."""

    def token(self, role: Role, user: str = "") -> str:
        """Return a token for one hour; without a user, of one who has not shared the id."""
        return self._tokens.issue(
            HOUR, signed_as=CLIENT_ID, jti="demo", role=role, channel_id=CHANNEL, user_id=user or None
        )

    async def send(
        self, method: str, target: str, body: object = None, role: Role = Role.VIEWER, user: str = ""
    ) -> None:
        """Send a request to a path with its query, and wait for the response."""
        path, _, query = target.partition("?")
        headers = {b"host": _HOST.encode(), b"authorization": f"{CLIENT_ID} {self.token(role, user)}".encode()}
        context = RequestContext(request_id({}), headers=headers, namespace=log_name(self._name), is_audited=False)
        scope: Any = {
            "type": "http",
            "scheme": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": list(headers.items()),
            "client": ("127.0.0.1", 0),
            "state": {CONTEXT_KEY: context},
        }
        unsent = [b"" if body is None else json_codec.encode(body)]

        async def receive() -> Any:
            if not unsent:
                await asyncio.Future()  # the caller stays
            return {"type": "http.request", "body": unsent.pop()}

        async def discard(message: Any) -> None:
            pass

        with in_context(context):
            await self._app(scope, receive, discard)

    async def listen(self, path: str, *messages: object) -> None:
        """Open a WebSocket, send these messages, and listen until the service closes it, or the task is cancelled."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException

        near, far = socket.socketpair()
        await asyncio.get_running_loop().connect_accepted_socket(self._accept, far)
        with suppress(WebSocketException, OSError):
            async with connect(f"ws://{_HOST}{path}", sock=near, proxy=None) as connection:
                for each in messages:
                    await connection.send(json_codec.encode(each).decode())
                async for _ in connection:
                    pass
