"""Reward codes: sets, grants and redemption. Sets belong to the whole extension."""

from __future__ import annotations

import secrets
from typing import Any

from extcli.conform.calls import Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, Skipped, expect, expect_that, rule, shown


def code(at: Deployment, length: int = 0) -> str:
    """Return a code that no set has ever had, of this length if it is given."""
    text = f"C{secrets.token_hex(8)}"
    at.names[text] = f"<code-{sum(name.startswith('<code-') for name in at.names.values()) + 1}>"
    return text + "x" * max(length - len(text), 0)


def check_unused(at: Deployment) -> None:
    """Skip the rule if the extension has code sets, which it would replace."""
    if at.backend.get("codes").data["names"]:
        raise Skipped("the extension has code sets, which this rule would replace")


def define(at: Deployment, *sets: list[str], **members: Any) -> Reply:
    """Define sets of these codes as a backend, and return the response."""
    names = [f"conform {index}" for index in range(len(sets))]
    return at.backend.put("codes", {"codes": list(sets), "names": names, **members})


def new_set(at: Deployment, size: int = 1, **members: Any) -> list[str]:
    """Define one set of new codes, and return them. Skips the rule if the extension has code sets."""
    check_unused(at)
    codes = [code(at) for _ in range(size)]
    define(at, codes, **members).check()
    return codes


def grant(at: Deployment, *users: str, prizes: list[int], limits: list[int]) -> Reply:
    """Grant users prizes, and return the response."""
    body = {"users": list(users), "prizes": prizes, "prize_limits": limits}
    return at.backend.post("codes/mark_from_list", body)


def eligible(at: Deployment, user: str) -> list[int]:
    """Return how many codes of each set a user may redeem."""
    return list(at.caller("viewer", user).get("codes/eligibility").data["eligible"])


def redeem(at: Deployment, user: str, prize: int = 0) -> Any:
    """Redeem a code of a set as a user, and return the response."""
    return at.caller("viewer", user).post("codes/redeem", {"prize": prize}).data


# Sets


@rule("C1", *ROLES)
def code_sets_by_role(at: Deployment) -> None:
    """Admins and backends list code sets; others are refused with 403."""
    for role in ROLES:
        status = 200 if role in ("admin", "backend") else 403
        expect(f"the status for role {role}", status, at.caller(role).get("codes").status)


@rule("spec: Endpoints", *ROLES)
def eligibility_by_role(at: Deployment) -> None:
    """Any user may ask for their eligibility."""
    for role in ROLES:
        expect(f"the status for role {role}", 200, at.caller(role).get("codes/eligibility").status)


@rule("C1", *ROLES)
def redeemed_codes_by_role(at: Deployment) -> None:
    """Any user may read the codes that they have redeemed."""
    for role in ROLES:
        redeemed = at.caller(role).get("codes/redeemed").data.get("redeemed")
        expect_that(f"`redeemed` for role {role}", isinstance(redeemed, list), "an array", redeemed)


@rule("C1", *ROLES, extension=True)
def code_writers(at: Deployment) -> None:
    """Viewers and broadcasters may not define, delete or grant codes: 403."""
    check_unused(at)
    mark = {"prizes": [0], "prize_limits": [1]}
    for caller in (at.viewer, at.broadcaster):
        replies = (
            caller.put("codes", {"codes": [[code(at)]], "names": ["conform"]}),
            caller.delete("codes"),
            caller.post("codes/mark_from_list", {**mark, "users": [at.user]}),
            caller.post("codes/mark_from_poll", {**mark, "correct": 1, "cutoff_timestamp": 1}),
        )
        for reply in replies:
            expect(f"the status of {reply.request} for a {caller.role}", 403, reply.status)
    expect("the names of the sets", [], at.backend.get("codes").data["names"])


@rule("spec: Endpoints", "backend", extension=True)
def indices_of_sets(at: Deployment) -> None:
    """A set gets the given index, otherwise its position. Sets are listed by index."""
    check_unused(at)
    expect("the status of PUT", 200, define(at, [code(at)], [code(at)], names=["Sword", "Hat"], indices=[5, 2]).status)
    expect("the names", ["Hat", "Sword"], at.backend.get("codes").data["names"])
    define(at, [code(at)], [code(at)], names=["A", "B"]).check()
    listed = at.backend.get("codes").data
    expect("the names after a PUT without indices", ["A", "B", "Hat", "Sword"], listed["names"])
    expect("`indices`, `distributed` and `left`", [[0, 1, 2, 5], [0] * 4, [1] * 4], _counts(listed))


