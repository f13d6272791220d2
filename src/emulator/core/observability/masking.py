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

TOKEN = re.compile(SECRET_TOKEN)
EVERYTHING = "*"
"""As the name of a secret member: the whole body is secret."""
_LEAST_PIN = 100_000
"""A PIN has six characters, which may all be digits."""
_NAMES = tuple(f'{name}"'.encode() for name in (*SECRET_NAMES, *SECRET_ENDS))
_SIGNS = (b"eyj", b"zxlk", b"://", b"asic ")
"""Every token has one of these, if its case is ignored."""
_PLAIN = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ'\\", b'abcdefghijklmnopqrstuvwxyz""')
_IGNORED = b"_-0123456789"
_ESCAPE = re.compile(rb"\\u00[2-7]")
"""An ASCII character that JSON need not escape: the plain text may be a name or a token."""
_TOKEN = re.compile(SECRET_TEXT.pattern.encode())
_LARGEST_READ = 65 * 1024
"""Bytes of a body that is decoded to hide its members."""
_LONGEST_START = 64
"""Bytes by which a token is recognized, if the rest is cut off."""
_HIDDEN = HIDDEN.encode()
_WORD = re.compile(r"[a-z]+(?:[_.-][a-z]+|[A-Z][a-z]+)*|[0-9]{1,2}(?:\.[0-9]{1,2}){1,2}|_ns|_emulator|v1|")
"""A part of a path that is not secret: a word, or a version."""
_LONGEST_WORD = 40
_LONGEST_CACHED = 256
_IDS = ("client_id", "channel_id", "user_id", "opaque_id")
_SHORTEST_TOKEN = 40
"""Characters of an id that may have more than the header of a JWT."""


def masked(body: bytes, secrets: frozenset[str] = frozenset()) -> bytes:
    """Return the first `MAX_BODY` bytes of a body, without tokens and without the members named `secrets`.

    A body that may have secret members and is not JSON, or is large, is hidden as a whole.
    """
    start = body[: MAX_BODY + _LONGEST_START]
    has_name, has_token = _suspicions(start)
    if start and (secrets or has_name or _ESCAPE.search(start)):
        start, has_token = _json_without(body, secrets)[: MAX_BODY + _LONGEST_START], True
    return (_TOKEN.sub(_HIDDEN, start) if has_token else start)[:MAX_BODY]


def _suspicions(text: bytes) -> tuple[bool, bool]:
    """Whether a text may have a member with the name of a secret, also in JSON inside JSON, or in Python's quotes; and
    whether it may have a token.
    """
    plain = text.translate(_PLAIN, _IGNORED)
    return _cached_suspicions(plain) if len(plain) <= _LONGEST_CACHED else _find_suspicions(plain)


def _find_suspicions(plain: bytes) -> tuple[bool, bool]:
    singular = plain.replace(b's"', b'"')
    return any(map(singular.__contains__, _NAMES)), any(map(plain.__contains__, _SIGNS))


_cached_suspicions = lru_cache(maxsize=1024)(_find_suspicions)
"""Games and crowds send the same few messages, which differ in numbers only."""


def _json_without(body: bytes, secrets: frozenset[str]) -> bytes:
    if EVERYTHING in secrets or len(body) > _LARGEST_READ:
        return _HIDDEN
    try:
        return msgspec.json.encode(_body_without(msgspec.json.decode(body), secrets))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _HIDDEN


def masked_caller(caller: Caller | None) -> Caller | None:
    """Return a caller without tokens in the ids: clients mix up the parts of a credential."""
    if caller is None:
        return None
    ids = caller.client_id, caller.opaque_id, caller.channel_id or "", caller.user_id or ""
    if max(map(len, ids)) < _SHORTEST_TOKEN:
        return caller
    given = {name: getattr(caller, name) for name in _IDS}
    return replace(caller, **{name: masked_text(id) for name, id in given.items() if id})


def masked_text(text: str) -> str:
    """Return a text without tokens."""
    encoded = text.encode(errors="replace")
    return _TOKEN.sub(_HIDDEN, encoded).decode() if encoded and _suspicions(encoded)[1] else text


