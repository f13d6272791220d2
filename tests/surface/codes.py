"""The model of reward codes (Game codes; rulings C1 to C6)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from surface.ballots import Polls
from surface.calls import DAY, EXTENSION_WRITERS, SECOND, Call, Clock, Refused
from surface.people import People

LIFETIME = 90 * DAY


@dataclass
class CodeSet:
    """A set from its first PUT until its DELETE or expiry; later PUTs at its index change it."""

    client_id: str
    index: int
    name: str
    codes: list[str]
    expires_at: int
    earlier: int = 0
    """The codes handed out before the latest PUT at its index."""
    position: int = 0
    """The codes handed out or skipped."""
    handed: list[tuple[str, str]] = field(default_factory=list)
    """User and code."""
    grants: list[tuple[set[str], int, int]] = field(default_factory=list)
    """The spellings of the users, the codes granted, and the limit."""
    is_active: bool = True

    def held(self, user: str) -> list[str]:
        return [code for owner, code in self.handed if owner == user]

    def eligible(self, user: str, names: set[str]) -> int:
        most = 0
        for listed, times, limit in self.grants:
            if names & listed:
                most = max(most, min(most + times, limit))
        return max(0, most - len(self.held(user)))


class Codes:
    """The sets of all extensions, independent of channels."""

    def __init__(self, clock: Clock, polls: Polls, people: People) -> None:
        self.clock, self._polls, self._people = clock, polls, people
        self.sets: list[CodeSet] = []
        """Includes deleted sets while their redeemed codes are readable (C6)."""
        self.spent: dict[str, set[str]] = defaultdict(set)
        """The codes that each extension has handed out, ever (C2)."""

    def expire(self) -> None:
        self.sets = [each for each in self.sets if self.clock.now < each.expires_at]

    def expiries(self) -> list[int]:
        return [each.expires_at for each in self.sets]

    def active(self, call: Call) -> dict[int, CodeSet]:
        mine = [each for each in self.sets if each.client_id == call.caller.client_id and each.is_active]
        return {each.index: each for each in sorted(mine, key=lambda each: each.index)}

    def put_codes(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        codes, names = call.body["codes"], call.body["names"]
        indices = call.body.get("indices", list(range(len(codes))))
        sets = self.active(call)
        others = {each.name for index, each in sets.items() if index not in indices}
        if (
            not 1 <= len(codes) <= 10
            or not len(codes) == len(names) == len(indices)
            or not len(names) == len(set(names)) == len(set(indices))
            or any(not 0 <= index <= 9 for index in indices)
            or any(not 1 <= len(code) <= 63 for each in codes for code in each)
            or len({code for each in codes for code in each}) < sum(map(len, codes))
            or not others.isdisjoint(names)
        ):
            raise Refused(400, "Invalid codes")
        for index, name, these in zip(indices, names, codes, strict=True):
            expires_at = self.clock.now + LIFETIME
            if index in sets:
                sets[index].name, sets[index].codes = name, these
                sets[index].earlier = len(sets[index].handed)
                sets[index].expires_at = max(sets[index].expires_at, expires_at)
            else:
                self.sets.append(CodeSet(call.caller.client_id, index, name, these, expires_at))
        for each in (self.active(call)[index] for index in indices):
            each.position = 0
            self._skip_spent(each)
        return {}

    def get_codes(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        sets = self.active(call)
        return {
            "names": [each.name for each in sets.values()],
            "indices": list(sets),
            "distributed": [len(each.handed) - each.earlier for each in sets.values()],
            "left": [len(each.codes) - each.position for each in sets.values()],
        }

    def delete_codes(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        ended = self.active(call).values()
        for each in ended:
            each.is_active = False
        return {"distributed": [len(each.handed) - each.earlier for each in ended]}

    def post_codes_mark_from_list(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        return self._mark(call, set(call.body["users"]))

    def post_codes_mark_from_poll(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        # A cutoff in seconds includes the whole second (C4).
        cutoff = call.body["cutoff_timestamp"]
        before = cutoff + 1 if cutoff >= 10**11 else (cutoff + 1) * SECOND
        right = {v.voter for v in self._polls.votes(call) if v.value == call.body["correct"] and v.at < before}
        return self._mark(call, right)

    def _mark(self, call: Call, users: set[str]) -> dict[str, Any]:
        """Grant one code of each listed prize; redeemed plus eligible never exceeds the limit (C3)."""
        sets, prizes, limits = self.active(call), call.body["prizes"], call.body["prize_limits"]
        if any(prize not in sets for prize in prizes):
            raise Refused(400, "Unknown prize")
        for prize, times in Counter(prizes).items():
            parallel = prizes.index(prize)
            limit = limits[prize] if prize < len(limits) else limits[parallel] if parallel < len(limits) else 1
            sets[prize].grants.append((users, times, limit))
        return {}

    def get_codes_eligibility(self, call: Call) -> dict[str, Any]:
        sets, user, names = self.active(call), call.caller.opaque_id, self._people.names(call.caller)
        dense = range(max(sets, default=-1) + 1)
        return {"eligible": [sets[index].eligible(user, names) if index in sets else 0 for index in dense]}

    def get_codes_redeemed(self, call: Call) -> dict[str, Any]:
        held = {each.index: self._held(call, each.index) for each in self.sets}
        highest = max([*self.active(call), *(index for index, codes in held.items() if codes)], default=-1)
        return {"redeemed": [held.get(index, []) for index in range(highest + 1)]}

    def post_codes_redeem(self, call: Call) -> dict[str, Any]:
        prize, user = call.body["prize"], call.caller.opaque_id
        if not 0 <= prize <= 9:
            raise Refused(400)
        code_set = self.active(call).get(prize)
        code: dict[str, Any] = {}
        if code_set is not None and code_set.eligible(user, self._people.names(call.caller)):
            self._skip_spent(code_set)
            for next_code in code_set.codes[code_set.position :][:1]:
                code_set.position += 1
                self.spent[code_set.client_id].add(next_code)
                code_set.handed.append((user, next_code))
                code = {"code": next_code}
        return {"all_prizes": self._held(call, prize), **code}

    def _skip_spent(self, code_set: CodeSet) -> None:
        rest, spent = code_set.codes[code_set.position :], self.spent[code_set.client_id]
        code_set.position += next((at for at, code in enumerate(rest) if code not in spent), len(rest))

    def _all(self, call: Call, index: int) -> list[CodeSet]:
        """The active set at an index and its deleted predecessors."""
        return [each for each in self.sets if (each.client_id, each.index) == (call.caller.client_id, index)]

    def _held(self, call: Call, index: int) -> list[str]:
        return [code for each in self._all(call, index) for code in each.held(call.caller.opaque_id)]
