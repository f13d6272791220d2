"""How a number of connections is shared between network addresses."""

from __future__ import annotations

import random
from collections import Counter

from emulator.core.errors import TooManyRequests
from emulator.core.limits import FairShare


def share(total: int = 0, per_address: int = 0, members: str = "") -> FairShare[str]:
    """Return a share with members such as "a1 a2 b1", the first letter of each being its address."""
    made = FairShare[str]("things", total, per_address)
    for member in members.split():
        assert made.add(member, member[0]) is None
    return made


def test_the_member_that_was_idle_longest_is_replaced_first():
    full = share(total=3, members="a1 a2 b1")

    full.mark_active("a1")

    assert "a2" == full.add("c1", "c")


def test_random_steps_keep_the_share_fair():
    """Whatever happens, no address loses a member to one that has as many."""
    steps, limited, members = random.Random(1), FairShare[str]("things", 20, 8), dict[str, str]()
    for number in range(5_000):
        if members and steps.random() < 0.3:
            limited.remove(gone := steps.choice(sorted(members)))
            del members[gone]
            continue
        address, counts = steps.choice("abcdefghij"), Counter(members.values())
        most = max(counts.values(), default=0)
        try:
            replaced = limited.add(f"{address}{number}", address)
        except TooManyRequests:
            assert counts[address] == 8 or (len(members) == 20 and counts[address] == most)
            continue
        assert counts[address] < 8
        if replaced:
            assert (20, most) == (len(members), counts[members.pop(replaced)])
        members[f"{address}{number}"] = address
        assert len(members) == len(limited) <= 20
