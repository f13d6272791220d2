"""What goes over the socket: requests and replies as text, what a reply refuses, and frames shown without secrets."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from extcli.api.client import encoded
from extcli.errors import ErrorAnswer, Refused, ServerError, shortened
from extcli.output.sanitize import json_text

NO_REQUEST = 65_535
"""The request id of updates, and of replies to requests that had none."""

_SECRET = frozenset({"pin", "refresh", "jwt", "token"})
_JWT = re.compile(r"eyJ[\w-]*\.[\w-]+\.[\w-]*")
_LONGEST_SHOWN = 1000
_MASK = "***"


@dataclass(frozen=True, slots=True)
class Message:
    """A reply or an update, and its text as it came."""

    document: dict[str, Any]
    text: bytes

    @property
    def request_id(self) -> object:
        return self.document["meta"].get("request_id")

    @property
    def is_update(self) -> bool:
        """Whether it answers nothing."""
        return self.document["meta"].get("action") == "update" and self.request_id == NO_REQUEST and not self.faults

    @property
    def data(self) -> dict[str, Any]:
        data = self.document.get("data")
        return data if isinstance(data, dict) else {}

    @property
    def faults(self) -> list[Any]:
        """The entries of `errors`; none of a request that was done."""
        errors = self.document.get("errors")
        return errors if isinstance(errors, list) else []


def request(action: str, target: str, data: object, request_id: int) -> str:
    """A request as a frame; `None` for no data at all."""
    params = {"request_id": request_id} | ({"target": target} if target else {})
    return encoded({"action": action, "params": params} | ({} if data is None else {"data": data})).decode()


def read_message(text: bytes) -> Message | None:
    """A frame of the service; `None` for what is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("meta"), dict):
        return None
    return Message(document, text)


def declined(name: str, message: Message) -> ErrorAnswer:
    """The error that a reply with `errors` is; `name` is of the request, its action first."""
    status = status_of(message)
    if status >= 500:
        return ServerError(name, status, message.text)
    advice = _ADVICE_OF.get((name.partition(" ")[0], status)) or _ADVICE.get(status, "")
    return Refused(name, status, message.text, fix=advice)


def status_of(message: Message) -> int:
    """The status of a reply's first error; published services have called it `number`, too."""
    first = message.faults[0] if message.faults and isinstance(message.faults[0], dict) else {}
    found = first.get("status", first.get("number"))
    return found if isinstance(found, int) else 400


_ADVICE = {
    400: "nothing was changed; correct it and try again",
    401: "authenticate first: leave --no-auth out",
    403: "act as somebody else: --as broadcaster, --as backend or --as admin",
    429: "wait a little, and send less at once",
}
OVERCROWDED = "wait a little, or end connections that are not needed"
_ADVICE_OF = {
    ("authenticate", 429): OVERCROWDED,
    ("subscribe", 400): "correct what is to be followed, or follow less over one connection",
}
"""Where an action is refused for something of its own."""


def shown(text: str | bytes) -> str:
    """A frame for `--verbose`: on one line, and with PINs and tokens masked."""
    try:
        return shortened(json_text(_masked(json.loads(text))), _LONGEST_SHOWN)
    except (ValueError, RecursionError):
        return f"{len(text)} characters that are no JSON"


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _MASK if name.lower() in _SECRET else _masked(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_masked(member) for member in value]
    return _JWT.sub(_MASK, value) if isinstance(value, str) else value
