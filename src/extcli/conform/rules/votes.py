"""The rules of polls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extcli.api.tokens import opaque_id
from extcli.conform.calls import Caller, Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, expect, expect_members, expect_that, reads, writes


class Poll:
    """A new poll. `by` is who acts: by default the probe's viewer, for the log an admin, else a broadcaster."""

    def __init__(
        self,
        at: Deployment,
        *values: int,
        config: Mapping[str, Any] | None = None,
        prefix: str = "",
    ) -> None:
        """Define the poll if there is a `config`, and cast a vote for each value."""
        self._at = at
        self.id = at.fresh("poll", prefix=prefix)
        if config is not None:
            self.define(config)
        for value in values:
            self.cast(value)

    def cast(self, value: Any, by: Caller | None = None, *, status: int = 200, **members: Any) -> Reply:
        """Vote, and return the response. Its body has more `members`."""
        return (by or self._at.viewer).post("vote", {"value": value, **members}, id=self.id, status=status)

    def refuses(self, *values: Any) -> None:
        """Raise `Differs` unless a vote for each of these values gets 400."""
        for value in values:
            self.cast(value, status=400)

    def cast_each(self, *votes: tuple[str, int]) -> Any:
        """Cast votes of these users in order, and return the last response."""
        for user, value in votes:
            reply = self.cast(value, self._at.caller("viewer", user))
        return reply.json

    def read(self, by: Caller | None = None, **query: Any) -> Any:
        """Return the poll."""
        return (by or self._at.viewer).get("vote", id=self.id, **query).json

    def counts(self, number: int, by: Caller | None = None, **query: Any) -> None:
        """Raise `Differs` unless the poll has this number of votes."""
        has_votes((by or self._at.viewer).get("vote", id=self.id, **query), number)

    def log(self, by: Caller | None = None, **query: Any) -> Any:
        """Return the entries of the log."""
        return (by or self._at.admin).get("vote_logs", id=self.id, **query).json["result"]

    def delete(self, by: Caller | None = None, *, status: int = 200, **query: Any) -> Reply:
        """Delete the poll, and return the response."""
        return (by or self._at.broadcaster).delete("vote", id=self.id, status=status, **query)

    def define(self, config: Mapping[str, Any], by: Caller | None = None, *, status: int = 200) -> None:
        """Define the poll."""
        (by or self._at.broadcaster).post("vote_config", {"id": self.id, "config": config}, status=status)

    def definition(self) -> Any:
        """Return the definition of the poll."""
        return self._at.viewer.get("vote_config", id=self.id).json


def has_votes(reply: Reply, number: int) -> None:
    """Raise `Differs` unless the poll in this response has this number of votes."""
    expect(f"the number of votes in {reply.request}", number, reply.json["stats"]["count"])


def specific_counts(**counts: int) -> list[int]:
    """Return the 64 entries of `specific`: `v3=2` is two votes for 3."""
    return [counts.get(f"v{value}", 0) for value in range(64)]


# The log


@writes("spec: Resources")
def log_entries(at: Deployment) -> None:
    """A log entry has the voter's user id (opaque id if not shared), opaque id, value, and time of the vote."""
    opaque, poll = at.fresh("opaque", prefix="A"), Poll(at, 3)
    poll.cast(4, at.caller("viewer", None, opaque=opaque))
    first, second = poll.log()
    expect_members({"identifier": at.user, "opaque": opaque_id(at.user), "value": 3}, first)
    expect_members({"identifier": opaque, "opaque": opaque, "value": 4}, second)
    at.check_are_recent("`timestamp`", [first["timestamp"], second["timestamp"]])


@writes("P3")
def order_of_the_log(at: Deployment) -> None:
    """The log is oldest first, with each user's latest vote once; it begins at `since`, and `limit` cuts its end."""
    poll = Poll(at)
    one, two, three = (at.fresh("user") for _ in range(3))
    poll.cast_each((one, 0), (two, 1), (three, 2), (one, 9))
    log = poll.log()
    expect("the values", [1, 2, 9], [entry["value"] for entry in log])
    expect("the users", [two, three, one], [entry["identifier"] for entry in log])
    first, _, last = (entry["timestamp"] for entry in log)
    expect("the entries with limit=1", log[:1], poll.log(limit=1))
    expect("the entries with limit=0", [], poll.log(limit=0))
    for since, wanted in (
        (first, log),
        (-(10**20), log),
        (last + 1, []),
        (10**20, []),
    ):
        expect(f"the entries with since={since}", wanted, poll.log(since=since))


