"""Many lines for a service that limits how much it is sent: they go on at its pace, and each is done once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conftest import SECRET_TEXT, answer
from emulator.settings import Limits, Settings
from running import Live, run_live

SLOW = "the service limits how much may be sent at once; going on at its pace"


@pytest.fixture
def limited() -> Iterator[Live]:
    """Takes 250 requests of one client id at once, and then 50 a second."""
    with run_live(Settings(limits=Limits(client_rate=50))) as live:
        yield live


def test_every_line_is_accepted_in_the_end_and_the_delay_is_told_once(extcli, limited: Live):
    blobs = "".join(f'{{"number": {number}}}\n' for number in range(300))
    environment = {"EXTCLI_SECRET": SECRET_TEXT, "EXTCLI_CHANNEL": "777"}

    result = extcli("accumulate", "add", "all", "--from", "-", "--url", limited.url, input=blobs, env=environment)

    kept = limited.client("backend", channel="777").get("accumulate", params={"id": "all"}).json()["data"]
    assert 0 == result.exit_code, result.stderr
    assert 1 == result.stderr.count(SLOW)
    assert "300 sent, 300 accepted, 0 refused" in result.stderr
    assert list(range(300)) == sorted(each["data"]["number"] for each in kept)


@pytest.mark.parametrize("when", [{}, {"retry_after": "3600"}, {"retry_after": "Sat, 21 Nov 2026 20:00:00 GMT"}])
def test_a_line_is_refused_where_the_service_does_not_say_when_to_come_back_or_says_too_late(extcli, answering, when):
    too_many = answer("429 Too Many Requests", '{"reason": "Too many requests"}', **when)
    url = answering(too_many, answer("200 OK"))

    result = extcli(
        "vote", "cast", "--from", "-", "--url", url, input="U1,1\nU1,2\n", env={"EXTCLI_SECRET": SECRET_TEXT}
    )

    assert 4 == result.exit_code
    assert "line 1: 429 Too Many Requests: Too many requests" in result.stderr


def test_one_command_says_when_to_try_again(extcli):
    with run_live(Settings(limits=Limits(caller_rate=1))) as live:
        live.freeze()
        results = [extcli("vote", "get", "--url", live.url) for _ in range(6)]

    assert [0, 0, 0, 0, 0, 4] == [result.exit_code for result in results]
    assert "this caller asks too often" in results[-1].stderr
    assert "try again in 1 s" in results[-1].stderr
