"""WebSocket messages: encoding requests, decoding replies and updates, and errors in replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from extcli import bounded_json
from extcli.api.call import encoded
from extcli.errors import FORBIDDEN, ErrorResponse, Refused, ServerError

NO_REQUEST = 65_535
"""The request id of updates, and of replies to requests that had none."""


@dataclass(frozen=True, slots=True)
class Message:
    """A reply or an update, and its text as received."""

    document: dict[str, Any]
    text: bytes

    @property
    def request_id(self) -> object:
        return self.document["meta"].get("request_id")

    @property
    def is_update(self) -> bool:
        """Whether the message is an update, not a reply."""
        return self.document["meta"].get("action") == "update" and self.request_id == NO_REQUEST and not self.errors

    @property
    def data(self) -> dict[str, Any]:
        data = self.document.get("data")
        return data if isinstance(data, dict) else {}

    @property
    def errors(self) -> list[Any]:
        """The entries of `errors`; empty if the request succeeded."""
        errors = self.document.get("errors")
        return errors if isinstance(errors, list) else []


def request(action: str, target: str, data: object, request_id: int) -> str:
    """Return a request as text. `None` for `data` leaves the field out."""
    params = {"request_id": request_id} | ({"target": target} if target else {})
    return encoded({"action": action, "params": params} | ({} if data is None else {"data": data})).decode()


def read_message(text: bytes) -> Message | None:
    """Decode a message of the service; `None` if it has another format."""
    try:
        document = bounded_json.decoded(text)
    except ValueError:
        return None
    if not isinstance(document, dict) or not isinstance(document.get("meta"), dict):
        return None
    return Message(document, text)


def error_of(name: str, message: Message) -> ErrorResponse:
    """Return the error for a reply with `errors`. `name` is the action and the target of the request."""
    status = status_of(message)
    if status >= 500:
        return ServerError(name, status, message.text)
    advice = _ADVICE_OF.get((name.partition(" ")[0], status)) or _ADVICE.get(status, "")
    return Refused(name, status, message.text, fix=advice)


def status_of(message: Message) -> int:
    """Return the status of the first error in a reply. Some deployments call this field `number`."""
    first = message.errors[0] if message.errors and isinstance(message.errors[0], dict) else {}
    found = first.get("status", first.get("number"))
    return found if isinstance(found, int) else 400


_ADVICE = {
    400: "nothing was changed",
    401: "authenticate first: omit --no-auth",
    403: FORBIDDEN,
    429: "retry later, at a lower rate",
}
TOO_MANY = "retry later, or close other connections"
_ADVICE_OF = {
    ("authenticate", 429): TOO_MANY,
    ("subscribe", 400): "correct the target, or subscribe to less over one connection",
}
"""Advice for one action and status."""