@rule("spec: Limits", "backend", extension=True)
def length_of_a_code(at: Deployment) -> None:
    """A code has fewer than 64 characters; one of 64 is refused with 400."""
    check_unused(at)
    for length, status in ((64, 400), (63, 200)):
        expect(f"the status with {length} characters", status, define(at, [code(at, length)]).status)
    expect("the status with an empty code", 400, define(at, [""]).status)


@rule("spec: Limits", "backend", extension=True)
def number_of_sets(at: Deployment) -> None:
    """There are at most ten sets, at the indices 0 to 9."""
    check_unused(at)
    expect("the status with eleven sets", 400, define(at, *([code(at)] for _ in range(11))).status)
    expect("the status with index 10", 400, define(at, [code(at)], indices=[10]).status)
    expect("the status with index -1", 400, define(at, [code(at)], indices=[-1]).status)
    expect("the names afterwards", [], at.backend.get("codes").data["names"])
    expect("the status with ten sets", 200, define(at, *([code(at)] for _ in range(10))).status)


@rule("spec: Endpoints", "backend", extension=True)
def names_of_sets(at: Deployment) -> None:
    """Names are unique, one for each set; a refused PUT changes nothing."""
    check_unused(at)
    for names in (["A", "A"], ["A"], ["A", "B", "C"]):
        expect(f"the status with names {shown(names)}", 400, define(at, [code(at)], [code(at)], names=names).status)
    expect("the names afterwards", [], at.backend.get("codes").data["names"])


@rule("spec: Endpoints", "viewer", "backend", extension=True)
def deletion_of_sets(at: Deployment) -> None:
    """DELETE removes all sets, and answers how many codes of each were handed out."""
    check_unused(at)
    empty: dict[str, list[Any]] = {"names": [], "indices": [], "distributed": [], "left": []}
    expect("the list without sets", empty, at.backend.get("codes").data)
    expect("the response without sets", {"distributed": []}, at.backend.delete("codes").data)
    define(at, [code(at), code(at)], [code(at)], indices=[4, 0]).check()
    grant(at, at.user, prizes=[4], limits=[1] * 5).check()
    expect("whether the user got a code", True, "code" in redeem(at, at.user, 4))
    expect("`indices`, `distributed` and `left`", [[0, 4], [0, 1], [1, 1]], _counts(at.backend.get("codes").data))
    expect("the response to DELETE", {"distributed": [0, 1]}, at.backend.delete("codes").data)
    expect("the names afterwards", [], at.backend.get("codes").data["names"])


# Grants and redemption


@rule("C2", "viewer", "backend", extension=True)
def order_of_codes(at: Deployment) -> None:
    """Codes are handed out in the order of their list, one for each grant."""
    codes = new_set(at, 3)
    grant(at, at.user, prizes=[0, 0], limits=[2]).check()
    expect("the codes that the user may redeem", [2], eligible(at, at.user))
    for number in (1, 2):
        wanted = {"code": codes[number - 1], "all_prizes": codes[:number]}
        expect(f"redemption {number}", wanted, redeem(at, at.user))
    expect("redemption 3", {"all_prizes": codes[:2]}, redeem(at, at.user))


@rule("C2", "viewer", "backend", extension=True)
def codes_handed_out_once(at: Deployment) -> None:
    """A code that was handed out is never handed out again, also after DELETE."""
    check_unused(at)
    codes, other = [code(at), code(at)], at.fresh("user")
    for index, user, wanted in ((0, at.user, codes[0]), (7, other, codes[1])):
        define(at, codes, indices=[index]).check()
        grant(at, user, prizes=[index], limits=[1] * 10).check()
        expect("the code of a new set with the same codes", wanted, redeem(at, user, index).get("code"))
        at.backend.delete("codes").check()


@rule("C3", "viewer", "backend", extension=True)
def limits_of_prizes(at: Deployment) -> None:
    """`prize_limits` bounds what a user gets; a lower limit takes nothing away."""
    new_set(at, 5)
    for prizes, limit, wanted in (([0, 0, 0], 2, 2), ([0], 2, 2), ([0], 3, 3), ([0], 1, 3), ([0], 0, 3)):
        reply = grant(at, at.user, prizes=prizes, limits=[limit])
        expect("status and body of the grant", [200, {}], [reply.status, reply.json])
        expect(f"the codes after prizes {shown(prizes)} with limit {limit}", [wanted], eligible(at, at.user))


