"""Polls of a channel, of all channels, and polls that channels share."""

from __future__ import annotations

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule
from extcli.conform.rules.votes import vote


@rule("spec: Resources", "A poll belongs to one channel; elsewhere its id is another poll.", "viewer", writes=True)
def poll_of_a_channel(at: Deployment) -> None:
    poll, elsewhere = at.fresh("poll"), at.caller("viewer", at.user, channel=at.fresh("channel"))
    vote(at, poll, (at.user, 3))
    read = elsewhere.get("vote", id=poll).data
    expect("count and vote in another channel", [0, None], [read["stats"]["count"], read.get("vote")])
    voted = elsewhere.post("vote", {"value": 4}, id=poll).data
    expect("count and sum in another channel", [1, 4], [voted["stats"]["count"], voted["stats"]["sum"]])
    expect("the vote in the first channel", 3, at.viewer.get("vote", id=poll).data.get("vote"))


@rule("spec: Resources", "All channels share a poll whose id begins with `global-`.", "viewer", writes=True)
def global_poll(at: Deployment) -> None:
    poll = at.fresh("poll", prefix="global-")
    for channel in (at.channel, at.fresh("channel")):
        voter = at.caller("viewer", at.fresh("user"), channel=channel)
        voter.post("vote", {"value": 3}, id=poll).check()
    read = at.caller("viewer", channel=at.fresh("channel")).get("vote", id=poll).data
    expect("the votes read in a third channel", 2, read["stats"]["count"])


@rule(
    "A4", "A broadcaster may not delete a `global-` poll; an admin may.", "viewer", "broadcaster", "admin", writes=True
)
def deletion_of_a_global_poll(at: Deployment) -> None:
    poll = at.fresh("poll", prefix="global-")
    vote(at, poll, (at.user, 3))
    expect("the status for a broadcaster", 403, at.broadcaster.delete("vote", id=poll).status)
    expect("the number of votes afterwards", 1, at.viewer.get("vote", id=poll).data["stats"]["count"])
    expect("the status for an admin", 200, at.admin.delete("vote", id=poll).status)
    expect("the number of votes afterwards", 0, at.viewer.get("vote", id=poll).data["stats"]["count"])


@rule(
    "A4",
    "An extension-level token reads the votes of all channels, or of the one in `channel_id`.",
    "viewer",
    "backend",
    writes=True,
)
def poll_in_all_channels(at: Deployment) -> None:
    poll, second = at.fresh("poll"), at.fresh("channel")
    for channel, value in ((at.channel, 3), (second, 4)):
        at.caller("viewer", at.fresh("user"), channel=channel).post("vote", {"value": value}, id=poll).check()
    backend = at.caller("backend", channel=None)
    expect("the sum over all channels", 7, backend.get("vote", id=poll).data["stats"]["sum"])
    expect("the sum in one channel", 4, backend.get("vote", id=poll, channel_id=second).data["stats"]["sum"])
    log = backend.get("vote_logs", id=poll).data["result"]
    expect("the values in the log of all channels", [3, 4], sorted(entry["value"] for entry in log))


@rule(
    "A4",
    "Viewers and broadcasters cannot reach another channel with `channel_id`.",
    "viewer",
    "broadcaster",
    writes=True,
)
def foreign_channel(at: Deployment) -> None:
    poll, second = at.fresh("poll"), at.fresh("channel")
    at.caller("viewer", at.fresh("user"), channel=second).post("vote", {"value": 4}, id=poll).check()
    for caller in (at.viewer, at.broadcaster):
        read = caller.get("vote", id=poll, channel_id=second).data
        expect(f"the votes that a {caller.role} of another channel reads", 0, read["stats"]["count"])
    at.broadcaster.delete("vote", id=poll, channel_id=second).check()
    read = at.caller("viewer", channel=second).get("vote", id=poll).data
    expect("the votes after DELETE by another channel's broadcaster", 1, read["stats"]["count"])


@rule("spec: Resources", "Polls whose ids differ in case only are different polls.", "viewer", writes=True)
def case_of_poll_ids(at: Deployment) -> None:
    poll = at.fresh("poll")
    vote(at, poll, (at.user, 3))
    expect("the votes of the id in upper case", 0, at.viewer.get("vote", id=poll.upper()).data["stats"]["count"])
