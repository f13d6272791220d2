"""Reward codes: sets, their limits, and who may use them. Sets belong to the whole extension."""

from __future__ import annotations

import secrets
from typing import Any

from extcli.conform.calls import Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import Skipped, expect, expect_that, rule

ROLES = ("viewer", "broadcaster", "admin", "backend")


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
    """Define sets of these codes as a backend, and return the answer."""
    names = [f"conform {index}" for index in range(len(sets))]
    return at.backend.put("codes", {"codes": list(sets), "names": names, **members})


def grant(at: Deployment, *users: str, prizes: list[int], limits: list[int]) -> Reply:
    """Grant users prizes, and return the answer."""
    body = {"users": list(users), "prizes": prizes, "prize_limits": limits}
    return at.backend.post("codes/mark_from_list", body)


def eligible(at: Deployment, user: str) -> list[int]:
    """Return how many codes of each set a user may redeem."""
    return list(at.caller("viewer", user).get("codes/eligibility").data["eligible"])


def redeem(at: Deployment, user: str, prize: int = 0) -> Any:
    """Redeem a code of a set as a user, and return the answer."""
    return at.caller("viewer", user).post("codes/redeem", {"prize": prize}).data


@rule("C1", "Admins and backends list code sets; others are refused with 403.", *ROLES)
def code_sets_by_role(at: Deployment) -> None:
    for role in ROLES:
        status = 200 if role in ("admin", "backend") else 403
        expect(f"the status for role {role}", status, at.caller(role).get("codes").status)


@rule("spec: Endpoints", "Any user may ask for their eligibility.", *ROLES)
def eligibility_by_role(at: Deployment) -> None:
    for role in ROLES:
        expect(f"the status for role {role}", 200, at.caller(role).get("codes/eligibility").status)


@rule("C1", "Any user may read the codes that they have redeemed.", *ROLES)
def redeemed_codes_by_role(at: Deployment) -> None:
    for role in ROLES:
        redeemed = at.caller(role).get("codes/redeemed").data.get("redeemed")
        expect_that(f"`redeemed` for role {role}", isinstance(redeemed, list), "an array", redeemed)


@rule("C1", "Viewers and broadcasters may not define, delete or grant codes: 403.", *ROLES, extension=True)
def code_writers(at: Deployment) -> None:
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


@rule(
    "spec: Endpoints",
    "Sets get the indices given, or else their positions, and are listed by index.",
    "backend",
    extension=True,
)
def indices_of_sets(at: Deployment) -> None:
    check_unused(at)
    expect("the status of PUT", 200, define(at, [code(at)], [code(at)], names=["Sword", "Hat"], indices=[5, 2]).status)
    expect("the names", ["Hat", "Sword"], at.backend.get("codes").data["names"])
    define(at, [code(at)], [code(at)], names=["A", "B"]).check()
    listed = at.backend.get("codes").data
    expect("the names after a PUT without indices", ["A", "B", "Hat", "Sword"], listed["names"])
    expect("`indices`, `distributed` and `left`", [[0, 1, 2, 5], [0] * 4, [1] * 4], _counts(listed))


@rule("spec: Limits", "A code has fewer than 64 characters; one of 64 is refused with 400.", "backend", extension=True)
def length_of_a_code(at: Deployment) -> None:
    check_unused(at)
    for length, status in ((64, 400), (63, 200)):
        expect(f"the status with {length} characters", status, define(at, [code(at, length)]).status)
    expect("the status with an empty code", 400, define(at, [""]).status)


@rule("spec: Limits", "There are at most ten sets, at the indices 0 to 9.", "backend", extension=True)
def number_of_sets(at: Deployment) -> None:
    check_unused(at)
    expect("the status with eleven sets", 400, define(at, *([code(at)] for _ in range(11))).status)
    expect("the status with index 10", 400, define(at, [code(at)], indices=[10]).status)
    expect("the status with index -1", 400, define(at, [code(at)], indices=[-1]).status)
    expect("the names afterwards", [], at.backend.get("codes").data["names"])
    expect("the status with ten sets", 200, define(at, *([code(at)] for _ in range(10))).status)


@rule(
    "spec: Endpoints", "Names are unique, one for each set; a refused PUT changes nothing.", "backend", extension=True
)
def names_of_sets(at: Deployment) -> None:
    check_unused(at)
    for names in (["A", "A"], ["A"], ["A", "B", "C"]):
        expect(f"the status with names {names}", 400, define(at, [code(at)], [code(at)], names=names).status)
    expect("the names afterwards", [], at.backend.get("codes").data["names"])


@rule(
    "spec: Endpoints",
    "DELETE removes all sets, and answers how many codes of each were handed out.",
    "viewer",
    "backend",
    extension=True,
)
def deletion_of_sets(at: Deployment) -> None:
    check_unused(at)
    expect("the answer without sets", {"distributed": []}, at.backend.delete("codes").data)
    define(at, [code(at), code(at)], [code(at)], indices=[4, 0]).check()
    grant(at, at.user, prizes=[4], limits=[1] * 5).check()
    expect("whether the user got a code", True, "code" in redeem(at, at.user, 4))
    expect("the answer to DELETE", {"distributed": [0, 1]}, at.backend.delete("codes").data)
    expect("the names afterwards", [], at.backend.get("codes").data["names"])


def _counts(listed: Any) -> list[Any]:
    return [listed.get(name) for name in ("indices", "distributed", "left")]
