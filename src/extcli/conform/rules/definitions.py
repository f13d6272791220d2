"""Poll definitions: `vote_config`, and what it permits."""

from __future__ import annotations

from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule, shown


def define(at: Deployment, **config: Any) -> str:
    """Define a new poll as its broadcaster, and return its id."""
    poll = at.fresh("poll")
    at.broadcaster.post("vote_config", {"id": poll, "config": config}).check()
    return poll


def status_of_vote(at: Deployment, poll: str, value: int = 1, **members: Any) -> int:
    """Vote as the probe's viewer, and return the status."""
    return at.viewer.post("vote", {"value": value, **members}, id=poll).status


@rule("P4", "viewer")
def poll_without_a_definition(at: Deployment) -> None:
    """The definition of a poll that has none gets 404."""
    expect("the status", 404, at.viewer.get("vote_config", id=at.fresh("poll")).status)


@rule("P4", "viewer", "broadcaster", writes=True)
def definition(at: Deployment) -> None:
    """A definition reads as it was written, with defaults and a status."""
    poll = define(at, prompt="Which?", options=["a", "b"], userData={"x": 1})
    read = at.viewer.get("vote_config", id=poll).data
    wanted = {
        "id": poll,
        "prompt": "Which?",
        "options": ["a", "b"],
        "userData": {"x": 1},
        "startsAt": 0,
        "endsAt": 0,
        "userIDVoting": False,
        "distinctOptionsPerUser": 1,
        "totalVotesPerUser": 1,
        "votesPerOption": 1,
        "disabled": False,
        "global": False,
        "status": "active",
    }
    expect("the definition", wanted, {name: read.get(name) for name in wanted})


@rule("P4", "viewer", "broadcaster", writes=True)
def definition_of_a_poll_with_votes(at: Deployment) -> None:
    """A new definition keeps the votes."""
    poll = at.fresh("poll")
    expect("the status of a vote", 200, status_of_vote(at, poll))
    for prompt in ("one", "two"):
        at.broadcaster.post("vote_config", {"id": poll, "config": {"prompt": prompt}}).check()
    expect("the number of votes", 1, at.viewer.get("vote", id=poll).data["stats"]["count"])
    expect("the prompt", "two", at.viewer.get("vote_config", id=poll).data["prompt"])


@rule("P4", "viewer", "broadcaster", "admin", writes=True)
def definition_by_role(at: Deployment) -> None:
    """A viewer may not define a poll, and a broadcaster may not define a `global-` one: 403."""
    own, shared = at.fresh("poll"), at.fresh("poll", prefix="global-")
    for caller, poll, status in (
        (at.viewer, own, 403),
        (at.broadcaster, shared, 403),
        (at.admin, own, 200),
        (at.admin, shared, 200),
    ):
        reply = caller.post("vote_config", {"id": poll, "config": {"prompt": "?"}})
        expect(f"the status for role {caller.role}, poll {poll}", status, reply.status)
    at.admin.post("vote_config", {"id": shared, "config": {"global": True}}).check()
    expect("`global` of the shared poll", True, at.viewer.get("vote_config", id=shared).data.get("global"))


@rule("P4", "broadcaster", writes=True)
def empty_options(at: Deployment) -> None:
    """A definition needs no options, but an empty list of them is refused with 400."""
    for options, status in (
        ({}, 200),
        ({"options": []}, 400),
        ({"options": ["o"] * 64}, 200),
        (
            {"options": ["o"] * 65},
            400,
        ),
    ):
        reply = at.broadcaster.post("vote_config", {"id": at.fresh("poll"), "config": options})
        expect(f"the status with {len(options.get('options', []))} options", status, reply.status)


