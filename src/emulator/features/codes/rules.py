"""Limits of code sets, and how many codes of a set a user may have (Game codes, rulings C2, C3). No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from emulator.contract.limits import MAX_CODE_LENGTH, MAX_CODES, MAX_SET_NAME_LENGTH, MAX_SETS
from emulator.core.clock import DAY
from emulator.core.errors import BadRequest, Facts, Unavailable, refusal
from emulator.core.keys import Key
from emulator.core.wire.refusals import invalid_member
from emulator.storage.kinds import Stored, anything, decoded, wrong
from emulator.storage.records import (
    HandedRecord,
    ListItemsRecord,
    ListRecord,
    MemberRecord,
    PoolRecord,
    RosterRecord,
    SpentRecord,
)


@refusal(BadRequest, "Invalid codes", "C2", "The code sets are malformed",
         "Correct them; `extcli codes upload --dry-run` finds errors in files.")  # fmt: skip
def malformed_sets(*, errors: Sequence[str]) -> Facts:
    return Facts(errors[0], errors[0], "sets as ruling C2 describes them, whose codes differ", errors[1:])


@refusal(BadRequest, "Invalid codes", "C2", "Another set has this name",
         "Choose another name; `extcli codes list` shows the names.")  # fmt: skip
def name_in_use(*, position: int, index: int) -> Facts:
    detail = f"names[{position}]: the code set at index {index} has this name"
    return Facts(detail, f"a name that the set at index {index} has", "a name that no active set has")


@refusal(Unavailable, "Codes removed", "C2", "A reset removed uploaded codes", "Upload the codes again.")
def codes_removed() -> Facts:
    detail = "the service was reset during the upload, or another state was loaded; nothing was changed"
    return Facts(detail, "an incomplete list of codes", "an upload without a reset")


@refusal(Unavailable, "Users removed", "C3", "A reset removed users of the call", "Send the call again.")
def users_removed() -> Facts:
    detail = "the service was reset during the call, or another state was loaded; nothing was changed"
    return Facts(detail, "an incomplete list of users", "a call without a reset")


@refusal(BadRequest, "Unknown prize", "C3", "There is no code set at this index",
         "Upload the set first: `extcli codes upload`; `extcli codes list` shows the indices.")  # fmt: skip
def no_set(*, position: int, index: int, indices: Iterable[int]) -> Facts:
    known = ", ".join(map(str, indices))
    existing = f"sets exist at {known}" if known else "no sets are defined"
    detail = f"prizes[{position}]: there is no code set at index {index}; {existing}"
    return Facts(detail, f"prize {index}", f"a prize with a set; {existing}")


@refusal(BadRequest, "Unknown prize", "C5", "No code set can have this index",
         "Redeem a prize from 0 to {highest}: `extcli codes redeem 0`.")  # fmt: skip
def no_such_prize(*, index: int, highest: int) -> Facts:
    return Facts(f"prize: {index} is not within 0 to {highest}", f"prize {index}", f"0 to {highest}")


LIFETIME: Final = 90 * DAY
"""A set expires this long after its last PUT, in ms (Limits, ruling C2)."""
MAX_ERRORS: Final = 20
"""Errors reported for one body."""
FIRST_CUTOFF_IN_MS: Final = 100_000_000_000
"""A cutoff from here up is in milliseconds; a smaller one is in seconds (ruling C4)."""
_PRINTABLE_ASCII: Final = bytes(range(0x20, 0x7F))
_MAX_LIMIT: Final = 1_000_000
_MAX_PRIZES: Final = 1_000


class CodeSet(Struct, omit_defaults=True):
    """The stored metadata of a set."""

    name: str
    set_id: str
    """Survives a PUT at the same index; a set defined after a DELETE or an expiry has a new one."""
    until: int
    """When the set expires, in Unix ms."""
    earlier: int = 0
    """The codes that the index had handed out before this set replaced another."""


Granted = dict[str, tuple[int, int]]
"""What one `mark_*` call grants to each user on its roster.

