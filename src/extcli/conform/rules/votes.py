"""The rules of polls."""

from __future__ import annotations

from typing import Any

from extcli.api.tokens import opaque_id
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, expect, expect_that, rule, shown

SLACK = 60_000
"""How far the service's time may be from this machine's idea of it, in ms."""


@rule("spec: Voting", "admin")
def log_without_votes(at: Deployment) -> None:
    """The log of a poll without votes is {"result": []}."""
    expect("the log", {"result": []}, at.admin.get("vote_logs", id=at.fresh("poll")).data)


@rule("spec: Authentication", *ROLES)
def log_by_role(at: Deployment) -> None:
    """Admins and backends read the vote log; others are refused with 403."""
    for role, status in (("viewer", 403), ("broadcaster", 403), ("admin", 200), ("backend", 200)):
        reply = at.caller(role).get("vote_logs", id=at.fresh("poll"))
        expect(f"the status for role {role}", status, reply.status)


@rule("spec: Resources", "viewer", "admin", writes=True)
def log_entries(at: Deployment) -> None:
    """A log entry has the shared id (or the opaque id without one), the opaque id, value and time of a vote."""
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


@rule("P3", "viewer", "admin", writes=True)
def order_of_the_log(at: Deployment) -> None:
    """The log is oldest first, with the latest vote of each user once."""
    poll, users = at.fresh("poll"), [at.fresh("user") for _ in range(3)]
    vote(at, poll, *((user, value) for value, user in enumerate(users)), (users[0], 9))
    log = at.admin.get("vote_logs", id=poll).data["result"]
    expect("the values", [1, 2, 9], [entry["value"] for entry in log])
    expect("the users", [users[1], users[2], users[0]], [entry["identifier"] for entry in log])


@rule("P3", "viewer", "admin", writes=True)
def part_of_the_log(at: Deployment) -> None:
    """`since` is inclusive, and `limit` keeps the oldest entries."""
    poll = at.fresh("poll")
    vote(at, poll, (at.user, 1), (at.fresh("user"), 2))
    log = at.admin.get("vote_logs", id=poll).data["result"]
    expect("the entries with limit=1", log[:1], at.admin.get("vote_logs", id=poll, limit=1).data["result"])
    expect("the entries with limit=0", [], at.admin.get("vote_logs", id=poll, limit=0).data["result"])
    for since, wanted in (
        (log[0]["timestamp"], log),
        (-(10**20), log),
        (log[-1]["timestamp"] + 1, []),
        (10**20, []),
    ):
        expect("the entries with since", wanted, at.admin.get("vote_logs", id=poll, since=since).data["result"])


@rule("P3", "admin")
def malformed_part_of_the_log(at: Deployment) -> None:
    """A `since` or `limit` that is not a number, and a negative limit, is refused with 400."""
    for name, value in (("since", "x"), ("since", "1e3"), ("limit", "1.5"), ("limit", "-1")):
        reply = at.admin.get("vote_logs", id=at.fresh("poll"), **{name: value})
        expect(f"the status with {name}={value}", 400, reply.status)


FIELDS = ("stddev", "mean", "sum", "count", "specific")


def vote(at: Deployment, poll: str, *votes: tuple[str, int]) -> dict[str, Any]:
    """Cast votes of these users, in order. Returns the last response."""
    answer: dict[str, Any] = {}
    for user, value in votes:
        answer = at.caller("viewer", user).post("vote", {"value": value}, id=poll).data
    return answer


def specific(**counts: int) -> list[int]:
    """Return the 64 entries of `specific`: `v3=2` is two votes for 3."""
    return [counts.get(f"v{value}", 0) for value in range(64)]


@rule("P1", "viewer")
def poll_without_votes(at: Deployment) -> None:
    """A poll without votes reads as zeros, under `stats` and as flat fields."""
    empty = {"stddev": 0, "mean": 0, "sum": 0, "count": 0, "specific": specific()}
    expect("the poll", {"stats": empty, **empty}, at.viewer.get("vote", id=at.fresh("poll")).data)


@rule("P1", "viewer", writes=True)
def flat_fields(at: Deployment) -> None:
    """The flat fields equal the fields of `stats`."""
    poll = vote(at, at.fresh("poll"), (at.user, 3), (at.fresh("user"), 4))
    expect("the flat fields", poll["stats"], {name: poll.get(name) for name in FIELDS})