def masked_target(path: str, query: bytes, shown: frozenset[str]) -> str:
    """Return a path and query with the values of the parameters named `shown`, without tokens.

    The values of other parameters are hidden: they are secret, or unknown to the service.
    """
    return _cached_target(path, query, shown) if len(query) <= _LONGEST_CACHED else _target(path, query, shown)


def _target(path: str, query: bytes, shown: frozenset[str]) -> str:
    return f"{path}?{'&'.join(_parameter(part, shown) for part in query.decode('latin-1').split('&'))}"


_cached_target = lru_cache(maxsize=1024)(_target)
"""A crowd sends the same few queries."""


def _parameter(part: str, shown: frozenset[str]) -> str:
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
    parts = path[: _LONGEST_CACHED * 4].split("/")
    return "/".join(part if _is_word(part) else HIDDEN for part in parts)


def without_path(text: str, path: str) -> str:
    """Return a message without the parts of a path that `masked_path` hides."""
    for part in sorted(path.split("/"), key=len, reverse=True):
        if not _is_word(part):
            for form in (part, unquote_plus(part), part[:100]):
                text = text.replace(form, HIDDEN)
    return masked_text(text)


def _is_word(text: str) -> bool:
    return len(text) <= _LONGEST_WORD and _WORD.fullmatch(text) is not None


def _body_without(value: Any, secrets: frozenset[str]) -> Any:
    """Return a body without secret members. Where an object with secret members belongs, any other value is hidden."""
    is_object = isinstance(value, dict)
    if isinstance(value, str):
        is_object = value.lstrip().startswith("{")
    if secrets and value and not is_object:
        return HIDDEN
    return _without_secrets(value, secrets)


def _without_secrets(value: Any, secrets: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _member(name, each, secrets) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_secrets(each, secrets) for each in value]
    if isinstance(value, str) and any(sign in value for sign in '{["'):  # JSON inside a JSON string (ruling W2)
        try:
            return msgspec.json.encode(_without_secrets(msgspec.json.decode(value), secrets)).decode()
        except (msgspec.MsgspecError, UnicodeError):
            return HIDDEN if _suspicions(value.encode(errors="replace"))[0] else value
    return value


def _member(name: str, value: Any, secrets: frozenset[str]) -> Any:
    if name in secrets:
        return HIDDEN
    if is_secret(name):
        return _without_values(value, is_pin=name.lower() == "pin")
    return _body_without(value, secrets) if name == "data" else _without_secrets(value, secrets)


def _without_values(value: Any, *, is_pin: bool) -> Any:
    """Hide all texts in a value, and the numbers that may be a PIN of digits."""
    if isinstance(value, dict):
        return {name: _without_values(each, is_pin=is_pin) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_values(each, is_pin=is_pin) for each in value]
    is_number = is_pin and isinstance(value, int | float) and value >= _LEAST_PIN
    return HIDDEN if is_number or (isinstance(value, str) and value) else value


_USER_INFO = re.compile(r"""(?<=://)[^/\s'"]*@""")

_ARGUMENTS = re.compile(r"(?<=with args beginning with: ).*", re.DOTALL)
"""The keys and values that Redis, or a proxy in front of it, quotes from an unknown command."""


def redact(text: str) -> str:
    """Return `text` without tokens, credentials in URLs, and arguments of Redis commands."""
    return _ARGUMENTS.sub("…", _USER_INFO.sub("…@", TOKEN.sub("…", text)))


def safe_traceback(error: BaseException) -> str:
    """Format the tracebacks of an exception and its causes without their messages, which may quote a client."""
    return "".join(_lines(error, set())).rstrip("\n")


def exception_name(error: BaseException) -> str:
    """Return the qualified class name, with the symbol of an OS error: `OSError (ENOSPC)`."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    symbol = errno.errorcode.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    return f"{name} ({symbol})" if symbol else name


def _lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen:
        yield from _lines(cause, seen)
        yield "which led to:\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{exception_name(error)}\n"
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield "with:\n"
        yield from _lines(inner, seen)
