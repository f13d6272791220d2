"""Viewers, broadcasters and backends: the callers of a service, each with a token of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extcli import bounded_json
from extcli.api.call import SERVICE, Call, encoded
from extcli.api.client import Service
from extcli.reading.streams import limited
from extcli.testing.calls import Calls, ModeT, Part, document, operation

Json = dict[str, Any]


class Actor(Part[ModeT]):
    """One caller. Each operation is one request and returns the service's JSON.

    A refusal raises `Refused`, whose `status` is that of the answer.
    """

    def __init__(self, calls: Calls, *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._calls = calls
        self._service = Service(calls)

    @operation
    def headers(self) -> dict[str, str]:
        """Return the headers that make a request of your own code one of this caller."""
        return {"Authorization": self._calls.authorization}

    @operation
    def request(self, method: str, path: str, body: object = None, /, **query: Any) -> Any:
        """Make any request, for example `request("GET", "user_info")`. `path` is below `/v1/e/`."""
        content = None if body is None else encoded(body)
        answer = self._service.perform(Call(method, f"{SERVICE}{path}", query, content))
        return document(answer) if answer.content else None

    # Polls

    @operation
    def vote(self, poll: str, value: int, *, count: int | None = None) -> Json:
        """Vote, and return the statistics after it."""
        return _object(self._service.cast_vote(value, poll=poll, count=count))

    @operation
    def poll(self, poll: str) -> Json:
        """Read the statistics of a poll."""
        return _object(self._service.read_poll(poll))

    @operation
    def define_poll(self, poll: str, config: Mapping[str, Any]) -> None:
        """Replace the definition of a poll."""
        self._service.define_poll(poll, config)

    @operation
    def clear_poll(self, poll: str) -> None:
        """Delete the votes of a poll."""
        self._service.clear_poll(poll)

    # Rankings and buffers

    @operation
    def submit(self, ranking: str, key: str) -> Json:
        """Submit an answer to a ranking."""
        return _object(self._service.submit_answer(key, ranking=ranking))

    @operation
    def ranking(self, ranking: str) -> Json:
        """Read a ranking."""
        return _object(self._service.read_ranking(ranking))

    @operation
    def clear_ranking(self, ranking: str) -> None:
        """Delete the answers of a ranking."""
        self._service.clear_ranking(ranking)

    @operation
    def add(self, buffer: str, entry: object) -> None:
        """Add an entry to an accumulation buffer."""
        self._service.add_to_buffer(encoded(entry), buffer=buffer)

    @operation
    def buffer(self, buffer: str, *, start: int | None = None) -> Json:
        """Read the entries of an accumulation buffer, from `start` (Unix ms)."""
        with self._service.read_buffer(buffer, start=start) as answer:
            return dict(bounded_json.decoded(b"".join(limited(answer.iter_bytes(), f"buffer {buffer}"))))

    # Stores, by the last part of their path: extension_state, channel_config, viewer_state, …

    @operation
    def store(self, store: str) -> Json:
        """Read a store."""
        return _object(self._service.read_store(store))

    @operation
    def set_store(self, store: str, value: object) -> None:
        """Replace a store."""
        self._service.replace_store(store, value)

    @operation
    def patch_store(self, store: str, patch: object) -> None:
        """Change a store by a JSON Patch."""
        self._service.patch_store(store, patch)

    @operation
    def json_store(self, store: str) -> Any:
        """Read a JSON store."""
        return document(self._service.read_json_store(store))

    @operation
    def set_json_store(self, store: str, value: object) -> None:
        """Replace a JSON store."""
        self._service.replace_json_store(store, value)

    # Codes, broadcasts and PINs

    @operation
    def define_codes(self, sets: object) -> None:
        """Replace the reward codes."""
        self._service.define_codes(encoded(sets))

    @operation
    def eligibility(self) -> Any:
        """Read which codes this viewer may redeem."""
        return document(self._service.read_eligibility())

    @operation
    def redeem(self, prize: int) -> Json:
        """Redeem a code of the set at this index."""
        return _object(self._service.redeem_code(prize))

    @operation
    def broadcast(self, event: str, data: object, *, target: str = "broadcast") -> None:
        """Send an event to the pages and games of the channel."""
        self._service.broadcast(event, data, target=target, channel=None, method="POST")

    @operation
    def pin(self) -> str:
        """Request a PIN that links a game to the channel."""
        return str(document(self._service.request_pin())["pin"])


def _object(answer: Any) -> Json:
    return dict(document(answer))
