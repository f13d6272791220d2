"""Keeps secrets out of the journal and the log.

Endpoints and actions declare the members that hold secrets. Tokens are also recognized by their form, and some members
by their name, because clients put secrets in wrong places. In the log, masking is only a second line of defense: no
code of the service logs a secret.
"""

from __future__ import annotations

import errno
import re
import traceback
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_plus

import msgspec
from msgspec.structs import replace

from emulator.contract.names import SECRET_ENDS, SECRET_NAMES, SECRET_TEXT, SECRET_TOKEN, is_secret
from emulator.core.callers import Caller
from emulator.core.journal import HIDDEN, MAX_BODY

TOKEN_PATTERN = re.compile(SECRET_TOKEN)
WHOLE_BODY = "*"
"""As the name of a secret member: the whole body is secret."""
_MIN_NUMERIC_PIN = 100_000
"""A PIN has six characters, which may all be digits."""
_SECRET_NAMES = tuple(f'{name}"'.encode() for name in (*SECRET_NAMES, *SECRET_ENDS))
_TOKEN_SIGNS = (b"eyj", b"zxlk", b"://", b"asic ")
"""Every token has one of these, if its case is ignored."""
_FOLD_CASE = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ'\\", b'abcdefghijklmnopqrstuvwxyz""')
_IGNORED_BYTES = b"_-0123456789"
_ASCII_ESCAPE = re.compile(rb"\\u00[2-7]")
"""An ASCII character that JSON need not escape: the plain text may be a name or a token."""
_TOKEN = re.compile(SECRET_TEXT.pattern.encode())
_MAX_DECODED = 65 * 1024
"""Bytes of a body that is decoded to hide its members."""
_MAX_TOKEN_START = 64
"""Bytes by which a token is recognized, if the rest is cut off."""
_HIDDEN = HIDDEN.encode()
_PLAIN_PATH_PART = re.compile(r"[a-z]+(?:[_.-][a-z]+|[A-Z][a-z]+)*|[0-9]{1,2}(?:\.[0-9]{1,2}){1,2}|_ns|_emulator|v1|")
"""A part of a path that is not secret: a word, or a version."""
_MAX_WORD_LENGTH = 40
_MAX_CACHED_LENGTH = 256
_ID_FIELDS = ("client_id", "channel_id", "user_id", "opaque_id")
_MIN_TOKEN_LENGTH = 40
"""Characters of an id that may have more than the header of a JWT."""


def masked_body(body: bytes, secrets: frozenset[str] = frozenset()) -> bytes:
    """Return the first `MAX_BODY` bytes of a body, without tokens and without the members named `secrets`.

    A body that may have secret members and is not JSON, or is large, is hidden as a whole.
    """
    start = body[: MAX_BODY + _MAX_TOKEN_START]
    has_name, has_token = _suspected_secrets(start)
    if start and (secrets or has_name or _ASCII_ESCAPE.search(start)):
        start, has_token = _mask_json(body, secrets)[: MAX_BODY + _MAX_TOKEN_START], True
    return (_TOKEN.sub(_HIDDEN, start) if has_token else start)[:MAX_BODY]


def _suspected_secrets(text: bytes) -> tuple[bool, bool]:
    """Whether a text may have a member with the name of a secret, also in JSON inside JSON, or in Python's quotes; and
    whether it may have a token.
    """
    plain = text.translate(_FOLD_CASE, _IGNORED_BYTES)
    return _cached_suspected(plain) if len(plain) <= _MAX_CACHED_LENGTH else _find_suspected(plain)


def _find_suspected(plain: bytes) -> tuple[bool, bool]:
    singular = plain.replace(b's"', b'"')
    return any(map(singular.__contains__, _SECRET_NAMES)), any(map(plain.__contains__, _TOKEN_SIGNS))


_cached_suspected = lru_cache(maxsize=1024)(_find_suspected)
"""Games and crowds send the same few messages, which differ in numbers only."""


def _mask_json(body: bytes, secrets: frozenset[str]) -> bytes:
    if WHOLE_BODY in secrets or len(body) > _MAX_DECODED:
        return _HIDDEN
    try:
        return msgspec.json.encode(_mask_body(msgspec.json.decode(body), secrets))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _HIDDEN


def masked_caller(caller: Caller | None) -> Caller | None:
    """Return a caller without tokens in the ids: clients mix up the parts of a credential."""
    if caller is None:
        return None
    ids = caller.client_id, caller.opaque_id, caller.channel_id or "", caller.user_id or ""
    if max(map(len, ids)) < _MIN_TOKEN_LENGTH:
        return caller
    given = {name: getattr(caller, name) for name in _ID_FIELDS}
    return replace(caller, **{name: masked_text(id) for name, id in given.items() if id})


def masked_text(text: str) -> str:
    """Return a text without tokens."""
    encoded = text.encode(errors="replace")
    return _TOKEN.sub(_HIDDEN, encoded).decode() if encoded and _suspected_secrets(encoded)[1] else text


