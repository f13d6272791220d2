"""The vote log: who reads it, what an entry holds, and its order."""

from __future__ import annotations

from extcli.api.tokens import opaque_id
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, expect, expect_that, rule
from extcli.conform.rules.votes import vote

SLACK = 60_000
"""How far the service's time may be from this machine's idea of it, in ms."""


@rule("spec: Voting", 'The log of a poll without votes is {"result": []}.', "admin")
def log_without_votes(at: Deployment) -> None:
    expect("the log", {"result": []}, at.admin.get("vote_logs", id=at.fresh("poll")).data)


@rule("spec: Authentication", "Admins and backends read the vote log; others are refused with 403.", *ROLES)
def log_by_role(at: Deployment) -> None:
    for role, status in (("viewer", 403), ("broadcaster", 403), ("admin", 200), ("backend", 200)):
        reply = at.caller(role).get("vote_logs", id=at.fresh("poll"))
        expect(f"the status for role {role}", status, reply.status)


@rule(
    "spec: Resources",
    "A log entry has the shared id or else the opaque id, the opaque id, value and time of a vote.",
    "viewer",
    "admin",
    writes=True,
)
def log_entries(at: Deployment) -> None:
    poll, opaque, before = at.fresh("poll"), at.fresh("opaque", prefix="A"), at.now()
    vote(at, poll, (at.user, 3))
    at.caller("viewer", None, opaque=opaque).post("vote", {"value": 4}, id=poll).check()
    entries = at.admin.get("vote_logs", id=poll).data["result"]
    expect(
        "identifier, opaque id and value of the entries",
        [[at.user, opaque_id(at.user), 3], [opaque, opaque, 4]],
        [[entry.get(name) for name in ("identifier", "opaque", "value")] for entry in entries],
    )
    for entry in entries:
        near = isinstance(entry.get("timestamp"), int) and before - SLACK < entry["timestamp"] < at.now() + SLACK
        expect_that("`timestamp`", near, "the time of the vote in Unix ms", entry.get("timestamp"))


@rule("P3", "The log is oldest first, with the latest vote of each user once.", "viewer", "admin", writes=True)
def order_of_the_log(at: Deployment) -> None:
    poll, users = at.fresh("poll"), [at.fresh("user") for _ in range(3)]
    vote(at, poll, *((user, value) for value, user in enumerate(users)), (users[0], 9))
    log = at.admin.get("vote_logs", id=poll).data["result"]
    expect("the values", [1, 2, 9], [entry["value"] for entry in log])
    expect("the users", [users[1], users[2], users[0]], [entry["identifier"] for entry in log])


@rule("P3", "`since` is inclusive, and `limit` keeps the oldest entries.", "viewer", "admin", writes=True)
def part_of_the_log(at: Deployment) -> None:
    poll = at.fresh("poll")
    vote(at, poll, (at.user, 1), (at.fresh("user"), 2))
    log = at.admin.get("vote_logs", id=poll).data["result"]
    expect("the entries with limit=1", log[:1], at.admin.get("vote_logs", id=poll, limit=1).data["result"])
    expect("the entries with limit=0", [], at.admin.get("vote_logs", id=poll, limit=0).data["result"])
    for since, wanted in ((log[0]["timestamp"], log), (log[-1]["timestamp"] + 1, [])):
        expect("the entries with since", wanted, at.admin.get("vote_logs", id=poll, since=since).data["result"])


@rule("P3", "A `since` or `limit` that is not a number, and a negative limit, is refused with 400.", "admin")
def malformed_part_of_the_log(at: Deployment) -> None:
    for name, value in (("since", "x"), ("since", "1.5"), ("limit", "x"), ("limit", "-1")):
        reply = at.admin.get("vote_logs", id=at.fresh("poll"), **{name: value})
        expect(f"the status with {name}={value}", 400, reply.status)