@rule("C3", "viewer", "backend", extension=True)
def unknown_prizes(at: Deployment) -> None:
    """A grant of a set that does not exist is refused with 400 and grants nothing."""
    new_set(at)
    for prizes in ([1], [0, 9], [-1], []):
        expect(
            f"the status with prizes {shown(prizes)}", 400, grant(at, at.user, prizes=prizes, limits=[9] * 10).status
        )
    expect("the codes that the user may redeem", [0], eligible(at, at.user))


@rule("C4", "viewer", "backend", extension=True)
def grants_from_a_poll(at: Deployment) -> None:
    """A poll's grant is for the voters of `correct` up to the cutoff, in seconds or ms."""
    new_set(at, 5)
    poll, right, wrong = at.fresh("poll"), at.user, at.fresh("user")
    for user, value in ((right, 2), (wrong, 3)):
        at.caller("viewer", user).post("vote", {"value": value}, id=poll).check()
    cast_at = at.backend.get("vote_logs", id=poll).data["result"][0]["timestamp"]
    body = {"prizes": [0], "prize_limits": [9], "correct": 2}
    for cutoff, wanted in ((cast_at - 1, 0), (cast_at, 1), (cast_at // 1000 - 1, 1), (cast_at // 1000, 2)):
        reply = at.backend.post("codes/mark_from_poll", {**body, "cutoff_timestamp": cutoff}, id=poll)
        expect("status and body of the grant", [200, {}], [reply.status, reply.json])
        expect("the codes of the right voter", [wanted], eligible(at, right))
    expect("the codes of the wrong voter", [0], eligible(at, wrong))


@rule("C4", "backend", extension=True)
def members_of_a_grant_from_a_poll(at: Deployment) -> None:
    """`mark_from_poll` needs all four members: without one it is refused with 400."""
    new_set(at)
    body = {"prizes": [0], "prize_limits": [1], "correct": 2, "cutoff_timestamp": 4_000_000_000}
    for missing in body:
        part = {name: value for name, value in body.items() if name != missing}
        reply = at.backend.post("codes/mark_from_poll", part, id=at.fresh("poll"))
        expect(f"the status without {missing}", 400, reply.status)


@rule("C5", "viewer", "backend", extension=True)
def redemption_of_nothing(at: Deployment) -> None:
    """`redeem` returns no `code` if the user is not eligible, the set has no codes left, or there is no set."""
    new_set(at)
    first, second = at.user, at.fresh("user")
    for prize in (0, 9):
        expect(f"the response for set {prize} without a grant", {"all_prizes": []}, redeem(at, first, prize))
    grant(at, first, second, prizes=[0], limits=[1]).check()
    expect("whether the first user got the only code", True, "code" in redeem(at, first))
    expect("the response when no code is left", {"all_prizes": []}, redeem(at, second))
    expect("the codes that the second user may redeem", [1], eligible(at, second))


@rule("C5", "viewer", writes=True)
def index_to_redeem(at: Deployment) -> None:
    """`redeem` takes one index from 0 to 9; others are refused with 400."""
    for body in ({"prize": 10}, {"prize": -1}, {"prize": "0"}, {"prize": 0, "index": 1}, {}):
        expect(f"the status with {shown(body)}", 400, at.viewer.post("codes/redeem", body).status)


@rule("C6", "viewer", "backend", extension=True)
def redeemed_codes_of_ended_sets(at: Deployment) -> None:
    """After DELETE, a user's codes stay in `redeemed`, and eligibility ends."""
    codes = new_set(at, 2, indices=[1])
    grant(at, at.user, prizes=[1, 1], limits=[2, 2]).check()
    expect("the code", codes[0], redeem(at, at.user, 1).get("code"))
    at.backend.delete("codes").check()
    expect("`redeemed` after DELETE", [[], [codes[0]]], at.viewer.get("codes/redeemed").data["redeemed"])
    define(at, [code(at)], indices=[1]).check()
    expect("the codes of the new set that the user may redeem", [0, 0], eligible(at, at.user))


def _counts(listed: Any) -> list[Any]:
    return [listed.get(name) for name in ("indices", "distributed", "left")]
