"""`extcli simulate` against production."""

from __future__ import annotations

import pytest

from emulator.config.settings import Limits, Settings
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import live_server
from support.simulations import MIX, crowd_of, votes

pytestmark = pytest.mark.long


@pytest.fixture
def crowd(extcli):
    return crowd_of(extcli)


@pytest.mark.usefixtures("production_profile")
class TestProduction:
    def test_a_crowd_needs_a_yes(self, crowd, extcli):
        refused = crowd(exits=2)

        assert "poll lunch gets 50 votes of users who do not exist" in refused.stderr
        assert 0 == votes(extcli)["count"]
        assert 0 == crowd("--yes").exit_code
        assert 50 == votes(extcli)["count"]

    def test_the_default_rate_is_lower(self, extcli):
        ran = extcli("simulate", "crowd", "--viewers", "20", *MIX, "--yes", "-o", "json", exits=0)

        assert ran.json["figures"]["rate"] < 110

    def test_a_viewer_stays_below_the_rate_of_a_caller(self, crowd):
        refused = crowd("--yes", "--votes", "5000", "--rate", "5000/s", exits=2)

        assert "each viewer would send 100 requests per second" in refused.stderr

    @pytest.mark.ruling("B7")
    @pytest.mark.parametrize("kind", ["page", "game"])
    def test_listeners_bring_a_token(self, extcli, kind):
        ran = extcli("simulate", "socket", "--kind", kind, "--connections", "3", "--broadcasts", "2", "--yes")

        assert (0, "") == (ran.exit_code, ran.stderr if ran.exit_code else "")


def test_production_waits_as_retry_after_says(extcli, monkeypatch, environment):
    """The result is read when the rate allows it: at one request per second, that is a second after the last vote."""
    with live_server(Settings(limits=Limits(client_rate=1))) as live:
        monkeypatch.setenv("EXTCLI_SECRET", SECRET_BASE64)
        monkeypatch.setenv("EXTCLI_URL", live.url)
        write_profiles(live={"url": live.url, "production": True})
        ran = extcli("simulate", "crowd", "--viewers", "7", *MIX, "--yes", "-o", "json", "--rate", "300/s")

    assert 0 == ran.exit_code
    assert 0 < ran.json["figures"]["repeated"] == ran.json["figures"]["refused"]
    assert ran.json["latencies"]["max"] >= 1000
