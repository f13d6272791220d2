"""Texts about requests without PINs, tokens, codes and receipts."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import unquote_plus

from emulator.contract.names import SECRET_TEXT, is_secret
from extcli import bounded_json
from extcli.errors import shortened
from extcli.output.sanitize import compact, json_text

_CREDENTIALS = frozenset({"refresh", "jwt", "transactionreceipt"})
"""Names of members that are secret in requests of the service API, in lower case."""
_REWARDS = frozenset({"code", "codes", "all_prizes", "redeemed"})
"""Names of members with reward codes, unless they are numbers: an error has a number `code`."""
SENDING_PATHS = frozenset(
    {"broadcast", "extension_broadcast", "broadcast_extension", "whisper_self", "pusher_broadcast"}
)
"""Paths that send a message, some also with GET, and the action of a socket. A message may be a secret, such as a code,
under any name."""
_MESSAGE = frozenset({"data", "message"})
_LONGEST_SHOWN = 1000
_MASK = "***"


def shown(text: str | bytes) -> str:
    """Return JSON for `--verbose`: on one line, cut off, with secrets masked."""
    with suppress(ValueError):
        return shortened(json_text(masked(bounded_json.decoded(text))), _LONGEST_SHOWN)
    return f"{len(text)} {'characters' if isinstance(text, str) else 'bytes'} that are not JSON"


def shown_body(path: str, body: bytes) -> str:
    """Return the body of a request to this path for `--verbose`: its size, and its JSON unless it is a message."""
    size = f"{len(body)} bytes"
    return size if _is_message_path(path) else f"{size}: {shown(body)}"


def shown_frame(text: str) -> str:
    """Return a frame to a socket for `--verbose`: JSON with secrets and messages masked."""
    frame = bounded_json.members(text)
    if "data" in frame and str(frame.get("action")) in SENDING_PATHS:
        text = json_text(frame | {"data": _MASK})
    return shown(text)


def shown_url(url: str) -> str:
    """Return a URL with the secrets and the message in its query masked."""
    path, mark, query = url.partition("?")
    secret = _CREDENTIALS | _REWARDS | (_MESSAGE if _is_message_path(path) else frozenset())
    parts = query.split("&")
    for index, part in enumerate(parts):
        typed = part.partition("=")[0]
        name = unquote_plus(typed)
        if is_secret(name) or name.lower() in secret:
            parts[index] = f"{typed}={_MASK}"
    return SECRET_TEXT.sub(_MASK, f"{path}{mark}{'&'.join(parts)}")


def _is_message_path(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2] in SENDING_PATHS


def masked(value: Any) -> Any:
    """Return a JSON value with its secrets masked: the members of certain names, and all tokens."""
    if isinstance(value, dict):
        return {name: _masked_member(name, member) for name, member in value.items()}
    if isinstance(value, list):
        return [masked(member) for member in value]
    return _masked_text(value) if isinstance(value, str) else value


def _masked_text(text: str) -> str:
    """Return a text with its secrets masked. It may be JSON (ruling W2)."""
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            inner = bounded_json.decoded(text)
            return text if (hidden := masked(inner)) == inner else compact(hidden)
    return SECRET_TEXT.sub(_MASK, text)


def _masked_member(name: str, value: Any) -> Any:
    is_reward = name.lower() in _REWARDS and not isinstance(value, int | float)
    if not (is_reward or is_secret(name) or name.lower() in _CREDENTIALS):
        return masked(value)
    return value if value is None or isinstance(value, bool) else _MASK