Per set id: the number of codes, and the user's limit for the set. The note of a roster; empty while it has no effect.
"""
Allowances = tuple[tuple[str, int], ...]
"""Set ids with the number of codes of that set that a user may have, including those already redeemed."""


class NamesBody(Struct):
    """The members of a PUT besides the codes."""

    names: list[str]
    indices: list[int] | None = None
    """The index of each set; its position if absent."""


class GrantBody(Struct):
    """The codes that a `mark_*` call grants to each user."""

    prize_limits: list[int]
    """Entry i limits the codes of set i that a user may have."""
    prizes: list[int]
    """Set indices, repeated once per code granted."""


class PollGrantBody(GrantBody):
    """A grant to the users who voted for `correct` by the cutoff."""

    correct: int
    cutoff_timestamp: int
    """Unix seconds, or milliseconds from 1e11 up; votes at the cutoff count."""


class ValidationErrors:
    """Collects the errors of a body and raises the first 20 as one `BadRequest`."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, error: str) -> None:
        """Add an error; the 20th raises `BadRequest`."""
        self._found.append(error)
        if len(self._found) >= MAX_ERRORS:
            self.check()

    def check(self) -> None:
        """Raise `BadRequest` with the errors found, if any."""
        if self._found:
            raise malformed_sets(errors=self._found)

    def __bool__(self) -> bool:
        return bool(self._found)


def check_codes(errors: ValidationErrors, array: int, at: int, codes: Sequence[Any]) -> None:
    """Check consecutive codes of `codes[array]`, starting at position `at`."""
    if at + len(codes) > MAX_CODES and at <= MAX_CODES:
        errors.add(f"codes[{array}]: has more than {MAX_CODES} codes")
    try:
        lengths, text = set(map(len, codes)), "".join(codes)
        if 0 not in lengths and max(lengths, default=0) <= MAX_CODE_LENGTH and _is_printable(text):
            return
    except TypeError:
        pass  # a code is not a string
    for position, code in enumerate(codes, at):
        if not isinstance(code, str):
            errors.add(f"codes[{array}][{position}]: must be a string")
        elif not code or len(code) > MAX_CODE_LENGTH:
            errors.add(f"codes[{array}][{position}]: has {len(code)} characters; a code has 1 to {MAX_CODE_LENGTH}")
        elif not code.isprintable():
            errors.add(f"codes[{array}][{position}]: has characters that cannot be printed")


def _is_printable(text: str) -> bool:
    """As `str.isprintable`, and several times as fast if the text is ASCII."""
    return not text.encode().translate(None, _PRINTABLE_ASCII) if text.isascii() else text.isprintable()


def checked_indices(errors: ValidationErrors, body: NamesBody, arrays: int) -> list[int]:
    """Return the index of each set of a PUT. Problems of the sets or their names are added to `errors`."""
    if not 1 <= arrays <= MAX_SETS:
        errors.add(f"codes: {arrays} sets given; must be 1 to {MAX_SETS}")
    if len(body.names) != arrays:
        errors.add(f"names: {len(body.names)} given for {arrays} sets")
    for position, name in enumerate(body.names):
        if not name or len(name) > MAX_SET_NAME_LENGTH or not name.isprintable():
            errors.add(f"names[{position}]: must be 1 to {MAX_SET_NAME_LENGTH} printable characters")
    indices = list(range(arrays)) if body.indices is None else body.indices
    if len(indices) != arrays:
        errors.add(f"indices: {len(indices)} given for {arrays} sets")
    for position, index in enumerate(indices):
        if not 0 <= index < MAX_SETS:
            errors.add(f"indices[{position}]: {index} is not within 0 to {MAX_SETS - 1}")
    if len(set(body.names)) != len(body.names):
        errors.add("names: must be unique")
    if len(set(indices)) != len(indices):
        errors.add("indices: must be unique")
    return indices


def pool_key(client_id: str, index: int) -> Key:
    """Return the key of the pool of the set at an index."""
    return Key("codes", client_id, str(index))


def pool_keys(client_id: str) -> list[Key]:
    """Return the keys of the pools of all possible sets, in index order."""
    return [pool_key(client_id, index) for index in range(MAX_SETS)]


def list_key(client_id: str, name: str) -> Key:
    """Return the key of a list of codes, uploaded before its set is defined."""
    return Key("code_list", client_id, name)


def roster_key(client_id: str, name: str) -> Key:
    """Return the key of the roster of one `mark_*` call."""
    return Key("marked", client_id, name)