@rule("P4", "viewer", "broadcaster", writes=True)
def open_polls(at: Deployment) -> None:
    """A poll takes votes from `startsAt` until before `endsAt`."""
    for config, state, status in (
        ({"startsIn": 3600}, "pending", 400),
        ({"endsAt": -1}, "expired", 400),
        ({"endsIn": 3600}, "active", 200),
    ):
        poll = define(at, **config)
        expect(f"the state with {shown(config)}", state, at.viewer.get("vote_config", id=poll).data.get("status"))
        expect(f"the status of a vote with {shown(config)}", status, status_of_vote(at, poll))


@rule("P4", "viewer", "broadcaster", writes=True)
def disabled_poll(at: Deployment) -> None:
    """A disabled poll refuses votes with 400, until it is enabled."""
    poll = define(at, disabled=True)
    expect("the status of a vote", 400, status_of_vote(at, poll))
    expect("the number of votes", 0, at.viewer.get("vote", id=poll).data["stats"]["count"])
    at.broadcaster.post("vote_config", {"id": poll, "config": {"disabled": False}}).check()
    expect("the status of a vote once it is enabled", 200, status_of_vote(at, poll))


@rule("P4", "viewer", "broadcaster", writes=True)
def votes_with_shared_ids(at: Deployment) -> None:
    """With `userIDVoting`, only users who share their id may vote."""
    poll = define(at, userIDVoting=True)
    stranger = at.caller("viewer", None, opaque=at.fresh("opaque", prefix="A"))
    expect("the status without a shared id", 400, stranger.post("vote", {"value": 1}, id=poll).status)
    expect("the status with a shared id", 200, status_of_vote(at, poll))


@rule("P4", "viewer", "broadcaster", "admin", writes=True)
def additive_votes(at: Deployment) -> None:
    """With `totalVotesPerUser`, votes add up, `count` at a time."""
    poll = define(at, totalVotesPerUser=40, votesPerOption=40, distinctOptionsPerUser=2)
    answer = at.viewer.post("vote", {"value": 2}, id=poll).data
    for value, times in ((2, 30), (-5, 3)):
        answer = at.viewer.post("vote", {"value": value, "count": times}, id=poll).data
    stats = answer["stats"]
    seen = [stats["count"], stats["sum"], stats["specific"][2], answer["vote"]]
    expect("count, sum, votes for 2 and the latest vote", [34, 47, 31, -5], seen)
    log = [[entry["value"], entry.get("count")] for entry in at.admin.get("vote_logs", id=poll).data["result"]]
    expect("values and counts of the log", [[2, 31], [-5, 3]], log)
    for times in (-1, 0, 31, 10**30):
        expect(f"the status of a vote with count {times}", 400, status_of_vote(at, poll, 2, count=times))


@rule("P4", "viewer", "broadcaster", writes=True)
def votes_over_a_limit(at: Deployment) -> None:
    """A vote over a limit of its poll is refused with 400 completely."""
    for limits, within, over in (
        ((5, 5, 5), [(1, 3)], (2, 3)),
        ((9, 3, 5), [(1, 2)], (1, 2)),
        ((9, 9, 2), [(1, 1), (2, 1)], (3, 1)),
        ((2, 9, 9), [], (1, 3)),
    ):
        names = ("totalVotesPerUser", "votesPerOption", "distinctOptionsPerUser")
        poll = define(at, **dict(zip(names, limits, strict=True)))
        for value, times in within:
            expect("the status of a vote within the limits", 200, status_of_vote(at, poll, value, count=times))
        before = at.viewer.get("vote", id=poll).data
        expect("the status of a vote over a limit", 400, status_of_vote(at, poll, over[0], count=over[1]))
        expect("the poll afterwards", before, at.viewer.get("vote", id=poll).data)


@rule("P4", "viewer", writes=True)
def count_of_a_single_vote(at: Deployment) -> None:
    """`count` is ignored where a user has one vote."""
    poll = at.fresh("poll")
    for times in (-1, 0, 2, 31, 10**30):
        expect(f"the status with count {times}", 200, status_of_vote(at, poll, 3, count=times))
    expect("the number of votes", 1, at.viewer.get("vote", id=poll).data["stats"]["count"])
