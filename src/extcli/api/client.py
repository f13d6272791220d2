"""The service's endpoints as methods, with the names of the service's handlers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from extcli.api.http import Answer, Body
from extcli.config.settings import DEFAULT_PIN_PATH
from extcli.errors import UsageError

SERVICE = "/v1/e/"
CONTROL = "/_emulator/"
NAMESPACES = "/_ns"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, without credentials."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Body | None = None
    signed: bool = True
    """Whether to send it with the credentials of the caller."""
    is_probe: bool = False
    """Whether extcli makes it for itself, so that the journal of an emulator does not list it."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Caller(Protocol):
    """Sends calls with credentials. Raises `ErrorAnswer` for a status of 300 or above."""

    def perform(self, call: Call) -> Answer: ...
    @contextmanager
    def stream(self, call: Call) -> Iterator[Answer]: ...


def encoded(value: object) -> bytes:
    """Return compact UTF-8 JSON. Raises `UsageError` for an argument that was not UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise UsageError("an argument is not UTF-8 text") from None


def vote_cast(value: int, *, poll: str, count: int | None = None) -> Call:
    """Return the call `POST vote`, also used for votes from a file."""
    body = {"value": value} if count is None else {"value": value, "count": count}
    return Call("POST", f"{SERVICE}vote", {"id": poll}, encoded(body))


def answer_submission(key: str, *, ranking: str) -> Call:
    """Return the call `POST rank`, also used for answers from a file."""
    return Call("POST", f"{SERVICE}rank", {"id": ranking}, encoded({"key": key}))


def buffer_addition(blob: bytes, *, buffer: str) -> Call:
    """Return the call `POST accumulate`, also used for documents from a file. `blob` is JSON, sent unchanged."""
    return Call("POST", f"{SERVICE}accumulate", {"id": buffer}, blob)


class Probing:
    """Sends all calls as probes."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def perform(self, call: Call) -> Answer:
        return self._caller.perform(replace(call, is_probe=True))

    @contextmanager
    def stream(self, call: Call) -> Iterator[Answer]:
        with self._caller.stream(replace(call, is_probe=True)) as answer:
            yield answer