@reads("P3")
def malformed_part_of_the_log(at: Deployment) -> None:
    """A `since` or `limit` that is not a number, and a negative limit, is refused with 400."""
    for part in ({"since": "x"}, {"since": "1e3"}, {"limit": "1.5"}, {"limit": "-1"}):
        at.admin.get("vote_logs", id=at.fresh("poll"), status=400, **part)


# Votes


@reads("P1")
def poll_without_votes(at: Deployment) -> None:
    """A poll without votes reads as zeros, under `stats` and as flat fields."""
    empty = {"stddev": 0, "mean": 0, "sum": 0, "count": 0, "specific": specific_counts()}
    at.viewer.get("vote", id=at.fresh("poll")).returns({"stats": empty, **empty})


@writes("P1")
def flat_fields(at: Deployment) -> None:
    """The flat fields equal the fields of `stats`."""
    poll = Poll(at).cast_each((at.user, 3), (at.fresh("user"), 4))
    expect_members(poll["stats"], poll, "next to `stats`")


@writes("spec: Voting")
def answer_to_a_vote(at: Deployment) -> None:
    """The response to a vote is the poll, including that vote."""
    poll = Poll(at)
    answer = poll.cast_each((at.fresh("user"), 1), (at.user, 4))
    wanted = {
        "stddev": 1.5,
        "mean": 2.5,
        "sum": 5,
        "count": 2,
        "specific": specific_counts(v1=1, v4=1),
    }
    expect("`stats`", wanted, answer["stats"])
    expect("the voter's vote", 4, answer["vote"])
    expect("the poll read by the voter", answer, poll.read())


@writes("spec: Voting")
def second_vote(at: Deployment) -> None:
    """A user's second vote replaces the first and is not counted again."""
    answer = Poll(at).cast_each((at.fresh("user"), 1), (at.user, 3), (at.user, 5))
    expect_members({"count": 2, "sum": 6, "specific": specific_counts(v1=1, v5=1)}, answer["stats"])
    expect("the voter's vote", 5, answer["vote"])


@writes("spec: Voting")
def own_vote(at: Deployment) -> None:
    """`vote` is the caller's own vote, and is missing if there is none."""
    poll, other = Poll(at), at.stranger()
    poll.cast(7, other)
    poll.cast(3)
    expect("the vote of one user", 3, poll.read()["vote"])
    expect("the vote of another", 7, poll.read(other)["vote"])
    read = poll.read(at.stranger())
    expect_that("the poll read by a user without a vote", "vote" not in read, "no member `vote`", read.get("vote"))


@writes("spec: Limits")
def bounds_of_a_vote(at: Deployment) -> None:
    """A vote is an integer from -99 to 99; a lower or higher one is refused with 400 and changes nothing."""
    poll = Poll(at)
    for value in (-99, 99, 0):
        reply = poll.cast(value)
        reply.has(vote=value)
    poll.refuses(-100, 100, 2**63, -(2**64), 10**400)
    expect("the poll after refused votes", reply.json, poll.read())


@writes("P2")
def vote_not_an_integer(at: Deployment) -> None:
    """A vote that is not a JSON integer is refused with 400: true, 1.0, "1", null."""
    poll = Poll(at)
    poll.refuses(True, 1.0, "1", None, [1])
    poll.counts(0)


@writes("spec: Resources")
def specific_values(at: Deployment) -> None:
    """`specific` has the values 0 to 63; other votes count in the other statistics only."""
    answer = Poll(at).cast_each(*((at.fresh("user"), value) for value in (0, 63, 64, -1, 63)))
    expect_members({"count": 5, "sum": 189, "mean": 37.8, "specific": specific_counts(v0=1, v63=2)}, answer["stats"])


@writes("A3")
def votes_by_opaque_id(at: Deployment) -> None:
    """Viewers who share no id are distinguished by their opaque ids."""
    poll = Poll(at)
    one, two = (at.caller("viewer", None, opaque=at.fresh("opaque", prefix="A")) for _ in range(2))
    poll.cast(3, one)
    poll.cast(4, two)
    expect_members({"count": 2, "sum": 9}, poll.cast(5, one).json["stats"])


# Deletion, and roles


