"""`extcli expect parity`: no request that production would have answered differently."""

from __future__ import annotations

from support.service import CHANNEL, LiveServer, real_seconds


def vote(live: LiveServer, number: int, **claims: object) -> None:
    client = live.client("viewer", user="1", channel=CHANNEL, **claims)
    client.get("vote", headers={"X-Request-Id": f"vote-{number}"}).raise_for_status()


def test_without_a_difference_nothing_is_printed(extcli, live):
    vote(live, 1, exp=real_seconds() + 60)  # its signature is unknown

    result = extcli("expect", "parity")

    assert (0, "", "") == (result.exit_code, result.stdout, result.stderr)


def test_a_difference_is_listed_with_what_it_means(extcli, live):
    for number in (1, 2):
        vote(live, number)

    result = extcli("expect", "parity")

    assert (7, [["exp", "refuse", "2", "vote-1", "vote-2"]]) == (result.exit_code, result.rows)
    assert [
        "extcli: production would have acted differently",
        "  exp: would refuse 2 requests",
        "    the token has no exp in seconds",
        "    first vote-1 GET /v1/e/vote",
        "    latest vote-2 GET /v1/e/vote",
    ] == result.stderr.splitlines()


def test_only_the_named_rules_count(extcli, live):
    vote(live, 1)
    vote(live, 2, exp=real_seconds() + 60)

    assert 0 == extcli("expect", "parity", "stage,rate").exit_code
    assert ["signature"] == [row[0] for row in extcli("expect", "parity", "unknown").rows]
    assert ["exp"] == [each["rule"] for each in extcli("expect", "parity", "exp", "-o", "json").json["rules"]]


def test_a_wrong_rule_is_refused(extcli, live):
    result = extcli("expect", "parity", "stages", exits=2)

    assert "there is no rule 'stages'" in result.stderr


def test_a_reset_forgets_the_differences_but_those_of_the_service(extcli, live):
    vote(live, 1)
    live.reset()

    assert 0 == extcli("expect", "parity").exit_code
    assert 7 == extcli("expect", "parity", "--service").exit_code


def test_a_service_in_production_gives_no_verdicts(extcli, production):
    result = extcli("expect", "parity", "--url", production.url)

    assert (2, True) == (result.exit_code, "gives no verdicts" in result.stderr)
