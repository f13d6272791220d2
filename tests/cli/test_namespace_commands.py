"""`extcli ns`."""

from __future__ import annotations

import pytest


@pytest.fixture
def blue(extcli, live):
    """The URL of the namespace `blue`, which holds a vote."""
    url = f"{live.url}/_ns/blue"
    extcli("vote", "cast", "--value", "3", "--url", url)
    yield url
    extcli("ns", "rm", "blue")


def test_namespaces_in_use_are_listed(extcli, blue):
    assert ["blue"] in extcli("ns", "list").rows
    assert "blue" in extcli("ns", "list", "-o", "json").json["namespaces"]
    assert "blue" in extcli("ns", "list", "-o", "jsonl").jsonl


def test_a_deleted_namespace_has_no_data(extcli, blue):
    assert 0 == extcli("ns", "rm", "blue").exit_code

    assert ["blue"] not in extcli("ns", "list").rows
    assert "" == extcli("vote", "get", "--url", blue).stdout


def test_the_url_may_be_that_of_a_namespace(extcli, blue):
    assert ["blue"] in extcli("ns", "list", "--url", blue).rows
    assert 0 == extcli("ns", "rm", "blue", "--url", blue).exit_code
    assert ["blue"] not in extcli("ns", "list").rows


@pytest.mark.parametrize("name", ["", "a/v1", "a.b", "a" * 65])
def test_a_malformed_name_is_a_usage_error(extcli, name):
    assert 2 == extcli("ns", "rm", name).exit_code


def test_a_production_service_has_no_namespaces(extcli, production):
    for command in (("list",), ("rm", "blue")):
        assert 4 == extcli("ns", *command, env={"EXTCLI_URL": production.url}).exit_code
