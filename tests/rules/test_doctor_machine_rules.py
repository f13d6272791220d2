"""`extcli doctor`: what the ports, names and proxies of this machine mean."""

from __future__ import annotations

import pytest

from extcli.doctor import machine as rules
from extcli.doctor.machine import Listener
from extcli.doctor.service import Status

OK, NOTE, FAIL, SKIPPED = Status.OK, Status.NOTE, Status.FAIL, Status.SKIPPED
NGINX = Listener("0.0.0.0", 12, "nginx")
WORKERS = [Listener("0.0.0.0", pid, "extcli") for pid in range(20, 25)]


@pytest.mark.parametrize(
    ("listeners", "is_ours", "answers", "status", "words"),
    [
        ([], False, False, OK, "is free"),
        ([], True, True, OK, "forwarded"),
        ([NGINX], True, True, OK, "the service's: nginx (pid 12) on 0.0.0.0"),
        ([NGINX, Listener("::1", 13, "node")], True, True, NOTE, "several programs"),
        (WORKERS, True, True, OK, "extcli (pid 22) on 0.0.0.0 and more"),
        ([NGINX], False, True, FAIL, "held by nginx (pid 12) on 0.0.0.0"),
        ([NGINX], False, False, FAIL, "held by nginx (pid 12) on 0.0.0.0"),
        ([Listener("::1", None)], False, False, FAIL, "a program of another user on ::1"),
        (None, False, True, SKIPPED, "does not name it"),
    ],
)
def test_a_port_held_by_another_program_fails_and_names_it(listeners, is_ours, answers, status, words):
    found = rules.port(8282, listeners, is_ours=is_ours, answers=answers)

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
        assert status is rules.localhost("localhost", 8282, addresses, accepting, in_url=uses_name).status


PROXY = {"HTTP_PROXY": "http://me:swordfish@proxy:3128"}


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({}, OK),
        ({"HTTP_PROXY": ""}, OK),
        ({"https_proxy": "http://proxy"}, OK),  # for https only
        (PROXY, FAIL),
        ({"all_proxy": "socks5://proxy"}, FAIL),
        ({**PROXY, "NO_PROXY": "localhost,127.0.0.1"}, OK),
        ({**PROXY, "no_proxy": "localhost 127.0.0.1:8282"}, OK),
        ({**PROXY, "NO_PROXY": "*"}, OK),
        ({**PROXY, "NO_PROXY": "127.0.0.1"}, FAIL),
        ({**PROXY, "NO_PROXY": "example.com"}, FAIL),
        ({**PROXY, "no_proxy": "example.com", "NO_PROXY": "*"}, FAIL),  # the lower case wins
    ],
)
def test_a_proxy_that_catches_loopback_fails(variables, status):
    found = rules.proxy("http", "127.0.0.1", variables, is_loopback=True)

    assert (status, False) == (found.status, "swordfish" in f"{found.meaning}{found.action}")


@pytest.mark.parametrize(("exceptions", "status"), [("", NOTE), ("example.com", OK), (".example.com", OK)])
def test_a_proxy_on_the_way_to_another_machine_is_a_note(exceptions, status):
    variables = {"https_proxy": "http://proxy", "no_proxy": exceptions}

    assert status is rules.proxy("https", "api.example.com", variables, is_loopback=False).status