def grants_of(notes: Iterable[bytes]) -> list[Granted]:
    """Return the grants of rosters with these notes."""
    return [msgspec.json.decode(note, type=Granted) for note in notes if note]


def prizes_by_set(body: GrantBody, sets: Mapping[int, CodeSet]) -> Granted:
    """Return the number of granted codes and the limit per user, by set id.

    Raises `BadRequest` for a wrong limit or prize.
    """
    if not body.prizes or len(body.prizes) > _MAX_PRIZES:
        raise invalid_member("prizes", len(body.prizes), f"1 to {_MAX_PRIZES} set indices")
    for position, limit in enumerate(body.prize_limits):
        if not 0 <= limit <= _MAX_LIMIT:
            raise invalid_member(f"prize_limits[{position}]", limit, f"within 0 to {_MAX_LIMIT}")
    for position, prize in enumerate(body.prizes):
        if prize not in sets:
            raise no_set(position=position, index=prize, indices=sets)
    return {sets[prize].set_id: (body.prizes.count(prize), _limit(body, prize)) for prize in dict.fromkeys(body.prizes)}


def live_grants(grants: Iterable[Granted], sets: Mapping[int, CodeSet]) -> list[Granted]:
    """Return the grants that cover at least one of these sets."""
    alive = {each.set_id for each in sets.values()}
    return [grant for grant in grants if not alive.isdisjoint(grant)]


def allowances(grants: Sequence[Granted]) -> Allowances:
    """Return how many codes of each set a user with these grants may have."""
    set_ids = dict.fromkeys(set_id for grant in grants for set_id in grant)
    return tuple((set_id, max_codes(set_id, grants)) for set_id in set_ids)


def gains(before: Allowances, grant: Granted) -> bool:
    """Whether another grant raises how many codes a user may have, in any set."""
    most = dict(before)
    return any(limit > most.get(set_id, 0) for set_id, (_, limit) in grant.items())


def max_codes(set_id: str, grants: Iterable[Granted]) -> int:
    """How many codes of a set a user with these grants may have, including those already redeemed (ruling C3)."""
    most = 0
    for grant in grants:
        times, limit = grant.get(set_id, (0, 0))
        most = max(most, min(most + times, limit))
    return most


def is_in_time(cast_at: int, cutoff: int) -> bool:
    """Whether a vote cast at `cast_at` (ms) is not after the cutoff.

    Compared in the cutoff's unit, seconds or ms (ruling C4).
    """
    return (cast_at if cutoff >= FIRST_CUTOFF_IN_MS else cast_at // 1000) <= cutoff


def _limit(body: GrantBody, prize: int) -> int:
    """Return how many codes of a set a user may have: the entry at its index, or at its position in `prizes`, or 1."""
    limits = body.prize_limits
    if prize < len(limits):
        return limits[prize]
    position = body.prizes.index(prize)
    return limits[position] if position < len(limits) else 1


def _check_pool(record: PoolRecord) -> None:
    if record.key.name not in _INDICES:
        raise wrong("key", f"{record.key.name[:40]!r} is not the index of a set, 0 to {MAX_SETS - 1}")
    if record.source is not None:
        decoded(record.note, CodeSet, "note")


def _check_roster(record: RosterRecord) -> None:
    if record.note:
        decoded(record.note, Granted, "note")


def _check_items(record: ListItemsRecord) -> None:
    for position, code in enumerate(record.items):
        _check_code(f"items[{position}]", code)


def _check_handed(record: HandedRecord) -> None:
    _check_code("item", record.item)


def _check_code(name: str, code: str) -> None:
    if not 1 <= len(code) <= MAX_CODE_LENGTH:
        raise wrong(name, f"has {len(code)} characters; a code has 1 to {MAX_CODE_LENGTH}")
    if not code.isprintable():
        raise wrong(name, "has characters that cannot be printed")


_INDICES: Final = frozenset(map(str, range(MAX_SETS)))
STORED: Final = (
    Stored(ListRecord, "code_list", anything),
    Stored(ListItemsRecord, "code_list", _check_items),
    Stored(PoolRecord, "codes", _check_pool),
    Stored(HandedRecord, "codes", _check_handed),
    Stored(SpentRecord, "codes", anything),
    Stored(RosterRecord, "marked", _check_roster),
    Stored(MemberRecord, "marked", anything),
)
