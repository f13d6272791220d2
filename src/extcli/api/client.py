"""The service's endpoints as methods, with the names of the service's handlers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from extcli.api.call import SERVICE, Call, encoded, without_none
from extcli.api.http import Body, Response
from extcli.api.signed_calls import CallsWithCredentials
from extcli.config.settings import DEFAULT_PIN_PATH
from extcli.errors import UsageError


def _id(text: str) -> str:
    """Return the id of a poll, ranking, buffer or JSON store. Raises `UsageError` for an empty one."""
    if not text:
        raise UsageError("the id is empty", fix="is a shell variable unset? The service would act on `default`")
    return text


def vote_cast(value: int, *, poll: str, count: int | None = None) -> Call:
    """Return the call `POST vote`, also used for votes from a file."""
    body = {"value": value} if count is None else {"value": value, "count": count}
    return Call("POST", f"{SERVICE}vote", {"id": _id(poll)}, encoded(body))


def answer_submission(key: str, *, ranking: str) -> Call:
    """Return the call `POST rank`, also used for answers from a file."""
    return Call("POST", f"{SERVICE}rank", {"id": _id(ranking)}, encoded({"key": key}))


def buffer_addition(blob: bytes, *, buffer: str) -> Call:
    """Return the call `POST accumulate`, also used for documents from a file. `blob` is JSON, sent unchanged."""
    return Call("POST", f"{SERVICE}accumulate", {"id": _id(buffer)}, blob)


class Service:
    """One method per endpoint. Each raises `Refused`, `ServerError` or `Unreachable`."""

    def __init__(self, caller: CallsWithCredentials) -> None:
        self._caller = caller

    def probing(self) -> Service:
        """Return the service for reads of the command itself, which the journal leaves out."""
        return Service(self._caller.probing())

    def perform(self, call: Call) -> Response:
        """Send any call."""
        return self._caller.perform(call)

    # Polls

    def read_poll(self, poll: str) -> Response:
        return self._get("vote", id=_id(poll))

    def cast_vote(self, value: int, *, poll: str, count: int | None = None) -> Response:
        return self.perform(vote_cast(value, poll=poll, count=count))

    def clear_poll(self, poll: str) -> Response:
        return self._delete("vote", id=_id(poll))

    def read_vote_log(
        self, poll: str, *, since: int | None = None, limit: int | None = None, channel: str | None = None
    ) -> AbstractContextManager[Response]:
        """Return a context manager for the response. Its body is streamed, because it may be very large."""
        return self._stream("vote_logs", without_none(id=_id(poll), since=since, limit=limit, channel_id=channel))

    def define_poll(
        self, poll: str, config: Mapping[str, Any], *, expected: Mapping[str, Any] | None = None
    ) -> Response:
        """Define a poll.

        With `expected`, the service responds 409 unless that is the current definition; empty means none.
        """
        more = {} if expected is None else {"expected": expected}
        return self._post("vote_config", {"id": _id(poll), "config": config, **more})

    def read_poll_definition(self, poll: str) -> Response:
        return self._get("vote_config", id=_id(poll))

    def list_polls(self, cursor: str) -> Response:
        return self._get("polls", cursor=cursor)

    # Rankings

    def submit_answer(self, key: str, *, ranking: str) -> Response:
        return self.perform(answer_submission(key, ranking=ranking))

    def read_ranking(self, ranking: str) -> Response:
        return self._get("rank", id=_id(ranking))

    def clear_ranking(self, ranking: str) -> Response:
        return self._delete("rank", id=_id(ranking))

    def list_rankings(self, cursor: str) -> Response:
        return self._get("rankings", cursor=cursor)

    # Accumulation

    def add_to_buffer(self, blob: bytes, *, buffer: str) -> Response:
        return self.perform(buffer_addition(blob, buffer=buffer))

    def read_buffer(self, buffer: str, *, start: int = 0) -> AbstractContextManager[Response]:
        """Return a context manager for the response. Its body is streamed, because it may be very large."""
        return self._stream("accumulate", {"id": _id(buffer), "start": start})

    def list_buffers(self, cursor: str) -> Response:
        return self._get("buffers", cursor=cursor)

    # Stores, by the last part of their path: extension_state, channel_config, …

    def read_store(self, store: str, *, users: str | None = None, user: str | None = None) -> Response:
        """Read the caller's store; as admin the stores of `users`, as backend the store of `user`."""
        return self._get(store, **without_none(user_ids=users, userID=user))

    def replace_store(self, store: str, document: object) -> Response:
        return self._post(store, document)

    def patch_store(self, store: str, patch: object) -> Response:
        return self.perform(Call("PATCH", f"{SERVICE}{store}", body=encoded(patch)))

    def read_json_store(self, store: str) -> Response:
        return self._get("json_store", id=_id(store))

    def replace_json_store(self, store: str, document: object) -> Response:
        return self.perform(Call("POST", f"{SERVICE}json_store", {"id": _id(store)}, encoded(document)))

    # Trivia

    def edit_question(self, question: Mapping[str, Any]) -> Response:
        return self._post("curated_poll_edit", question)

    def remove_question(self, question: str) -> Response:
        return self._delete_with("curated_poll_edit", {"id": question})

    def edit_option(self, question: str, option: Mapping[str, Any]) -> Response:
        return self._post("curated_poll_edit_option", {"id": question, "option": option})

    def remove_option(self, question: str, option: str) -> Response:
        return self._delete_with("curated_poll_edit_option", {"question": question, "option": option})

    def set_question_state(self, question: str, state: str, *, winner: str | None = None) -> Response:
        body = {"transition": state, **without_none(winner=winner)}
        return self.perform(Call("POST", f"{SERVICE}curated_poll_state", {"id": question}, encoded(body)))

    def read_questions(self, question: str | None = None) -> Response:
        """Read one question, or all that the caller may see."""
        return self._get("curated_poll", **without_none(id=question))

    def vote_on_question(self, question: str, option: str) -> Response:
        return self._post("curated_poll", {"question_id": question, "vote": option})

    def read_leaderboard(self) -> Response:
        return self._get("curated_poll_leaderboard")

    def join_team(self) -> Response:
        return self.perform(Call("POST", f"{SERVICE}team_membership"))

    def read_team(self) -> Response:
        return self._get("team_membership")

    # Purchases and the datastream

    def record_transaction(self, receipt: str, buyer: str) -> Response:
        return self._post("bits/transactions", {"transactionReceipt": receipt, "displayName": buyer})

    def post_event(self, event: object) -> Response:
        return self._post("datastream", event)

    # Codes

    def define_codes(self, body: Body) -> Response:
        return self.perform(Call("PUT", f"{SERVICE}codes", body=body))

    def list_codes(self) -> Response:
        return self._get("codes")

    def clear_codes(self) -> Response:
        return self._delete("codes")

    def mark_from_poll(self, poll: str, grant: Mapping[str, Any]) -> Response:
        return self.perform(Call("POST", f"{SERVICE}codes/mark_from_poll", {"id": _id(poll)}, encoded(grant)))

    def mark_from_list(self, body: Body) -> Response:
        return self.perform(Call("POST", f"{SERVICE}codes/mark_from_list", body=body))

    def read_eligibility(self) -> Response:
        return self._get("codes/eligibility")

    def read_redeemed(self) -> Response:
        return self._get("codes/redeemed")

    def redeem_code(self, prize: int) -> Response:
        return self._post("codes/redeem", {"prize": prize})

    # Broadcasts: GET with a body, as specified, or POST for deployments that accept nothing else

    def broadcast(self, event: str, data: object, *, target: str, channel: str | None, method: str) -> Response:
        message = {"event": event, "target": target, **without_none(user_id=channel), "data": data}
        return self.perform(Call(method, f"{SERVICE}broadcast", body=encoded(message)))

    def extension_broadcast(self, event: str, data: object, *, target: str, method: str) -> Response:
        message = {"event": event, "target": target, "data": data}
        return self.perform(Call(method, f"{SERVICE}extension_broadcast", body=encoded(message)))

    def whisper_self(self, event: str, data: object, *, method: str) -> Response:
        return self.perform(Call(method, f"{SERVICE}whisper_self", body=encoded({"event": event, "data": data})))

    # Tokens and users

    def read_user_info(self) -> Response:
        return self._get("user_info")

    def list_user_ids(self, cursor: str = "0") -> Response:
        return self._get("user_ids", cursor=cursor)

    # PINs

    def request_pin(self, path: str = DEFAULT_PIN_PATH) -> Response:
        """Request a PIN to type into a game. Deployments have different paths for it."""
        return self.perform(Call("POST", f"{SERVICE}{path}"))

    def issue_pin(self, client_id: str) -> Response:
        """Request a PIN for a game to show, and a token that becomes valid with the PIN."""
        return self.perform(Call("POST", f"{SERVICE}pin", body=encoded({"identifier": client_id}), signed=False))

    def validate_pin(self, pin: str) -> Response:
        return self._post("validate_pin", {"pin": pin})

    def pin_token_exists(self) -> Response:
        return self._get("pin_token_exists")

    def revoke_pins(self) -> Response:
        return self._delete("pin")

    def _get(self, name: str, **query: Any) -> Response:
        return self.perform(Call("GET", f"{SERVICE}{name}", query))

    def _delete(self, name: str, **query: Any) -> Response:
        return self.perform(Call("DELETE", f"{SERVICE}{name}", query))

    def _delete_with(self, name: str, document: object) -> Response:
        return self.perform(Call("DELETE", f"{SERVICE}{name}", body=encoded(document)))

    def _post(self, name: str, document: object) -> Response:
        return self.perform(Call("POST", f"{SERVICE}{name}", body=encoded(document)))

    def _stream(self, name: str, query: Mapping[str, Any]) -> AbstractContextManager[Response]:
        return self._caller.stream(Call("GET", f"{SERVICE}{name}", query))
