"""The pytest plugin in a run of pytest by itself, with a service that it starts: each fixture, and what reports show.

`tests/cli/test_node_module.py` calls every operation, and compares the results with the module for Node;
`tests/docs/test_docs.py` runs the examples of the guide.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

from support.plugin_runs import run_pytest
from support.service import RunningService

pytestmark = pytest.mark.slow

FIXTURES = """
    import subprocess, sys, os
    from base64 import b64decode
    from datetime import timedelta
    from pathlib import Path
    import pytest
    from extcli.errors import ServerError, UsageError
    from extcli.testing import Namespace, Refused

    def test_another_test_sees_no_vote_of_it(extcli: Namespace):
        assert extcli.viewer().poll("boss")["count"] == 0

    def test_a_time_may_be_a_timedelta(extcli: Namespace):
        extcli.clock.freeze("2030-01-01T00:00:00Z")
        extcli.clock.advance(timedelta(seconds=1))
        assert extcli.clock.now() == 1_893_456_001_000
        assert extcli.faults.add("POST /v1/e/vote", drop=True, lasts=timedelta(hours=1))["lasts"] == 3_600_000

    def test_a_caller_gets_a_new_token_if_the_clock_passed_the_old_one(extcli: Namespace):
        viewer = extcli.viewer()
        viewer.vote("boss", 1)
        extcli.clock.advance("8d")
        viewer.vote("boss", 1)

    def test_a_listener_says_what_did_not_come(extcli: Namespace):
        with pytest.raises(AssertionError, match="no event round-over within 0 s"):
            extcli.listen("round-over").next(timeout=0)

    def test_a_game_links_by_the_pin_of_the_broadcaster(extcli: Namespace):
        pin = extcli.broadcaster.pin()
        extcli.clock.advance("4m")
        assert extcli.game(pin).request("get", "state", {"state_id": "channel"})["state"] == {}
        extcli.clock.advance("2m")
        with pytest.raises(Refused):
            extcli.game(pin)

    def test_a_program_finds_the_namespace_in_its_environment(extcli: Namespace):
        environment = {**os.environ, **extcli.env}
        command = [sys.executable, "-m", "extcli", "vote", "cast", "boss", "--value", "1"]
        subprocess.run(command, env=environment, check=True)
        assert extcli.viewer().poll("boss")["count"] == 1

    def test_a_wrong_fault_names_the_argument(extcli: Namespace):
        with pytest.raises(UsageError, match="drop: a fault has one effect, and status is also given"):
            extcli.faults.add("POST /v1/e/vote", status=503, drop=True)
        with pytest.raises(UsageError, match="lasts: 'soon' is not a duration"):
            extcli.faults.add("POST /v1/e/vote", drop=True, lasts="soon")
        with pytest.raises(Refused, match="400 Bad Request"):
            extcli.faults.add("POST /v1/e/vot", drop=True)
        assert extcli.faults.list() == []

    def test_what_did_not_happen_is_shown_with_the_last_changes(extcli: Namespace):
        extcli.viewer("U7").vote("boss", 1)
        with pytest.raises(AssertionError) as failure:
            extcli.wait.poll("boss", values={1: "=2"}, timeout=0)
        first, wanted, found, _, change = str(failure.value).splitlines()
        assert first == "poll boss: not met"
        assert wanted == "  expected: value 1: exactly 2"
        assert found == "  got:      value 1: 1"
        assert "boss: vote 1 by U7 in channel 1001" in change

    def test_since_a_mark_only_later_changes_count(extcli: Namespace):
        extcli.broadcaster.broadcast("done", {})
        with pytest.raises(AssertionError):
            extcli.wait.broadcast("done", since=extcli.wait.mark(), timeout=0)

    async def test_operations_are_awaited_in_an_asynchronous_test(extcli_async):
        await extcli_async.viewer("U1").vote("boss", 1)
        events = await extcli_async.listen("done")
        await extcli_async.broadcaster.broadcast("done", None)
        assert (await events.next()).name == "done"
        game = await extcli_async.game()
        await game.subscribe("poll", "boss")
        await extcli_async.viewer("U2").vote("boss", 1)
        assert (await game.update())["data"]["count"] == 2
        await extcli_async.wait.poll("boss", count="=2")
        await extcli_async.faults.add("GET /v1/e/vote", status=503, times=1)
        with pytest.raises(ServerError):
            await extcli_async.viewer("U1").poll("boss")
        assert (await extcli_async.faults.list())[0]["left"] == 0
        await extcli_async.faults.clear()
        await extcli_async.clock.advance("8d")
        assert (await extcli_async.viewer("U1").poll("boss"))["count"] == 0

    @pytest.mark.extcli(clock="2030-01-01T00:00:00Z")
    def test_the_marker_sets_the_clock(extcli: Namespace):
        assert 0 <= extcli.clock.now() - 1_893_456_000_000 < 60_000

    @pytest.mark.extcli(seed="lunch.toml")
    def test_the_marker_applies_a_seed_next_to_the_test(extcli, extcli_factory):
        assert extcli.viewer().poll("lunch")["specific"][:2] == [1, 2]
        assert extcli_factory().viewer().poll("lunch")["count"] == 3

    def test_a_program_finds_a_secret_in_its_environment(extcli, extcli_async):
        file = Path(extcli.env["EXTCLI_SECRET_FILE"])
        assert (32, 0o600) == (len(b64decode(file.read_text())), file.stat().st_mode & 0o777)
        assert extcli.env == extcli_async.env