@rule("spec: Voting", "viewer", writes=True)
def answer_to_a_vote(at: Deployment) -> None:
    """The response to a vote is the poll, including that vote."""
    poll, other = at.fresh("poll"), at.fresh("user")
    answer = vote(at, poll, (other, 1), (at.user, 4))
    wanted = {"stddev": 1.5, "mean": 2.5, "sum": 5, "count": 2, "specific": specific(v1=1, v4=1)}
    expect("`stats`", wanted, answer["stats"])
    expect("the voter's vote", 4, answer.get("vote"))
    expect("the poll read by the voter", answer, at.viewer.get("vote", id=poll).data)


@rule("spec: Voting", "viewer", writes=True)
def second_vote(at: Deployment) -> None:
    """A user's second vote replaces the first and is not counted again."""
    poll = at.fresh("poll")
    answer = vote(at, poll, (at.fresh("user"), 1), (at.user, 3), (at.user, 5))
    stats = answer["stats"]
    expect("count and sum", [2, 6], [stats["count"], stats["sum"]])
    expect("`specific`", specific(v1=1, v5=1), stats["specific"])
    expect("the voter's vote", 5, answer.get("vote"))


@rule("spec: Voting", "viewer", writes=True)
def own_vote(at: Deployment) -> None:
    """`vote` is the caller's own vote, and is missing if there is none."""
    poll, other = at.fresh("poll"), at.fresh("user")
    vote(at, poll, (other, 7), (at.user, 3))
    for user, value in ((at.user, 3), (other, 7)):
        expect("the caller's vote", value, at.caller("viewer", user).get("vote", id=poll).data.get("vote"))
    read = at.caller("viewer", at.fresh("user")).get("vote", id=poll).data
    expect_that("the poll read by a user without a vote", "vote" not in read, "no member `vote`", read.get("vote"))


@rule("P1", "viewer", writes=True)
def population_deviation(at: Deployment) -> None:
    """`stddev` is the deviation of the population: of the votes 1 and 4 it is 1.5."""
    stats = vote(at, at.fresh("poll"), (at.user, 1), (at.fresh("user"), 4))["stats"]
    expect("`stddev` of the votes 1 and 4", 1.5, stats["stddev"])


@rule("spec: Limits", "viewer", writes=True)
def vote_within_bounds(at: Deployment) -> None:
    """The lowest vote is -99 and the highest is 99."""
    poll = at.fresh("poll")
    for value in (-99, 99, 0):
        reply = at.viewer.post("vote", {"value": value}, id=poll)
        expect(f"the status of a vote for {value}", 200, reply.status)
        expect(f"the vote after a vote for {value}", value, reply.data.get("vote"))


@rule("spec: Limits", "viewer", writes=True)
def vote_out_of_bounds(at: Deployment) -> None:
    """A vote below -99 or above 99 is refused with 400 and changes nothing."""
    poll = at.fresh("poll")
    before = at.viewer.post("vote", {"value": 3}, id=poll).data
    for value in (-100, 100, 2**63, -(2**64), 10**400):
        reply = at.viewer.post("vote", {"value": value}, id=poll)
        expect(f"the status of a vote for {shown(value)}", 400, reply.status)
    expect("the poll after refused votes", before, at.viewer.get("vote", id=poll).data)


@rule("P2", "viewer", writes=True)
def vote_not_an_integer(at: Deployment) -> None:
    """A vote that is not a JSON integer is refused with 400: true, 1.0, "1", null."""
    poll = at.fresh("poll")
    for text in ("true", "1.0", '"1"', "null", "[1]"):
        reply = at.viewer.call("POST", "vote", content=f'{{"value":{text}}}'.encode(), id=poll)
        expect(f"the status of a vote for {text}", 400, reply.status)
    expect("the number of votes", 0, at.viewer.get("vote", id=poll).data["stats"]["count"])


