"""Who may redeem which reward codes, and what they get."""

from __future__ import annotations

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule
from extcli.conform.rules.codes import check_unused, code, define, eligible, grant, redeem


@rule("C2", "Codes are handed out in the order of their list, one for each grant.", "viewer", "backend", extension=True)
def order_of_codes(at: Deployment) -> None:
    check_unused(at)
    codes = [code(at) for _ in range(3)]
    define(at, codes).check()
    grant(at, at.user, prizes=[0, 0], limits=[2]).check()
    expect("the codes that the user may redeem", [2], eligible(at, at.user))
    for number in (1, 2):
        wanted = {"code": codes[number - 1], "all_prizes": codes[:number]}
        expect(f"redemption {number}", wanted, redeem(at, at.user))
    expect("redemption 3", {"all_prizes": codes[:2]}, redeem(at, at.user))


@rule(
    "C2",
    "A code that was handed out is never handed out again, also after DELETE.",
    "viewer",
    "backend",
    extension=True,
)
def codes_handed_out_once(at: Deployment) -> None:
    check_unused(at)
    codes, other = [code(at), code(at)], at.fresh("user")
    for index, user, wanted in ((0, at.user, codes[0]), (7, other, codes[1])):
        define(at, codes, indices=[index]).check()
        grant(at, user, prizes=[index], limits=[1] * 10).check()
        expect("the code of a new set with the same codes", wanted, redeem(at, user, index).get("code"))
        at.backend.delete("codes").check()


@rule(
    "C3",
    "`prize_limits` bounds what a user gets; a lower limit takes nothing away.",
    "viewer",
    "backend",
    extension=True,
)
def limits_of_prizes(at: Deployment) -> None:
    check_unused(at)
    define(at, [code(at) for _ in range(5)]).check()
    for prizes, limit, wanted in (([0, 0, 0], 2, 2), ([0], 2, 2), ([0], 3, 3), ([0], 1, 3), ([0], 0, 3)):
        reply = grant(at, at.user, prizes=prizes, limits=[limit])
        expect("status and body of the grant", [200, {}], [reply.status, reply.json])
        expect(f"the codes after prizes {prizes} with limit {limit}", [wanted], eligible(at, at.user))


@rule(
    "C3",
    "A grant of a set that does not exist is refused with 400 and grants nothing.",
    "viewer",
    "backend",
    extension=True,
)
def unknown_prizes(at: Deployment) -> None:
    check_unused(at)
    define(at, [code(at)]).check()
    for prizes in ([1], [0, 9], [-1], []):
        expect(f"the status with prizes {prizes}", 400, grant(at, at.user, prizes=prizes, limits=[9] * 10).status)
    expect("the codes that the user may redeem", [0], eligible(at, at.user))


@rule(
    "C4",
    "A poll's grant is for the voters of `correct` up to the cutoff, in seconds or ms.",
    "viewer",
    "backend",
    extension=True,
)
def grants_from_a_poll(at: Deployment) -> None:
    check_unused(at)
    define(at, [code(at) for _ in range(5)]).check()
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


@rule("C4", "`mark_from_poll` needs all four members: without one it is refused with 400.", "backend", extension=True)
def members_of_a_grant_from_a_poll(at: Deployment) -> None:
    check_unused(at)
    define(at, [code(at)]).check()
    body = {"prizes": [0], "prize_limits": [1], "correct": 2, "cutoff_timestamp": 4_000_000_000}
    for missing in body:
        part = {name: value for name, value in body.items() if name != missing}
        reply = at.backend.post("codes/mark_from_poll", part, id=at.fresh("poll"))
        expect(f"the status without {missing}", 400, reply.status)


@rule(
    "C5",
    "Without eligibility, without codes and without a set, `redeem` answers no `code`.",
    "viewer",
    "backend",
    extension=True,
)
def redemption_of_nothing(at: Deployment) -> None:
    check_unused(at)
    define(at, [code(at)]).check()
    first, second = at.user, at.fresh("user")
    for prize in (0, 9):
        expect(f"the answer for set {prize} without a grant", {"all_prizes": []}, redeem(at, first, prize))
    grant(at, first, second, prizes=[0], limits=[1]).check()
    expect("whether the first user got the only code", True, "code" in redeem(at, first))
    expect("the answer when no code is left", {"all_prizes": []}, redeem(at, second))
    expect("the codes that the second user may redeem", [1], eligible(at, second))


@rule("C5", "`redeem` takes an index from 0 to 9; others are refused with 400.", "viewer", writes=True)
def index_to_redeem(at: Deployment) -> None:
    for body in ({"prize": 10}, {"prize": -1}, {"prize": "0"}, {}):
        expect(f"the status with {body}", 400, at.viewer.post("codes/redeem", body).status)


@rule(
    "C6", "A user's codes stay in `redeemed` after DELETE, eligibility does not.", "viewer", "backend", extension=True
)
def redeemed_codes_of_ended_sets(at: Deployment) -> None:
    check_unused(at)
    codes = [code(at) for _ in range(2)]
    define(at, codes, indices=[1]).check()
    grant(at, at.user, prizes=[1, 1], limits=[2, 2]).check()
    expect("the code", codes[0], redeem(at, at.user, 1).get("code"))
    at.backend.delete("codes").check()
    expect("`redeemed` after DELETE", [[], [codes[0]]], at.viewer.get("codes/redeemed").data["redeemed"])
    define(at, [code(at)], indices=[1]).check()
    expect("the codes of the new set that the user may redeem", [0, 0], eligible(at, at.user))
