"""All kinds of stored records, and the check of a record that was read from a snapshot or copy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from emulator.auth import signing_key
from emulator.engines.records import DocumentRecord, Record
from emulator.errors import BadRequest
from emulator.features.identity import rules as identity
from emulator.kind_list import KINDS
from emulator.limits import id_quota
from emulator.stored import Stored

_SECRET_NAMES: Final = frozenset({"pin", "pin_token", "transaction"})
"""Kinds whose names an error does not repeat."""


def check_content(record: Record) -> None:
    """Raise `ValueError` for a record that its feature could not read or would not have written.

    The message names the record, the field, the value and the limit.
    """
    kind = record[0].kind
    checks = _checks()
    found = checks.get((type(record), kind)) or checks.get((type(record), f"{kind.partition('/')[0]}/"))
    if found is None:
        shape = type(record)
        known = ", ".join(sorted(each for of, each in checks if of is shape))
        name = shape.__name__.removesuffix("Record").lower()
        raise ValueError(f"{kind[:64]}: no {name} is of this kind; known are {known}")
    try:
        found.check(record)
    except BadRequest as error:
        raise ValueError(f"{_name_of(record)}: {'; '.join(error.details)}") from None
    except ValueError as error:
        raise ValueError(f"{_name_of(record)}: {error}") from None


@cache
def _checks() -> Mapping[tuple[type[Any], str], Stored]:
    of_kinds = [each for kind in KINDS for each in kind.records]
    others = (*identity.STORED, *id_quota.STORED, *signing_key.STORED)
    return {(each.type, each.kind): each for each in (*of_kinds, *others)}


def _name_of(record: Record) -> str:
    """Return a record's kind, name and channel as a text for error messages."""
    kind, _, name, channel, _ = record[0]
    shown = "" if type(record) is DocumentRecord and kind in _SECRET_NAMES else name
    return " ".join(each for each in (kind, shown, f"in channel {channel}" if channel else "") if each)
