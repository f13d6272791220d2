"""`extcli simulate crowd`, against a running service."""

from __future__ import annotations

MIX = ("--mix", "0:60,1:30,2:10")


def crowd(extcli, *args: str, poll: str = "lunch", viewers: int = 50):
    return extcli("simulate", "crowd", "--viewers", str(viewers), "--poll", poll, *MIX, "--rate", "1000/s", *args)


def test_a_crowd_leaves_exactly_the_result_that_it_announced(extcli):
    ran = crowd(extcli, "--change-mind", "10%", "-o", "json")

    assert 0 == ran.exit_code
    assert "will: 30 votes for 0, 15 for 1, 5 for 2; 50 voters, mean 0.5; 55 votes are sent\n" == ran.stderr
    assert "as planned" == ran.json["verdict"]
    stats = extcli("vote", "get", "lunch", "-o", "json").json["stats"]
    assert [30, 15, 5] == stats["specific"][:3]
    assert (50, 0.5) == (stats["count"], stats["mean"])
