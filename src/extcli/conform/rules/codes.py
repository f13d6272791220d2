"""Reward codes: sets, grants and redemption. Sets belong to the whole extension."""

from __future__ import annotations

from typing import Any

from extcli.conform.calls import Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, Skipped, expect, expect_that, reads, shown, writes
from extcli.conform.rules.votes import Poll


def check_unused(at: Deployment) -> None:
    """Skip the rule if the extension has code sets, which it would replace."""
    if at.backend.get("codes").json["names"]:
        raise Skipped("the extension has code sets, which this rule would replace")


def define_sets(at: Deployment, *sets: list[str], status: int = 200, **members: Any) -> None:
    """Define sets of these codes as a backend."""
    names = [f"conform {index}" for index in range(len(sets))]
    at.backend.put("codes", {"codes": list(sets), "names": names, **members}, status=status)


def define_new_sets(at: Deployment, *sizes: int, **options: Any) -> None:
    """Define sets with these numbers of new codes."""
    define_sets(at, *([at.fresh("code") for _ in range(size)] for size in sizes), **options)


def new_set(at: Deployment, size: int = 1, **members: Any) -> list[str]:
    """Define one set of new codes, and return them. Skips the rule if the extension has code sets."""
    check_unused(at)
    codes = [at.fresh("code") for _ in range(size)]
    define_sets(at, codes, **members)
    return codes


def grant(at: Deployment, *users: str, prizes: list[int], limits: list[int], status: int = 200) -> Reply:
    """Grant users prizes, and return the response."""
    body = {"users": list(users), "prizes": prizes, "prize_limits": limits}
    return at.backend.post("codes/mark_from_list", body, status=status)


def eligible_counts(at: Deployment, user: str) -> list[int]:
    """Return how many codes of each set a user may redeem."""
    return list(at.caller("viewer", user).get("codes/eligibility").json["eligible"])


def redeem(at: Deployment, user: str, prize: int = 0) -> Any:
    """Redeem a code of a set as a user, and return the response."""
    return at.caller("viewer", user).post("codes/redeem", {"prize": prize}).json


def has_names(at: Deployment, *names: str) -> None:
    """Raise `Differs` unless the sets have these names, by index."""
    at.backend.get("codes").has(names=list(names))


# Sets


@reads("spec: Endpoints")
def eligibility_by_role(at: Deployment) -> None:
    """Any user may ask for their eligibility."""
    at.check_readers(ROLES, "codes/eligibility")


@reads("C1")
def readers_of_codes(at: Deployment) -> None:
    """Only admins and backends list code sets (others get 403); any user reads the codes that they have redeemed."""
    at.check_readers(("admin", "backend"), "codes")
    for role in ROLES:
        redeemed = at.caller(role).get("codes/redeemed").json["redeemed"]
        expect_that(f"`redeemed` for role {role}", isinstance(redeemed, list), "an array", redeemed)


@writes("C1", "extension")
def code_writers(at: Deployment) -> None:
    """Viewers and broadcasters may not define, delete or grant codes: 403."""
    check_unused(at)
    mark = {"prizes": [0], "prize_limits": [1]}
    for caller in (at.viewer, at.broadcaster):
        caller.put("codes", {"codes": [[at.fresh("code")]], "names": ["conform"]}, status=403)
        caller.delete("codes", status=403)
        caller.post("codes/mark_from_list", {**mark, "users": [at.user]}, status=403)
        caller.post("codes/mark_from_poll", {**mark, "correct": 1, "cutoff_timestamp": 1}, status=403)
    has_names(at)


@writes("spec: Endpoints", "extension")
def indices_of_sets(at: Deployment) -> None:
    """A set gets the given index, otherwise its position. Sets are listed by index."""
    check_unused(at)
    define_new_sets(at, 1, 1, names=["Sword", "Hat"], indices=[5, 2])
    has_names(at, "Hat", "Sword")
    define_new_sets(at, 1, 1, names=["A", "B"])
    found = at.backend.get("codes")
    found.has(
        names=["A", "B", "Hat", "Sword"],
        indices=[0, 1, 2, 5],
        distributed=[0] * 4,
        left=[1] * 4,
    )


@writes("spec: Limits", "extension")
def size_of_sets(at: Deployment) -> None:
    """A code has 1 to 63 characters, and there are at most ten sets, at the indices 0 to 9; others get 400."""
    check_unused(at)
    define_sets(at, [at.fresh("code").ljust(64, "x")], status=400)
    define_sets(at, [at.fresh("code").ljust(63, "x")])
    define_sets(at, [""], status=400)
    at.backend.delete("codes")
    define_new_sets(at, *[1] * 11, status=400)
    define_new_sets(at, 1, indices=[10], status=400)
    define_new_sets(at, 1, indices=[-1], status=400)
    has_names(at)
    define_new_sets(at, *[1] * 10)


@writes("spec: Endpoints", "extension")
def names_of_sets(at: Deployment) -> None:
    """Names of sets are unique, and each set has one; a refused PUT changes nothing."""
    check_unused(at)
    for names in (["A", "A"], ["A"], ["A", "B", "C"]):
        define_new_sets(at, 1, 1, names=names, status=400)
    has_names(at)


@writes("spec: Endpoints", "extension")
def deletion_of_sets(at: Deployment) -> None:
    """DELETE removes all sets, and returns how many codes of each were handed out."""
    check_unused(at)
    at.backend.get("codes").returns({"names": [], "indices": [], "distributed": [], "left": []})
    at.backend.delete("codes").returns({"distributed": []})
    define_new_sets(at, 2, 1, indices=[4, 0])
    grant(at, at.user, prizes=[4], limits=[1] * 5)
    expect("whether the user got a code", True, "code" in redeem(at, at.user, 4))
    at.backend.get("codes").has(indices=[0, 4], distributed=[0, 1], left=[1, 1])
    at.backend.delete("codes").returns({"distributed": [0, 1]})
    has_names(at)