"""

FAILING = """
    import pytest

    def test_fails(extcli):
        extcli.viewer("U5").vote("boss", 1)
        assert False

    def test_is_refused(extcli):
        extcli.viewer("7").request("GET", "vote_logs")

    def test_gets_no_response(extcli):
        extcli.faults.add("POST /v1/e/vote", drop=True)
        extcli.viewer("7").vote("boss", 1)

    @pytest.mark.extcli(seed="faulty.toml")
    def test_has_a_faulty_seed(extcli): pass

    @pytest.mark.extcli("2030-01-01")
    def test_has_a_wrong_marker(extcli): pass
"""
SEED = """
extcli = 1
[[polls]]
id = "lunch"
options = ["Pizza", "Sushi"]
votes = { U1 = 0, U2 = 1, U3 = 1 }
"""
FILES = {
    "test": FIXTURES,
    "test_failing.py": FAILING,
    "lunch.toml": SEED,
    "faulty.toml": SEED.replace("U1 = 0", "U1 = true"),
}
NAMES = [line.split("def ")[1].split("(")[0] for line in FIXTURES.splitlines() if "def test_" in line]
ASYNC = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run all of them once, and return what pytest prints. The service of the failed tests runs until the end."""
    run = run_pytest(tmp_path_factory.mktemp("fixtures"), *ASYNC, "-vv", "--extcli-keep", files=FILES)
    (process,) = set(re.findall(r"stop it with kill (\d+)", run.output)) or [None]
    assert process, run.output
    yield run.output
    os.kill(int(process), signal.SIGTERM)


def test_each_fixture_works_as_its_test_says(report: str):
    assert [] == [name for name in NAMES if f"::{name} PASSED" not in report], report


def test_a_failed_test_shows_the_log_lines_of_its_namespace_only(report: str):
    shown = report.partition("- extcli log of test_fails-")[2].partition("- extcli kept")[0]

    assert "v1/e/vote: 200 in" in shown
    assert {"test_fails"} == set(re.findall(r"_ns/(\w+)-", shown))


def test_a_failed_test_shows_requests_that_were_refused_or_had_no_response(report: str):
    refused = report.partition("- extcli refused requests of test_is_refused-")[2]
    without = report.partition("- extcli refused requests of test_gets_no_response-")[2]

    assert re.search(r"403 GET /v1/e/vote_logs +viewer:7@1001 .*the role viewer may not do this; allowed", refused)
    assert "fault f1 gave no response; remove it with `extcli fault rm f1`" in without


def test_a_faulty_seed_and_a_wrong_marker_are_readable_errors(report: str):
    assert re.search(r"faulty\.toml:6:\d+: polls\[0\]\.votes\.U1", report), report
    assert "the marker extcli takes only seed=FILE and clock=TIME, as keywords" in report


def test_a_kept_namespace_keeps_its_service(report: str):
    kept = re.search(r"^(http\S+/test_fails-\S+) \(its service keeps running; ", report, re.MULTILINE)
    assert kept, report

    viewer = RunningService(kept[1]).client("viewer", user="2", channel="1001")
    assert 1 == viewer.get("vote?id=boss").json()["count"]