@writes("spec: Voting")
def deletion(at: Deployment) -> None:
    """DELETE removes a poll's votes and log, and returns {}, also if there is no such poll."""
    poll = Poll(at, 3)
    for _ in range(2):
        poll.delete(at.admin).returns({})
    read = poll.read()
    expect("count and vote after DELETE", [0, None], [read["stats"]["count"], read.get("vote")])
    at.admin.get("vote_logs", id=poll.id).returns({"result": []}, "the log after DELETE")
    again = poll.cast(1).json["stats"]
    expect_members({"count": 1, "sum": 1, "specific": specific_counts(v1=1)}, again, "of the poll after a new vote")


@writes("spec: Authentication")
def votes_and_deletion_by_role(at: Deployment) -> None:
    """Every role may vote; broadcasters, admins and backends delete polls, and a viewer is refused with 403."""
    poll = Poll(at)
    for role in ROLES:
        poll.cast(1, at.caller(role, at.fresh("user")))
    poll.delete(at.viewer, status=403)
    poll.counts(4)
    for caller in (at.broadcaster, at.admin, at.backend):
        poll.cast(3)
        poll.delete(caller)
        poll.counts(0)


@writes("A4")
def deletion_of_a_global_poll(at: Deployment) -> None:
    """A broadcaster may not delete a `global-` poll; an admin may."""
    poll = Poll(at, 3, prefix="global-")
    poll.delete(at.broadcaster, status=403)
    poll.counts(1)
    poll.delete(at.admin)
    poll.counts(0)


# Ids and channels


@reads("W8")
def poll_ids(at: Deployment) -> None:
    """A poll id has only letters, digits, `$`, `-` and `_`; others are refused with 400."""
    start = at.fresh("poll")
    for name in (start + "$_-Z", f"global-{start}".ljust(64, "a")):
        at.viewer.get("vote", id=name)
    for name in (start + ".", start + " ", start + "é"):
        at.viewer.get("vote", id=name, status=400)


@writes("spec: Voting")
def default_poll(at: Deployment) -> None:
    """Without `id`, the poll is `default`."""
    at.viewer.post("vote", {"value": 3})
    for path in ("vote", "vote?id=default"):
        has_votes(at.viewer.get(path), 1)


@writes("spec: Resources")
def poll_of_a_channel(at: Deployment) -> None:
    """A poll belongs to one channel; elsewhere its id is another poll."""
    poll, elsewhere = Poll(at, 3), at.elsewhere()
    read = poll.read(elsewhere)
    expect("count and vote in another channel", [0, None], [read["stats"]["count"], read.get("vote")])
    expect_members({"count": 1, "sum": 4}, poll.cast(4, elsewhere).json["stats"], "in another channel")
    expect("the vote in the first channel", 3, poll.read()["vote"])


@writes("spec: Resources")
def global_poll(at: Deployment) -> None:
    """All channels share a poll whose id begins with `global-`."""
    poll = Poll(at, prefix="global-")
    for caller in (at.viewer, at.stranger(channel=at.fresh("channel")), at.elsewhere()):
        poll.cast(3, caller)
    poll.counts(2, at.elsewhere())


@writes("A4")
def poll_in_all_channels(at: Deployment) -> None:
    """A token without a channel reads the votes of all channels, or of the one in `channel_id`."""
    poll, second = Poll(at), at.fresh("channel")
    poll.cast(3, at.stranger())
    poll.cast(4, at.stranger(channel=second))
    backend = at.extension_backend
    expect("the sum over all channels", 7, poll.read(backend)["stats"]["sum"])
    expect("the sum in one channel", 4, poll.read(backend, channel_id=second)["stats"]["sum"])
    expect("the values in the log of all channels", [3, 4], sorted(entry["value"] for entry in poll.log(backend)))


@writes("A4")
def foreign_channel(at: Deployment) -> None:
    """Viewers and broadcasters cannot reach another channel with `channel_id`."""
    poll, second = Poll(at), at.fresh("channel")
    poll.cast(4, at.stranger(channel=second))
    for caller in (at.viewer, at.broadcaster):
        poll.counts(0, caller, channel_id=second)
    at.viewer.post("vote", {"value": 3}, id=poll.id, channel_id=second)
    poll.delete(at.broadcaster, channel_id=second)
    poll.counts(1, at.caller("viewer", channel=second))


@writes("spec: Resources")
def case_of_poll_ids(at: Deployment) -> None:
    """Polls whose ids differ in case only are different polls."""
    poll = Poll(at, 3)
    poll.id = poll.id.upper()
    poll.counts(0)
