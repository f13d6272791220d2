"""`extcli doctor`: what the clocks of two machines, and the ports, names and proxies of this one mean."""

from __future__ import annotations

import pytest

from extcli.doctor import checks as rules
from extcli.doctor.checks import PortHolder
from extcli.doctor.service import Probe, ServiceKind, Status

OK, NOTE, FAIL, SKIPPED = Status.OK, Status.NOTE, Status.FAIL, Status.SKIPPED
NGINX = PortHolder("0.0.0.0", 12, "nginx")
WORKERS = [PortHolder("0.0.0.0", pid, "extcli") for pid in range(20, 25)]


@pytest.mark.parametrize(
    ("listeners", "kind", "status", "words"),
    [
        ([], ServiceKind.NOTHING, OK, "is free"),
        ([], ServiceKind.EMULATOR, OK, "forwarded"),
        ([NGINX], ServiceKind.EMULATOR, OK, "belongs to the service: nginx (pid 12) on 0.0.0.0"),
        (WORKERS, ServiceKind.DEPLOYMENT, OK, "extcli (pid 22) on 0.0.0.0 and more"),
        ([NGINX], ServiceKind.OTHER, FAIL, "held by nginx (pid 12) on 0.0.0.0"),
        ([NGINX], ServiceKind.NOTHING, FAIL, "held by nginx (pid 12) on 0.0.0.0"),
        ([PortHolder("::1", None)], ServiceKind.NOTHING, FAIL, "a program of another user on ::1"),
        (None, ServiceKind.OTHER, SKIPPED, "the system hides which"),
    ],
)
def test_a_port_held_by_another_program_fails_and_names_it(listeners, kind, status, words):
    found = rules.judge_port(8282, listeners, kind)

    assert (status, True) == (found.status, words in found.meaning)


V4, V6 = "127.0.0.1", "::1"


@pytest.mark.parametrize(
    ("addresses", "accepting", "in_url", "otherwise"),
    [
        ([V4], {V4}, OK, OK),
        ([V6, V4], {V4, V6}, OK, OK),
        ([V4, V6], {V4}, OK, OK),
        ([V6, V4], {V4}, NOTE, NOTE),
        ([V6], {V4}, FAIL, NOTE),
        ([V4], {V6}, FAIL, NOTE),
        ([], {V4}, FAIL, NOTE),
        ([V6], set(), SKIPPED, SKIPPED),
    ],
)
def test_localhost_leads_to_the_service(addresses, accepting, in_url, otherwise):
    for uses_name, status in ((True, in_url), (False, otherwise)):
        assert status is rules.judge_localhost("localhost", 8282, addresses, accepting, in_url=uses_name).status


PROXY = {"HTTP_PROXY": "http://me:swordfish@proxy:3128"}


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("url", "variables", "status"),
    [
        ("http://127.0.0.1", {}, OK),
        ("http://127.0.0.1", {"HTTP_PROXY": ""}, OK),
        ("http://127.0.0.1", {"https_proxy": "http://proxy"}, OK),  # for https only
        ("http://127.0.0.1", PROXY, FAIL),
        ("http://127.0.0.1", {"all_proxy": "socks5://proxy"}, FAIL),
        ("http://127.0.0.1", {**PROXY, "NO_PROXY": "localhost,127.0.0.1"}, OK),
        ("http://127.0.0.1", {**PROXY, "no_proxy": "localhost, 127.0.0.1:8282"}, OK),
        ("http://127.0.0.1", {**PROXY, "NO_PROXY": "*"}, OK),
        ("http://127.0.0.1", {**PROXY, "NO_PROXY": "127.0.0.1"}, FAIL),
        ("http://127.0.0.1", {**PROXY, "NO_PROXY": "example.com"}, FAIL),
        ("http://127.0.0.1", {**PROXY, "no_proxy": "example.com", "NO_PROXY": "*"}, FAIL),  # the lower case wins
        ("https://api.example.com", {"https_proxy": "http://proxy"}, NOTE),
        ("https://api.example.com", {"https_proxy": "http://proxy", "no_proxy": ".example.com"}, OK),
    ],
)
def test_a_proxy_that_catches_loopback_fails_and_one_on_the_way_elsewhere_is_a_note(
    monkeypatch: pytest.MonkeyPatch, url: str, variables: dict[str, str], status: Status
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    scheme, _, host = url.partition("://")
    found = rules.judge_proxy(scheme, host, 8282)

    assert (status, False) == (found.status, "swordfish" in f"{found.meaning}{found.action}")


NOW = 1_800_000_000_000
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("date", "before", "after", "status"),
    [
        (NOW, NOW, NOW + 20, OK),
        (NOW, NOW + 900, NOW + 950, OK),  # `Date` is cut to seconds
        (NOW + 2_000, NOW, NOW, OK),
        (NOW + 3_000, NOW, NOW, FAIL),
        (NOW - 3_000, NOW, NOW, OK),  # the end of that second is 2 s ago
        (NOW - 4_000, NOW, NOW, FAIL),
        (NOW + 9_000, NOW, NOW + 9_000, OK),  # a response that took nine seconds
        (None, NOW, NOW, SKIPPED),
    ],
)
def test_a_clock_skew_above_two_seconds_fails(date, before, after, status):
    assert status == rules.judge_clock(Probe(ServiceKind.EMULATOR, date=date, before=before, after=after)).status


def test_a_moved_clock_does_not_hide_a_skew():
    moved = Probe(ServiceKind.EMULATOR, date=NOW + HOUR, before=NOW, after=NOW, clock={"offset": 5, "frozen": False})

    assert FAIL is rules.judge_clock(moved).status