def masked_target(path: str, query: bytes, shown: frozenset[str]) -> str:
    """Return a path and query with the values of the parameters named `shown`, without tokens.

    The values of other parameters are hidden: they are secret, or unknown to the service.
    """
    return (_mask_cached if len(query) <= _MAX_CACHED_LENGTH else _mask_target)(path, query, shown)


def _mask_target(path: str, query: bytes, shown: frozenset[str]) -> str:
    return f"{path}?{'&'.join(_mask_parameter(part, shown) for part in query.decode('latin-1').split('&'))}"


_mask_cached = lru_cache(maxsize=1024)(_mask_target)
"""A crowd sends the same few queries."""


def _mask_parameter(part: str, shown: frozenset[str]) -> str:
    name, equals, value = part.partition("=")
    if not equals:
        return part if _is_word(part) or part in shown else HIDDEN
    if name not in shown:
        value = HIDDEN if value else ""
        name = name if _is_word(name) else HIDDEN
    elif (plain := masked_text(typed := unquote_plus(value))) != typed:
        value = plain
    return f"{name}={value}"


def masked_path(path: str) -> str:
    """Return a path that no endpoint has, with its words and versions, and with all other parts hidden."""
    parts = path[: _MAX_CACHED_LENGTH * 4].split("/")
    return "/".join(part if _is_word(part) else HIDDEN for part in parts)


def masked_parts(text: str, path: str) -> str:
    """Return a message without the parts of a path that `masked_path` hides."""
    for part in sorted(path.split("/"), key=len, reverse=True):
        if not _is_word(part):
            for form in (part, unquote_plus(part), part[:100]):
                text = text.replace(form, HIDDEN)
    return masked_text(text)


def _is_word(text: str) -> bool:
    return len(text) <= _MAX_WORD_LENGTH and _PLAIN_PATH_PART.fullmatch(text) is not None


def _mask_body(value: Any, secrets: frozenset[str]) -> Any:
    """Return a body without secret members. Where an object with secret members belongs, any other value is hidden."""
    is_object = isinstance(value, dict)
    if isinstance(value, str):
        is_object = value.lstrip().startswith("{")
    if secrets and value and not is_object:
        return HIDDEN
    return _mask_members(value, secrets)


def _mask_members(value: Any, secrets: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _mask_member(name, each, secrets) for name, each in value.items()}
    if isinstance(value, list):
        return [_mask_members(each, secrets) for each in value]
    if isinstance(value, str) and any(sign in value for sign in '{["'):  # JSON inside a JSON string (ruling W2)
        try:
            return msgspec.json.encode(_mask_members(msgspec.json.decode(value), secrets)).decode()
        except (msgspec.MsgspecError, UnicodeError):
            return HIDDEN if _suspected_secrets(value.encode(errors="replace"))[0] else value
    return value


def _mask_member(name: str, value: Any, secrets: frozenset[str]) -> Any:
    if name in secrets:
        return HIDDEN
    if is_secret(name):
        return _hide_values(value, is_pin=name.lower() == "pin")
    return _mask_body(value, secrets) if name == "data" else _mask_members(value, secrets)


def _hide_values(value: Any, *, is_pin: bool) -> Any:
    """Hide all texts in a value, and the numbers that may be a PIN of digits."""
    if isinstance(value, dict):
        return {name: _hide_values(each, is_pin=is_pin) for name, each in value.items()}
    if isinstance(value, list):
        return [_hide_values(each, is_pin=is_pin) for each in value]
    is_number = is_pin and isinstance(value, int | float) and value >= _MIN_NUMERIC_PIN
    return HIDDEN if is_number or (isinstance(value, str) and value) else value


_URL_CREDENTIALS = re.compile(r"""(?<=://)[^/\s'"]*@""")

_REDIS_ARGUMENTS = re.compile(r"(?<=with args beginning with: ).*", re.DOTALL)
"""The keys and values that Redis, or a proxy in front of it, quotes from an unknown command."""


def redact(text: str) -> str:
    """Return `text` without tokens, credentials in URLs, and arguments of Redis commands."""
    return _REDIS_ARGUMENTS.sub("…", _URL_CREDENTIALS.sub("…@", TOKEN_PATTERN.sub("…", text)))


def safe_traceback(error: BaseException) -> str:
    """Format the tracebacks of an exception and its causes without their messages, which may quote a client."""
    return "".join(_traceback_lines(error, set())).rstrip("\n")


def exception_name(error: BaseException) -> str:
    """Return the qualified class name, with the symbol of an OS error: `OSError (ENOSPC)`."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    symbol = errno.errorcode.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    return f"{name} ({symbol})" if symbol else name


def _traceback_lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen:
        yield from _traceback_lines(cause, seen)
        yield "which led to:\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{exception_name(error)}\n"
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield "with:\n"
        yield from _traceback_lines(inner, seen)
