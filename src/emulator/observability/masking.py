"""Removes secrets from bodies and query strings before they enter the journal."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from emulator.journal import HIDDEN

EVERYTHING: Final = "*"
"""As the name of a secret member: the whole body is secret."""
_TOKEN: Final = re.compile(rb"eyJ[\w-]{8,}(?:\.[\w-]*)*")
"""A JWT, or a truncated one: base64 that starts with `{"`."""
_HIDDEN: Final = HIDDEN.encode()


def masked(body: bytes, secrets: frozenset[str], limit: int) -> bytes:
    """Return at most `limit` bytes of a body, without tokens and without the values of the members named `secrets`.

    A body that should be JSON and is not is hidden as a whole.
    """
    if secrets:
        if EVERYTHING in secrets:
            return _HIDDEN if body else b""
        try:
            body = msgspec.json.encode(_without(msgspec.json.decode(body), secrets)) if body else b""
        except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
            return _HIDDEN
    if b"eyJ" in body:
        body = _TOKEN.sub(_HIDDEN, body)
    return body[:limit]


def _without(value: Any, secrets: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: HIDDEN if name in secrets else _without(each, secrets) for name, each in value.items()}
    if isinstance(value, list):
        return [_without(each, secrets) for each in value]
    if isinstance(value, str) and value.startswith(("{", "[")):  # JSON inside a JSON string (ruling W2)
        try:
            return msgspec.json.encode(_without(msgspec.json.decode(value), secrets)).decode()
        except msgspec.MsgspecError:
            return value
    return value


def masked_query(query: bytes, secrets: frozenset[str]) -> bytes:
    """Return a query string without tokens and without the values of the parameters named `secrets`."""
    if secrets and query:
        pairs = [pair.partition(b"=") for pair in query.split(b"&")]
        query = b"&".join(
            name + equals + (_HIDDEN if name.decode("latin-1") in secrets or EVERYTHING in secrets else value)
            for name, equals, value in pairs
        )
    return _TOKEN.sub(_HIDDEN, query) if b"eyJ" in query else query