@rule("spec: Resources", "viewer", writes=True)
def specific_values(at: Deployment) -> None:
    """`specific` has the values 0 to 63; other votes count in the other statistics only."""
    votes = [(at.fresh("user"), value) for value in (0, 63, 64, -1, 63)]
    stats = vote(at, at.fresh("poll"), *votes)["stats"]
    expect("`specific`", specific(v0=1, v63=2), stats["specific"])
    expect("count, sum and mean", [5, 189, 37.8], [stats[name] for name in ("count", "sum", "mean")])


@rule("spec: Voting", "viewer", "admin", writes=True)
def deletion(at: Deployment) -> None:
    """DELETE removes a poll's votes and log, and returns {}."""
    poll = at.fresh("poll")
    vote(at, poll, (at.user, 3))
    expect("the response to DELETE", {}, at.admin.delete("vote", id=poll).data)
    read = at.viewer.get("vote", id=poll).data
    expect("count and vote after DELETE", [0, None], [read["stats"]["count"], read.get("vote")])
    expect("the log after DELETE", {"result": []}, at.admin.get("vote_logs", id=poll).data)
    again = vote(at, poll, (at.user, 1))["stats"]
    seen = [again[name] for name in ("count", "sum", "specific")]
    expect("count, sum and `specific` of the poll made again", [1, 1, specific(v1=1)], seen)


@rule("spec: Voting", "broadcaster", writes=True)
def deletion_of_nothing(at: Deployment) -> None:
    """Deleting a poll that does not exist is not an error."""
    reply = at.broadcaster.delete("vote", id=at.fresh("poll"))
    expect("status and body", [200, {}], [reply.status, reply.json])


@rule("spec: Authentication", *ROLES, writes=True)
def deletion_by_role(at: Deployment) -> None:
    """Broadcasters, admins and backends delete polls; a viewer is refused with 403."""
    poll = at.fresh("poll")
    vote(at, poll, (at.user, 3))
    expect("the status for a viewer", 403, at.viewer.delete("vote", id=poll).status)
    expect("the number of votes afterwards", 1, at.viewer.get("vote", id=poll).data["stats"]["count"])
    for role in ("broadcaster", "admin", "backend"):
        vote(at, poll, (at.user, 3))
        expect(f"the status for role {role}", 200, at.caller(role).delete("vote", id=poll).status)
        expect("the number of votes afterwards", 0, at.viewer.get("vote", id=poll).data["stats"]["count"])


@rule("spec: Authentication", *ROLES, writes=True)
def votes_of_all_roles(at: Deployment) -> None:
    """Every role may vote."""
    poll = at.fresh("poll")
    for role in ROLES:
        reply = at.caller(role, at.fresh("user")).post("vote", {"value": 1}, id=poll)
        expect(f"the status for role {role}", 200, reply.status)
    expect("the number of votes", 4, at.viewer.get("vote", id=poll).data["stats"]["count"])


@rule("A3", "viewer", writes=True)
def votes_by_opaque_id(at: Deployment) -> None:
    """Viewers who share no id are distinguished by their opaque ids."""
    poll, one, two = at.fresh("poll"), at.fresh("opaque", prefix="A"), at.fresh("opaque", prefix="A")
    for opaque, value in ((one, 3), (two, 4), (one, 5)):
        reply = at.caller("viewer", None, opaque=opaque).post("vote", {"value": value}, id=poll)
    stats = reply.data["stats"]
    expect("count and sum", [2, 9], [stats["count"], stats["sum"]])


@rule("W8", "viewer")
def poll_ids(at: Deployment) -> None:
    """A poll id has 1 to 64 letters, digits, `$`, `-` and `_`; others are refused with 400."""
    start = at.fresh("poll")
    for name in (start + "$_-Z", start.ljust(64, "a"), f"global-{start}".ljust(64, "a")):
        expect(f"the status of poll {name}", 200, at.viewer.get("vote", id=name).status)
    for name in (start + "a" * (65 - len(start)), start + ".", start + " ", start + "é"):
        expect(f"the status of poll {name}", 400, at.viewer.get("vote", id=name).status)


@rule("spec: Voting", "viewer", writes=True)
def default_poll(at: Deployment) -> None:
    """Without `id`, the poll is `default`."""
    at.viewer.post("vote", {"value": 3}).check()
    for path in ("vote", "vote?id=default", "vote?id="):
        expect(f"the votes of GET {path}", 1, at.viewer.get(path).data["stats"]["count"])


