"""The service's endpoints as methods, under the names its handlers have. What goes over the wire is decided here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from extcli.api.http import Answer, Body
from extcli.config.settings import DEFAULT_PIN_PATH
from extcli.errors import UsageError

SERVICE = "/v1/e/"
CONTROL = "/_emulator/"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, before anybody's credentials are put on it."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Body | None = None
    signed: bool = True

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Caller(Protocol):
    """Makes calls as somebody; an answer of 300 or more is raised as an error."""

    def perform(self, call: Call) -> Answer: ...
    @contextmanager
    def stream(self, call: Call) -> Iterator[Answer]: ...


def encoded(value: object) -> bytes:
    """Compact UTF-8 JSON. Raises `UsageError` for text that is none: an argument of other bytes than UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise UsageError("an argument is not UTF-8 text") from None


def vote_cast(value: int, *, poll: str, count: int | None = None) -> Call:
    """`POST vote`, also for many at once."""
    body = {"value": value} if count is None else {"value": value, "count": count}
    return Call("POST", f"{SERVICE}vote", {"id": poll}, encoded(body))


def answer_submission(key: str, *, ranking: str) -> Call:
    """`POST rank`, also for many at once."""
    return Call("POST", f"{SERVICE}rank", {"id": ranking}, encoded({"key": key}))


def buffer_addition(blob: bytes, *, buffer: str) -> Call:
    """`POST accumulate`, also for many at once; `blob` is JSON text and sent as it is."""
    return Call("POST", f"{SERVICE}accumulate", {"id": buffer}, blob)


class Service:
    """One method per endpoint; each raises `Refused`, `ServerError` or `Unreachable`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def perform(self, call: Call) -> Answer:
        """Any call at all."""
        return self._caller.perform(call)

    # Polls

    def read_poll(self, poll: str) -> Answer:
        return self._get("vote", id=poll)

    def cast_vote(self, value: int, *, poll: str, count: int | None = None) -> Answer:
        return self.perform(vote_cast(value, poll=poll, count=count))

    def clear_poll(self, poll: str) -> Answer:
        return self.perform(Call("DELETE", f"{SERVICE}vote", {"id": poll}))

    @contextmanager
    def read_vote_log(self, poll: str, *, since: int | None = None, limit: int | None = None) -> Iterator[Answer]:
        """The answer may be very large, so its body is left to be streamed."""
        query = _given(id=poll, since=since, limit=limit)
        with self._caller.stream(Call("GET", f"{SERVICE}vote_logs", query)) as answer:
            yield answer

    def define_poll(self, poll: str, config: Mapping[str, Any]) -> Answer:
        return self._post("vote_config", {"id": poll, "config": config})

    def read_poll_definition(self, poll: str) -> Answer:
        return self._get("vote_config", id=poll)

    # Rankings

    def submit_answer(self, key: str, *, ranking: str) -> Answer:
        return self.perform(answer_submission(key, ranking=ranking))

    def read_ranking(self, ranking: str) -> Answer:
        return self._get("rank", id=ranking)

    def clear_ranking(self, ranking: str) -> Answer:
        return self.perform(Call("DELETE", f"{SERVICE}rank", {"id": ranking}))

    # Accumulation

    def add_to_buffer(self, blob: bytes, *, buffer: str) -> Answer:
        return self.perform(buffer_addition(blob, buffer=buffer))

    @contextmanager
    def read_buffer(self, buffer: str, *, start: int | None = None) -> Iterator[Answer]:
        """The answer may be very large, so its body is left to be streamed."""
        with self._caller.stream(Call("GET", f"{SERVICE}accumulate", _given(id=buffer, start=start))) as answer:
            yield answer

    # Stores, named as in their paths: extension_state, channel_config, …

    def read_store(self, store: str, *, users: str | None = None) -> Answer:
        return self._get(store, **_given(user_ids=users))

    def replace_store(self, store: str, document: object) -> Answer:
        return self._post(store, document)

    def patch_store(self, store: str, patch: object) -> Answer:
        return self.perform(Call("PATCH", f"{SERVICE}{store}", body=encoded(patch)))

    # Codes

    def define_codes(self, body: Body) -> Answer:
        return self.perform(Call("PUT", f"{SERVICE}codes", body=body))

    def list_codes(self) -> Answer:
        return self._get("codes")

    def clear_codes(self) -> Answer:
        return self.perform(Call("DELETE", f"{SERVICE}codes"))

    def mark_from_poll(self, poll: str, grant: Mapping[str, Any]) -> Answer:
        call = Call("POST", f"{SERVICE}codes/mark_from_poll", {"id": poll}, encoded(grant))
        return self.perform(call)

    def mark_from_list(self, body: Body) -> Answer:
        return self.perform(Call("POST", f"{SERVICE}codes/mark_from_list", body=body))

    def read_eligibility(self) -> Answer:
        return self._get("codes/eligibility")

    def read_redeemed(self) -> Answer:
        return self._get("codes/redeemed")

    def redeem_code(self, prize: int) -> Answer:
        return self._post("codes/redeem", {"prize": prize})

    # Broadcasts: GET with a body, as specified, or POST for deployments that take only that

    def broadcast(self, event: str, data: object, *, target: str, channel: str | None, method: str) -> Answer:
        message = {"event": event, "target": target, **_given(user_id=channel), "data": data}
        return self.perform(Call(method, f"{SERVICE}broadcast", body=encoded(message)))

    def extension_broadcast(self, event: str, data: object, *, target: str, method: str) -> Answer:
        message = {"event": event, "target": target, "data": data}
        return self.perform(Call(method, f"{SERVICE}extension_broadcast", body=encoded(message)))

    def whisper_self(self, event: str, data: object, *, method: str) -> Answer:
        return self.perform(Call(method, f"{SERVICE}whisper_self", body=encoded({"event": event, "data": data})))

    # Tokens and users

    def read_user_info(self) -> Answer:
        return self._get("user_info")

    def list_user_ids(self, cursor: str = "0") -> Answer:
        return self._get("user_ids", cursor=cursor)

    # PINs

    def request_pin(self, path: str = DEFAULT_PIN_PATH) -> Answer:
        """A PIN for a game to send; `path` because deployments name it differently."""
        return self.perform(Call("POST", f"{SERVICE}{path}"))

    def issue_pin(self, client_id: str) -> Answer:
        """A PIN for a game to show, and the token that its validation brings to life."""
        return self.perform(Call("POST", f"{SERVICE}pin", body=encoded({"identifier": client_id}), signed=False))

    def validate_pin(self, pin: str) -> Answer:
        return self._post("validate_pin", {"pin": pin})

    def pin_token_exists(self) -> Answer:
        return self._get("pin_token_exists")

    def revoke_pins(self) -> Answer:
        return self.perform(Call("DELETE", f"{SERVICE}pin"))

    # Control

    def is_ready(self) -> Answer:
        return self.perform(Call("GET", f"{CONTROL}ready", signed=False))

    def read_clock(self) -> Answer:
        return self.perform(Call("GET", f"{CONTROL}clock", signed=False))

    def move_clock(self, change: Mapping[str, Any]) -> Answer:
        return self.perform(Call("POST", f"{CONTROL}clock", body=encoded(change), signed=False))

    def reset(self) -> Answer:
        return self.perform(Call("POST", f"{CONTROL}reset", signed=False))

    def _get(self, name: str, **query: Any) -> Answer:
        return self.perform(Call("GET", f"{SERVICE}{name}", query))

    def _post(self, name: str, document: object) -> Answer:
        return self.perform(Call("POST", f"{SERVICE}{name}", body=encoded(document)))


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