class Service:
    """One method per endpoint. Each raises `Refused`, `ServerError` or `Unreachable`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def probing(self) -> Service:
        """Return the service for calls that a command makes beside the one that its user asked for."""
        return Service(Probing(self._caller))

    def perform(self, call: Call) -> Answer:
        """Send any call."""
        return self._caller.perform(call)

    # Polls

    def read_poll(self, poll: str) -> Answer:
        return self._get("vote", id=poll)

    def cast_vote(self, value: int, *, poll: str, count: int | None = None) -> Answer:
        return self.perform(vote_cast(value, poll=poll, count=count))

    def clear_poll(self, poll: str) -> Answer:
        return self._delete("vote", id=poll)

    @contextmanager
    def read_vote_log(
        self, poll: str, *, since: int | None = None, limit: int | None = None, channel: str | None = None
    ) -> Iterator[Answer]:
        """Yield the answer before its body, which may be very large."""
        query = _given(id=poll, since=since, limit=limit, channel_id=channel)
        with self._caller.stream(Call("GET", f"{SERVICE}vote_logs", query)) as answer:
            yield answer

    def define_poll(self, poll: str, config: Mapping[str, Any]) -> Answer:
        return self._post("vote_config", {"id": poll, "config": config})

    def read_poll_definition(self, poll: str) -> Answer:
        return self._get("vote_config", id=poll)

    def list_polls(self, cursor: str) -> Answer:
        return self._get("polls", cursor=cursor)

    # Rankings

    def submit_answer(self, key: str, *, ranking: str) -> Answer:
        return self.perform(answer_submission(key, ranking=ranking))

    def read_ranking(self, ranking: str) -> Answer:
        return self._get("rank", id=ranking)

    def clear_ranking(self, ranking: str) -> Answer:
        return self._delete("rank", id=ranking)

    def list_rankings(self, cursor: str) -> Answer:
        return self._get("rankings", cursor=cursor)

    # Accumulation

    def add_to_buffer(self, blob: bytes, *, buffer: str) -> Answer:
        return self.perform(buffer_addition(blob, buffer=buffer))

    @contextmanager
    def read_buffer(self, buffer: str, *, start: int | None = None) -> Iterator[Answer]:
        """Yield the answer before its body, which may be very large."""
        with self._caller.stream(Call("GET", f"{SERVICE}accumulate", _given(id=buffer, start=start))) as answer:
            yield answer

    def list_buffers(self, cursor: str) -> Answer:
        return self._get("buffers", cursor=cursor)

    # Stores, by the last part of their path: extension_state, channel_config, …

    def read_store(self, store: str, *, users: str | None = None, user: str | None = None) -> Answer:
        """Read the caller's record, or with role admin those of `users`, or with role backend that of `user`."""
        return self._get(store, **_given(user_ids=users, userID=user))

    def replace_store(self, store: str, document: object) -> Answer:
        return self._post(store, document)

    def patch_store(self, store: str, patch: object) -> Answer:
        return self.perform(Call("PATCH", f"{SERVICE}{store}", body=encoded(patch)))

    def read_json_store(self, store: str) -> Answer:
        return self._get("json_store", id=store)

    def replace_json_store(self, store: str, document: object) -> Answer:
        return self.perform(Call("POST", f"{SERVICE}json_store", {"id": store}, encoded(document)))

    # Trivia

    def edit_question(self, question: Mapping[str, Any]) -> Answer:
        return self._post("curated_poll_edit", question)

    def remove_question(self, question: str) -> Answer:
        return self._delete_with("curated_poll_edit", {"id": question})

    def edit_option(self, question: str, option: Mapping[str, Any]) -> Answer:
        return self._post("curated_poll_edit_option", {"id": question, "option": option})

    def remove_option(self, question: str, option: str) -> Answer:
        return self._delete_with("curated_poll_edit_option", {"question": question, "option": option})

    def set_question_state(self, question: str, state: str, *, winner: str | None = None) -> Answer:
        body = {"transition": state, **_given(winner=winner)}
        return self.perform(Call("POST", f"{SERVICE}curated_poll_state", {"id": question}, encoded(body)))

    def read_questions(self, question: str | None = None) -> Answer:
        """Read one question, or all that the caller may see."""
        return self._get("curated_poll", **_given(id=question))

    def vote_on_question(self, question: str, option: str) -> Answer:
        return self._post("curated_poll", {"question_id": question, "vote": option})

    def read_leaderboard(self) -> Answer:
        return self._get("curated_poll_leaderboard")

    def join_team(self) -> Answer:
        return self.perform(Call("POST", f"{SERVICE}team_membership"))

    def read_team(self) -> Answer:
        return self._get("team_membership")

    # Purchases and the datastream

    def record_transaction(self, receipt: str, buyer: str) -> Answer:
        return self._post("bits/transactions", {"transactionReceipt": receipt, "displayName": buyer})

    def post_event(self, event: object) -> Answer:
        return self._post("datastream", event)

    # Codes

    def define_codes(self, body: Body) -> Answer:
        return self.perform(Call("PUT", f"{SERVICE}codes", body=body))

    def list_codes(self) -> Answer:
        return self._get("codes")

    def clear_codes(self) -> Answer:
        return self._delete("codes")

    def mark_from_poll(self, poll: str, grant: Mapping[str, Any]) -> Answer:
        return self.perform(Call("POST", f"{SERVICE}codes/mark_from_poll", {"id": poll}, encoded(grant)))

    def mark_from_list(self, body: Body) -> Answer:
        return self.perform(Call("POST", f"{SERVICE}codes/mark_from_list", body=body))

    def read_eligibility(self) -> Answer:
        return self._get("codes/eligibility")

    def read_redeemed(self) -> Answer:
        return self._get("codes/redeemed")

    def redeem_code(self, prize: int) -> Answer:
        return self._post("codes/redeem", {"prize": prize})

    # Broadcasts: GET with a body, as specified, or POST for deployments that accept nothing else

    def broadcast(self, event: str, data: object, *, target: str, channel: str | None, method: str) -> Answer:
        message = {"event": event, "target": target, **_given(user_id=channel), "data": data}
        return self.perform(Call(method, f"{SERVICE}broadcast", body=encoded(message)))

    def extension_broadcast(self, event: str, data: object, *, target: str, method: str) -> Answer:
        message = {"event": event, "target": target, "data": data}
        return self.perform(Call(method, f"{SERVICE}extension_broadcast", body=encoded(message)))

    def whisper_self(self, event: str, data: object, *, method: str) -> Answer:
        return self.perform(Call(method, f"{SERVICE}whisper_self", body=encoded({"event": event, "data": data})))

    def broadcast_as_page(self, event: str, data: object) -> Answer:
        """`event` is the full name, with environment and client id."""
        return self._post("pusher_broadcast", {"event": event, "target": "broadcast", "data": data})

    # Tokens and users

    def read_user_info(self) -> Answer:
        return self._get("user_info")

    def list_user_ids(self, cursor: str = "0") -> Answer:
        return self._get("user_ids", cursor=cursor)

    # PINs

    def request_pin(self, path: str = DEFAULT_PIN_PATH) -> Answer:
        """Request a PIN to type into a game. Deployments have different paths for it."""
        return self.perform(Call("POST", f"{SERVICE}{path}"))

    def issue_pin(self, client_id: str) -> Answer:
        """Request a PIN for a game to show, and a token that becomes valid with the PIN."""
        return self.perform(Call("POST", f"{SERVICE}pin", body=encoded({"identifier": client_id}), signed=False))

    def validate_pin(self, pin: str) -> Answer:
        return self._post("validate_pin", {"pin": pin})

    def check_pin_token(self, client_id: str, token: str) -> Answer:
        """Succeeds once the PIN that was issued with a game's token was validated."""
        body = encoded({"identifier": client_id, "jwt": token})
        return self.perform(Call("POST", f"{SERVICE}unauthed/validate_pin", body=body, signed=False))

    def pin_token_exists(self) -> Answer:
        return self._get("pin_token_exists")

    def expire_pin(self, client_id: str, **pin: str) -> Answer:
        """Make one PIN of an emulator expire, by `pin` or `digest`."""
        return self.perform(
            Call("POST", f"{CONTROL}pins/expire", body=encoded({"client_id": client_id, **pin}), signed=False)
        )

    def revoke_pins(self) -> Answer:
        return self._delete("pin")

    # Control

    def is_ready(self) -> Answer:
        return self.perform(Call("GET", f"{CONTROL}ready", signed=False))

    def read_clock(self) -> Answer:
        return self.perform(Call("GET", f"{CONTROL}clock", signed=False))

    def move_clock(self, change: Mapping[str, Any]) -> Answer:
        return self.perform(Call("POST", f"{CONTROL}clock", body=encoded(change), signed=False))

    def read_coming_expiries(self, limit: int) -> Answer:
        return self.perform(Call("GET", f"{CONTROL}clock/next", {"limit": limit}, signed=False))

    def count_contents(self) -> Answer:
        return self.perform(Call("GET", f"{CONTROL}contents", signed=False))

    def list_contents(self, kind: str, only: Mapping[str, Any], cursor: str) -> Answer:
        """List a page of what the emulator holds: of all, or only one client id, channel or text."""
        query = {**_given(**only), "limit": 200, "cursor": cursor}
        return self.perform(Call("GET", f"{CONTROL}contents/{kind}", query, signed=False))

    def reset(self, keep: int = 0) -> Answer:
        """Delete all data. With `keep`, the reset can be undone for so many seconds."""
        return self.perform(Call("POST", f"{CONTROL}reset", _given(undo=keep or None), signed=False))

    def undo_reset(self) -> Answer:
        return self.perform(Call("POST", f"{CONTROL}undo", signed=False))

    def list_sockets(self, limits: Mapping[str, Any]) -> Answer:
        """List the open sockets, at most 1,000, of all or only one client id and channel."""
        return self.perform(Call("GET", f"{CONTROL}sockets", {**_given(**limits), "limit": 1000}, signed=False))

    def close_sockets(self, closing: Mapping[str, Any]) -> Answer:
        return self.perform(Call("POST", f"{CONTROL}sockets/close", body=encoded(closing), signed=False))

    def stall_sockets(self, stalling: Mapping[str, Any]) -> Answer:
        return self.perform(Call("POST", f"{CONTROL}sockets/stall", body=encoded(stalling), signed=False))

    def add_fault(self, fault: Mapping[str, Any]) -> Answer:
        return self.perform(Call("POST", f"{CONTROL}faults", body=encoded(fault), signed=False))

    def replace_faults(self, faults: Sequence[Mapping[str, Any]]) -> Answer:
        return self.perform(Call("PUT", f"{CONTROL}faults", body=encoded({"faults": faults}), signed=False))

    def list_faults(self) -> Answer:
        return self.perform(Call("GET", f"{CONTROL}faults", signed=False))

    def remove_fault(self, id: str) -> Answer:
        return self.perform(Call("POST", f"{CONTROL}faults/remove", body=encoded({"id": id}), signed=False))

    def clear_faults(self) -> Answer:
        return self.perform(Call("DELETE", f"{CONTROL}faults", signed=False))

    def apply_seed(self, document: bytes) -> Answer:
        return self.perform(Call("PUT", f"{CONTROL}seed", body=document, signed=False))

    def wait(self, condition: Mapping[str, Any]) -> Answer:
        """Wait on the service until a condition is met, or its timeout has passed."""
        return self.perform(Call("GET", f"{CONTROL}wait", condition, signed=False))

    def explain(self, request_id: str | None = None) -> Answer:
        """Explain the latest entry of the journal with this request id, or the latest refusal."""
        return self.perform(Call("GET", f"{CONTROL}explain", _given(id=request_id), signed=False))

    def read_journal(self, query: Mapping[str, Any]) -> Answer:
        return self.perform(Call("GET", f"{CONTROL}journal", query, signed=False))

    def read_journal_entry(self, id: str, **form: str) -> Answer:
        """Read an entry by its request id or number, or what `form` makes of it."""
        return self.perform(Call("GET", f"{CONTROL}journal/entry", {"id": id, **form}, signed=False))

    @contextmanager
    def follow_journal(self, query: Mapping[str, Any]) -> Iterator[Answer]:
        """Yield the answer, whose body is one line of JSON per entry and does not end."""
        with self._caller.stream(Call("GET", f"{CONTROL}journal/stream", query, signed=False)) as answer:
            yield answer

    def call_as(self, body: bytes) -> Answer:
        """Make a REST call as the caller that the body names."""
        return self.perform(Call("POST", f"{CONTROL}call", body=body, signed=False))

    @contextmanager
    def save_snapshot(self, *, keys: bool) -> Iterator[Answer]:
        """Yield the answer with a snapshot of all data, the body unread."""
        query = {"keys": "true"} if keys else {}
        with self._caller.stream(Call("GET", f"{CONTROL}snapshot", query, signed=False)) as answer:
            yield answer

    def load_snapshot(self, body: Body) -> Answer:
        return self.perform(Call("PUT", f"{CONTROL}snapshot", body=body, signed=False))

    def read_parity(self, of: str) -> Answer:
        """Read what production would have done differently, of the `namespace` or of the whole `service`."""
        return self.perform(Call("GET", f"{CONTROL}parity", {"of": of}, signed=False))

    def list_namespaces(self) -> Answer:
        return self.perform(Call("GET", NAMESPACES, signed=False))

    def create_namespace(self, name: str, source: str | None = None) -> Answer:
        """Create a namespace, empty or as a copy of `source`; with an empty name, under a free one."""
        path = f"{NAMESPACES}/{name}" if name else NAMESPACES
        return self.perform(Call("POST", path, _given(**{"from": source}), signed=False))

    def drop_namespace(self, name: str) -> Answer:
        return self.perform(Call("DELETE", f"{NAMESPACES}/{name}", signed=False))

    def _get(self, name: str, **query: Any) -> Answer:
        return self.perform(Call("GET", f"{SERVICE}{name}", query))

    def _delete(self, name: str, **query: Any) -> Answer:
        return self.perform(Call("DELETE", f"{SERVICE}{name}", query))

    def _delete_with(self, name: str, document: object) -> Answer:
        return self.perform(Call("DELETE", f"{SERVICE}{name}", body=encoded(document)))

    def _post(self, name: str, document: object) -> Answer:
        return self.perform(Call("POST", f"{SERVICE}{name}", body=encoded(document)))


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