# Grants and redemption


@writes("C2", "extension")
def order_of_codes(at: Deployment) -> None:
    """Codes are handed out in the order of their list, one for each grant."""
    first, second, _ = new_set(at, 3)
    grant(at, at.user, prizes=[0, 0], limits=[2])
    expect("the number of codes that the user may redeem", [2], eligible_counts(at, at.user))
    expect("redemption 1", {"code": first, "all_prizes": [first]}, redeem(at, at.user))
    expect("redemption 2", {"code": second, "all_prizes": [first, second]}, redeem(at, at.user))
    expect("redemption 3", {"all_prizes": [first, second]}, redeem(at, at.user))


@writes("C2", "extension")
def codes_handed_out_once(at: Deployment) -> None:
    """A code that was handed out is never handed out again, also after DELETE."""
    check_unused(at)
    codes, other = [at.fresh("code"), at.fresh("code")], at.fresh("user")
    for index, user, wanted in ((0, at.user, codes[0]), (7, other, codes[1])):
        define_sets(at, codes, indices=[index])
        grant(at, user, prizes=[index], limits=[1] * 10)
        expect(f"the first unused code of set {index}", wanted, redeem(at, user, index)["code"])
        at.backend.delete("codes")


@writes("C3", "extension")
def limits_of_prizes(at: Deployment) -> None:
    """`prize_limits` bounds what a user gets; a lower limit takes nothing away."""
    new_set(at, 5)
    for prizes, limit, wanted in (
        ([0, 0, 0], 2, 2),
        ([0], 2, 2),
        ([0], 3, 3),
        ([0], 1, 3),
        ([0], 0, 3),
    ):
        grant(at, at.user, prizes=prizes, limits=[limit]).returns({})
        expect(f"the codes granted by prizes {shown(prizes)}, limit {limit}", [wanted], eligible_counts(at, at.user))


@writes("C3", "extension")
def unknown_prizes(at: Deployment) -> None:
    """A grant of a set that does not exist is refused with 400 and grants nothing."""
    new_set(at)
    for prizes in ([1], [0, 9], [-1], []):
        grant(at, at.user, prizes=prizes, limits=[9] * 10, status=400)
    expect("the number of codes that the user may redeem", [0], eligible_counts(at, at.user))


@writes("C4", "extension")
def grants_from_a_poll(at: Deployment) -> None:
    """`mark_from_poll` grants codes to users who voted `correct` until the cutoff, in seconds or ms."""
    new_set(at, 5)
    poll, right, wrong = Poll(at), at.user, at.fresh("user")
    poll.cast_each((right, 2), (wrong, 3))
    cast_at = poll.log(at.backend)[0]["timestamp"]
    body = {"prizes": [0], "prize_limits": [9], "correct": 2}
    for cutoff, wanted in (
        (cast_at - 1, 0),
        (cast_at, 1),
        (cast_at // 1000 - 1, 1),
        (cast_at // 1000, 2),
    ):
        at.backend.post("codes/mark_from_poll", {**body, "cutoff_timestamp": cutoff}, id=poll.id).returns({})
        expect("the number of codes for the correct vote", [wanted], eligible_counts(at, right))
    expect("the number of codes for a wrong vote", [0], eligible_counts(at, wrong))


@writes("C4", "extension")
def members_of_a_grant_from_a_poll(at: Deployment) -> None:
    """`mark_from_poll` needs all four members: without one it is refused with 400."""
    new_set(at)
    body = {"prizes": [0], "prize_limits": [1], "correct": 2, "cutoff_timestamp": 4_000_000_000}
    for missing in body:
        part = {name: value for name, value in body.items() if name != missing}
        at.backend.post("codes/mark_from_poll", part, id=at.fresh("poll"), status=400)


@writes("C5", "extension")
def redemption_of_nothing(at: Deployment) -> None:
    """`redeem` returns no `code` if the user is not eligible, the set has no codes left, or there is no set."""
    new_set(at)
    first, second = at.user, at.fresh("user")
    for prize in (0, 9):
        expect(f"the response for set {prize} to a user without a grant", {"all_prizes": []}, redeem(at, first, prize))
    grant(at, first, second, prizes=[0], limits=[1])
    expect("whether the first user got the only code", True, "code" in redeem(at, first))
    expect("the response when no code is left", {"all_prizes": []}, redeem(at, second))
    expect("the number of codes that the second user may redeem", [1], eligible_counts(at, second))


@writes("C5")
def index_to_redeem(at: Deployment) -> None:
    """`redeem` takes one index from 0 to 9; others are refused with 400."""
    at.viewer.refuses(
        "codes/redeem",
        {"prize": 10},
        {"prize": -1},
        {"prize": "0"},
        {"prize": 0, "index": 1},
        {},
    )


@writes("C6", "extension")
def redeemed_codes_of_ended_sets(at: Deployment) -> None:
    """After DELETE, a user's codes stay in `redeemed`, and eligibility ends."""
    first, _ = new_set(at, 2, indices=[1])
    grant(at, at.user, prizes=[1, 1], limits=[2, 2])
    expect("the code", first, redeem(at, at.user, 1)["code"])
    at.backend.delete("codes")
    at.viewer.get("codes/redeemed").has(redeemed=[[], [first]])
    define_new_sets(at, 1, indices=[1])
    expect("how many codes of each set the user may redeem", [0, 0], eligible_counts(at, at.user))
