"""What a set of codes may be, and how many codes of it a user may have (Game codes, rulings C2, C3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from emulator.clock import DAY
from emulator.engines.base import Key
from emulator.errors import BadRequest

MOST_SETS: Final = 10
LONGEST_CODE: Final = 63
MOST_CODES: Final = 999_999
LIFETIME: Final = 90 * DAY
"""How long a set lives after its last PUT (Limits, ruling C2)."""
MOST_FAULTS: Final = 20
"""How many faults of a body are named."""
MILLISECONDS_FROM: Final = 100_000_000_000
"""A cutoff from here up is in milliseconds, a smaller one in seconds (ruling C4)."""
_LONGEST_NAME: Final = 256
_LARGEST_LIMIT: Final = 1_000_000
_MOST_PRIZES: Final = 1_000


class CodeSet(Struct):
    """What is kept with a set: its name, and an id that changes when a set of the same index begins anew."""

    name: str
    set_id: str
    until: int
    """Its end, in ms."""


class CodeGrant(Struct):
    """One call of `mark_*`: everybody on its roster was granted these."""

    roster: str
    granted: dict[str, tuple[int, int]]
    """By set id: how many codes, and the most that a user may have in all."""


class NamesBody(Struct):
    """What a PUT says beside the codes."""

    names: list[str]
    indices: list[int] | None = None
    """Where each set goes; by its position if there are none."""


class GrantBody(Struct):
    """What `mark_*` grants to each user."""

    prize_limits: list[int]
    """Entry i is the most that a user may have of set i."""
    prizes: list[int]
    """A set's index once for each code granted."""


class PollGrantBody(GrantBody):
    """Who is to be granted it: those who voted right, in time."""

    correct: int
    cutoff_timestamp: int
    """In seconds, or in milliseconds from 1e11 up; votes at the cutoff count."""


class ValidationErrors:
    """What is wrong with a body: the first 20, as one error (issued when everything has been looked at)."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, fault: str) -> None:
        """One more; raises when there are enough of them."""
        self._found.append(fault)
        if len(self._found) >= MOST_FAULTS:
            self.check()

    def check(self) -> None:
        """Raise `BadRequest` with all that was found."""
        if self._found:
            raise BadRequest("Invalid codes", self._found[0], others=self._found[1:])

    def __bool__(self) -> bool:
        return bool(self._found)


def check_codes(faults: ValidationErrors, array: int, at: int, codes: Sequence[Any]) -> None:
    """Look at some codes of a set, the first of them at position `at`."""
    if at + len(codes) > MOST_CODES and at <= MOST_CODES:
        faults.add(f"codes[{array}]: has over {MOST_CODES} codes")
    try:
        if all(map(str.isprintable, codes)) and "" not in codes and max(map(len, codes), default=0) <= LONGEST_CODE:
            return
    except TypeError:
        pass  # one of them is no string
    for position, code in enumerate(codes, at):
        if not isinstance(code, str):
            faults.add(f"codes[{array}][{position}]: must be a string")
        elif not code or len(code) > LONGEST_CODE:
            faults.add(f"codes[{array}][{position}]: has {len(code)} characters; a code has 1 to {LONGEST_CODE}")
        elif not code.isprintable():
            faults.add(f"codes[{array}][{position}]: has characters that cannot be printed")


def checked_indices(faults: ValidationErrors, body: NamesBody, arrays: int) -> list[int]:
    """The index of each set of a PUT; adds to `faults` what does not fit."""
    if not 1 <= arrays <= MOST_SETS:
        faults.add(f"codes: {arrays} sets given, 1 to {MOST_SETS} are taken")
    if len(body.names) != arrays:
        faults.add(f"names: {len(body.names)} given for {arrays} sets")
    for position, name in enumerate(body.names):
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            faults.add(f"names[{position}]: 1 to {_LONGEST_NAME} printable characters")
    indices = list(range(arrays)) if body.indices is None else body.indices
    if len(indices) != arrays:
        faults.add(f"indices: {len(indices)} given for {arrays} sets")
    for position, index in enumerate(indices):
        if not 0 <= index < MOST_SETS:
            faults.add(f"indices[{position}]: {index} is not within 0 to {MOST_SETS - 1}")
    for name in ("names", "indices"):
        values = body.names if name == "names" else indices
        if len(set(values)) != len(values):
            faults.add(f"{name}: must differ from each other")
    return indices


def pool_key(client_id: str, index: int) -> Key:
    """The pool of a set."""
    return Key("codes", client_id, str(index))


def pool_keys(client_id: str) -> list[Key]:
    """The pools of all sets there can be, in the order of their indices."""
    return [pool_key(client_id, index) for index in range(MOST_SETS)]


def list_key(client_id: str, name: str) -> Key:
    """Where a list of codes is filled, before a set hands out from it."""
    return Key("code_list", client_id, name)


def roster_key(client_id: str, name: str) -> Key:
    """The users of one call of `mark_*`."""
    return Key("marked", client_id, name)


def marks_key(client_id: str) -> Key:
    """Where the extension's marks are kept."""
    return Key("marks", client_id, "")


def granted(body: GrantBody, sets: dict[int, CodeSet]) -> dict[str, tuple[int, int]]:
    """What a call of `mark_*` grants, by set id; raises `BadRequest` naming the prize that does not exist."""
    if not body.prizes or len(body.prizes) > _MOST_PRIZES:
        raise BadRequest("Invalid body", f"prizes: 1 to {_MOST_PRIZES} are needed")
    for position, limit in enumerate(body.prize_limits):
        if not 0 <= limit <= _LARGEST_LIMIT:
            raise BadRequest("Invalid body", f"prize_limits[{position}]: {limit} is not within 0 to {_LARGEST_LIMIT}")
    for position, prize in enumerate(body.prizes):
        if prize not in sets:
            known = f"the sets are at {', '.join(map(str, sets))}" if sets else "no set is defined"
            raise BadRequest("Unknown prize", f"prizes[{position}]: there is no set at {prize}; {known}")
    return {sets[prize].set_id: (body.prizes.count(prize), _limit(body, prize)) for prize in dict.fromkeys(body.prizes)}


def allowance(set_id: str, marks: Iterable[CodeGrant]) -> int:
    """How many codes of a set these marks let a user have in all, those that the user holds included (ruling C3)."""
    most = 0
    for mark in marks:
        times, limit = mark.granted.get(set_id, (0, 0))
        most = max(most, min(most + times, limit))
    return most


def is_in_time(cast_at: int, cutoff: int) -> bool:
    """Whether a vote (ms) came before the cutoff had passed, by the unit that the cutoff is in (ruling C4)."""
    return (cast_at if cutoff >= MILLISECONDS_FROM else cast_at // 1000) <= cutoff


def _limit(body: GrantBody, prize: int) -> int:
    """The most of a set: its own entry, else the one parallel to it in `prizes`, else 1."""
    limits = body.prize_limits
    if prize < len(limits):
        return limits[prize]
    position = body.prizes.index(prize)
    return limits[position] if position < len(limits) else 1
