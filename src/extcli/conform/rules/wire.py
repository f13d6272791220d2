"""Paths, bodies, answers, errors and CORS."""

from __future__ import annotations

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule


@rule("W3", "An empty list is `[]`, in a body of type application/json.", "admin")
def empty_list(at: Deployment) -> None:
    for path, empty in (
        ("vote_logs", {"result": []}),
        ("rank", {"data": []}),
        ("accumulate", {"data": [], "latest": 0}),
    ):
        reply = at.admin.get(path, id=at.fresh())
        expect(f"the status of {path}", 200, reply.status)
        expect(f"the body of {path}", empty, reply.json)
        expect(f"the content type of {path}", "application/json", reply.headers.get("content-type"))


@rule("spec: Authentication", "A call without a credential is refused with 401.")
def no_credential(at: Deployment) -> None:
    for path in ("vote", "user_info", "all_state", "channel_config"):
        expect(f"the status of GET {path} without a credential", 401, at.anonymous.get(path).status)


@rule("P1", "After one vote, count, sum and mean are of that vote.", "viewer", writes=True, specified=True)
def one_vote(at: Deployment) -> None:
    poll = at.fresh("poll")
    reply = at.viewer.post("vote", {"value": 3}, id=poll)
    stats = reply.data["stats"]
    expect("count, sum and mean", (1, 3, 3), (stats["count"], stats["sum"], stats["mean"]))
    expect("the caller's vote", 3, at.viewer.get("vote", id=poll).data["vote"])
