"""Texts about requests without PINs, tokens, codes and receipts."""

from __future__ import annotations

import re
from typing import Any

from extcli import bounded_json
from extcli.errors import shortened
from extcli.output.sanitize import json_text

_SECRET = frozenset(
    {"pin", "refresh", "jwt", "token", "tokens", "secret", "transactionreceipt"}
    | {"code", "codes", "all_prizes", "redeemed"}  # reward codes
)
_JWT = re.compile(r"eyJ[\w-]*\.[\w-]+\.[\w-]*")
_LONGEST_SHOWN = 1000
_MASK = "***"


def shown(text: str | bytes) -> str:
    """Return JSON for `--verbose`: on one line, cut off, with secrets masked."""
    try:
        return shortened(json_text(masked(bounded_json.decoded(text))), _LONGEST_SHOWN)
    except ValueError:
        return f"{len(text)} {'characters' if isinstance(text, str) else 'bytes'} that are not JSON"


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
