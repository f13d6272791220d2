"""Splits a large JSON object into its members in short steps. Decoding it at once would delay all other requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from emulator.wire.json_codec import decode
from emulator.wire.refusals import malformed_json

_TOP: Final = re.compile(rb'["{}\[\],]')
_NESTED: Final = re.compile(rb'["{}\[\]]')
_IN_STRING: Final = re.compile(rb'["\\]')
_COMMA: Final = ord(",")
_STEP: Final = 64 * 1024
"""Bytes between two returns to the event loop."""
_TOKENS: Final = 5_000
"""Tokens between two returns to the event loop."""


async def members_of(raw: bytes, *, most: int) -> dict[str, msgspec.Raw] | None:
    """Return the members of a JSON object with their undecoded values; `None` if `raw` is not an object.

    Stops after `most + 1` members. A JSON string is decoded first (ruling W2). Raises `BadRequest` for malformed JSON;
    errors inside a value appear when the caller decodes it.
    """
    text = raw.strip()
    if text.startswith(b'"'):
        text = decode(text, str).strip().encode()
    if not text.startswith(b"{"):
        return None
    members: dict[str, msgspec.Raw] = {}
    start = 1
    for end in _member_ends(text):
        if end is None:
            await asyncio.sleep(0)
            continue
        is_last = text[end] != _COMMA
        if not is_last or members or text[start:end].strip():
            members.update(_member(text[start:end]))
        if is_last and text[end:] != b"}":
            raise malformed_json("malformed end")
        if is_last or len(members) > most:
            return members
        start = end + 1
    raise malformed_json("it is incomplete")


def _member_ends(text: bytes) -> Iterator[int | None]:
    """Yield where each member of an object ends: the index of the comma, or at last of the closing bracket.

    Between them, yields `None` when the event loop should run.
    """
    depth = position = tokens = 0
    in_string = False
    while position < len(text):
        step = min(position + _STEP, len(text))
        while found := (_IN_STRING if in_string else _NESTED if depth > 1 else _TOP).search(text, position, step):
            token, position, tokens = found[0], found.end(), tokens + 1
            if token == b'"':
                in_string = not in_string
            elif token == b"\\":
                position += 1  # the escaped character
            elif token in b"{[":
                depth += 1
            elif token == b",":
                yield found.start()
            else:
                depth -= 1
                if depth == 0:
                    yield found.start()
            if tokens % _TOKENS == 0:
                yield None
        position = max(position, step)
        yield None


def _member(text: bytes) -> dict[str, msgspec.Raw]:
    try:
        member = msgspec.json.decode(b"{" + text + b"}", type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        member = {}
    if len(member) != 1:
        raise malformed_json("malformed member")
    return member