@rule("spec: Resources", "viewer", writes=True)
def poll_of_a_channel(at: Deployment) -> None:
    """A poll belongs to one channel; elsewhere its id is another poll."""
    poll, elsewhere = at.fresh("poll"), at.caller("viewer", at.user, channel=at.fresh("channel"))
    vote(at, poll, (at.user, 3))
    read = elsewhere.get("vote", id=poll).data
    expect("count and vote in another channel", [0, None], [read["stats"]["count"], read.get("vote")])
    voted = elsewhere.post("vote", {"value": 4}, id=poll).data
    expect("count and sum in another channel", [1, 4], [voted["stats"]["count"], voted["stats"]["sum"]])
    expect("the vote in the first channel", 3, at.viewer.get("vote", id=poll).data.get("vote"))


@rule("spec: Resources", "viewer", writes=True)
def global_poll(at: Deployment) -> None:
    """All channels share a poll whose id begins with `global-`."""
    poll = at.fresh("poll", prefix="global-")
    for user, channel in (
        (at.user, at.channel),
        (at.fresh("user"), at.fresh("channel")),
        (at.user, at.fresh("channel")),
    ):
        at.caller("viewer", user, channel=channel).post("vote", {"value": 3}, id=poll).check()
    read = at.caller("viewer", channel=at.fresh("channel")).get("vote", id=poll).data
    expect("the votes read in a third channel", 2, read["stats"]["count"])


@rule("A4", "viewer", "broadcaster", "admin", writes=True)
def deletion_of_a_global_poll(at: Deployment) -> None:
    """A broadcaster may not delete a `global-` poll; an admin may."""
    poll = at.fresh("poll", prefix="global-")
    vote(at, poll, (at.user, 3))
    expect("the status for a broadcaster", 403, at.broadcaster.delete("vote", id=poll).status)
    expect("the number of votes afterwards", 1, at.viewer.get("vote", id=poll).data["stats"]["count"])
    expect("the status for an admin", 200, at.admin.delete("vote", id=poll).status)
    expect("the number of votes afterwards", 0, at.viewer.get("vote", id=poll).data["stats"]["count"])


@rule("A4", "viewer", "backend", writes=True)
def poll_in_all_channels(at: Deployment) -> None:
    """An extension-level token reads the votes of all channels, or of the one in `channel_id`."""
    poll, second = at.fresh("poll"), at.fresh("channel")
    for channel, value in ((at.channel, 3), (second, 4)):
        at.caller("viewer", at.fresh("user"), channel=channel).post("vote", {"value": value}, id=poll).check()
    backend = at.caller("backend", channel=None)
    expect("the sum over all channels", 7, backend.get("vote", id=poll).data["stats"]["sum"])
    expect("the sum in one channel", 4, backend.get("vote", id=poll, channel_id=second).data["stats"]["sum"])
    log = backend.get("vote_logs", id=poll).data["result"]
    expect("the values in the log of all channels", [3, 4], sorted(entry["value"] for entry in log))


@rule("A4", "viewer", "broadcaster", writes=True)
def foreign_channel(at: Deployment) -> None:
    """Viewers and broadcasters cannot reach another channel with `channel_id`."""
    poll, second = at.fresh("poll"), at.fresh("channel")
    at.caller("viewer", at.fresh("user"), channel=second).post("vote", {"value": 4}, id=poll).check()
    for caller in (at.viewer, at.broadcaster):
        read = caller.get("vote", id=poll, channel_id=second).data
        expect(f"the votes that a {caller.role} of another channel reads", 0, read["stats"]["count"])
    at.viewer.post("vote", {"value": 3}, id=poll, channel_id=second).check()
    at.broadcaster.delete("vote", id=poll, channel_id=second).check()
    read = at.caller("viewer", channel=second).get("vote", id=poll).data
    expect("the votes after DELETE by another channel's broadcaster", 1, read["stats"]["count"])


@rule("spec: Resources", "viewer", writes=True)
def case_of_poll_ids(at: Deployment) -> None:
    """Polls whose ids differ in case only are different polls."""
    poll = at.fresh("poll")
    vote(at, poll, (at.user, 3))
    expect("the votes of the id in upper case", 0, at.viewer.get("vote", id=poll.upper()).data["stats"]["count"])
