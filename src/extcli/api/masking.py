"""Texts about requests without PINs, tokens, codes and receipts."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus

from extcli import bounded_json
from extcli.errors import shortened
from extcli.output.sanitize import json_text

_SECRET = frozenset(
    {"pin", "refresh", "jwt", "token", "tokens", "secret", "transactionreceipt"}
    | {"code", "codes", "all_prizes", "redeemed"}  # reward codes
)
SENDING = frozenset({"broadcast", "extension_broadcast", "broadcast_extension", "whisper_self", "pusher_broadcast"})
"""Paths that send a message, some also with GET, and the action of a socket. A message may be a secret, such as a code,
under any name."""
_MESSAGE = ("data", "message")
_JWT = re.compile(r"eyJ[\w-]*\.[\w-]+\.[\w-]*")
_LONGEST_SHOWN = 1000
_MASK = "***"


def shown(text: str | bytes) -> str:
    """Return JSON for `--verbose`: on one line, cut off, with secrets masked."""
    try:
        return shortened(json_text(masked(bounded_json.decoded(text))), _LONGEST_SHOWN)
    except ValueError:
        return f"{len(text)} {'characters' if isinstance(text, str) else 'bytes'} that are not JSON"


def shown_body(path: str, body: bytes) -> str:
    """Return the body of a request to this path for `--verbose`: its size, and its JSON unless it is a message."""
    size = f"{len(body)} bytes"
    return size if _sends(path) else f"{size}: {shown(body)}"


def shown_frame(text: str) -> str:
    """Return a frame to a socket for `--verbose`: JSON with secrets and messages masked."""
    try:
        frame = bounded_json.decoded(text)
    except ValueError:
        frame = None
    if not (isinstance(frame, dict) and frame.get("action") in SENDING and "data" in frame):
        return shown(text)
    return shown(json_text(frame | {"data": _MASK}))


def shown_url(url: str) -> str:
    """Return a URL with the secrets and the message in its query masked."""
    path, mark, query = url.partition("?")
    hidden = _SECRET.union(_MESSAGE) if _sends(path) else _SECRET
    parts = [part.partition("=") for part in query.split("&")]
    shown_parts = [
        f"{name}={_MASK}" if unquote_plus(name).lower() in hidden else f"{name}{equals}{value}"
        for name, equals, value in parts
    ]
    return _JWT.sub(_MASK, f"{path}{mark}{'&'.join(shown_parts)}")


def _sends(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2] in SENDING


def masked(value: Any) -> Any:
    """Return a JSON value with its secrets masked: the members of certain names, and all tokens."""
    if isinstance(value, dict):
        return {name: _mask_of(member) if name.lower() in _SECRET else masked(member) for name, member in value.items()}
    if isinstance(value, list):
        return [masked(member) for member in value]
    return _JWT.sub(_MASK, value) if isinstance(value, str) else value


def _mask_of(value: Any) -> Any:
    """Return `***` for a text. Other values, such as the number `code` of an error, are not secrets and stay."""
    if isinstance(value, list):
        return [_mask_of(member) for member in value]
    if isinstance(value, dict):
        return masked(value)
    return _MASK if isinstance(value, str) else value
