"""Poll definitions: `vote_config`, and what it permits."""

from __future__ import annotations

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_members, reads, shown, writes
from extcli.conform.rules.votes import Poll

LIMITS = ("totalVotesPerUser", "votesPerOption", "distinctOptionsPerUser")


@reads("P4")
def poll_without_a_definition(at: Deployment) -> None:
    """The definition of a poll that has none gets 404."""
    at.viewer.get("vote_config", id=at.fresh("poll"), status=404)


@writes("P4")
def definition(at: Deployment) -> None:
    """A definition reads as it was written, with defaults and a status."""
    written = {"prompt": "Which?", "options": ["a", "b"], "userData": {"x": 1}}
    poll = Poll(at, config=written)
    defaults = {
        "startsAt": 0,
        "endsAt": 0,
        "userIDVoting": False,
        "distinctOptionsPerUser": 1,
        "totalVotesPerUser": 1,
        "votesPerOption": 1,
        "disabled": False,
        "global": False,
    }
    expect_members({"id": poll.id, **written, **defaults, "status": "active"}, poll.definition())


@writes("P4")
def definition_of_a_poll_with_votes(at: Deployment) -> None:
    """A new definition keeps the votes."""
    poll = Poll(at, 1)
    poll.define({"prompt": "one"})
    poll.define({"prompt": "two"})
    poll.counts(1)
    expect("the prompt", "two", poll.definition()["prompt"])


@writes("P4")
def definition_by_role(at: Deployment) -> None:
    """A viewer may not define a poll, and a broadcaster may not define a `global-` one: 403."""
    own, shared = Poll(at), Poll(at, prefix="global-")
    own.define({"prompt": "?"}, at.viewer, status=403)
    shared.define({"prompt": "?"}, at.broadcaster, status=403)
    for poll in (own, shared):
        poll.define({"prompt": "?"}, at.admin)
    shared.define({"global": True}, at.admin)
    expect("the member `global` of the shared poll's definition", True, shared.definition()["global"])


@writes("P4")
def empty_options(at: Deployment) -> None:
    """A definition may omit `options`; a list of them has 1 to 64 entries, otherwise 400."""
    Poll(at).define({})
    for number, status in ((0, 400), (64, 200), (65, 400)):
        Poll(at).define({"options": ["o"] * number}, status=status)


@writes("P4")
def open_polls(at: Deployment) -> None:
    """A poll takes votes from `startsAt` until before `endsAt`."""
    for config, state, status in (
        ({"startsIn": 3600}, "pending", 400),
        ({"endsAt": -1}, "expired", 400),
        ({"endsIn": 3600}, "active", 200),
    ):
        poll = Poll(at, config=config)
        expect(f"the state with {shown(config)}", state, poll.definition()["status"])
        poll.cast(1, status=status)


@writes("P4")
def disabled_poll(at: Deployment) -> None:
    """A disabled poll refuses votes with 400, until it is enabled."""
    poll = Poll(at, config={"disabled": True})
    poll.refuses(1)
    poll.counts(0)
    poll.define({"disabled": False})
    poll.cast(1)


@writes("P4")
def votes_with_shared_ids(at: Deployment) -> None:
    """With `userIDVoting`, only users who share their id may vote."""
    poll = Poll(at, config={"userIDVoting": True})
    poll.cast(1, at.caller("viewer", None, opaque=at.fresh("opaque", prefix="A")), status=400)
    poll.cast(1)


@writes("P4")
def additive_votes(at: Deployment) -> None:
    """With `totalVotesPerUser`, votes add up, `count` at a time."""
    poll = Poll(at, config={"totalVotesPerUser": 40, "votesPerOption": 40, "distinctOptionsPerUser": 2})
    poll.cast(2)
    poll.cast(2, count=30)
    answer = poll.cast(-5, count=3).json
    expect_members({"count": 34, "sum": 47}, answer["stats"])
    expect("the number of votes for 2, and the latest vote", [31, -5], [answer["stats"]["specific"][2], answer["vote"]])
    log = [[entry["value"], entry["count"]] for entry in poll.log()]
    expect("the values and counts of the log", [[2, 31], [-5, 3]], log)
    for count in (-1, 0, 31, 10**30):
        poll.cast(2, count=count, status=400)


@writes("P4")
def votes_over_a_limit(at: Deployment) -> None:
    """A vote over a limit of its poll is refused with 400, and none of its `count` is cast."""
    for limits, within, over in (
        ((5, 5, 5), [(1, 3)], (2, 3)),
        ((9, 3, 5), [(1, 2)], (1, 2)),
        ((9, 9, 2), [(1, 1), (2, 1)], (3, 1)),
        ((2, 9, 9), [], (1, 3)),
    ):
        poll = Poll(at, config=dict(zip(LIMITS, limits, strict=True)))
        for value, count in within:
            poll.cast(value, count=count)
        before = poll.read()
        poll.cast(over[0], count=over[1], status=400)
        expect("the poll afterwards", before, poll.read())


@writes("P4")
def count_of_a_single_vote(at: Deployment) -> None:
    """In a poll with one vote per user, `count` is ignored."""
    poll = Poll(at)
    for count in (-1, 0, 2, 31, 10**30):
        poll.cast(3, count=count)
    poll.counts(1)
