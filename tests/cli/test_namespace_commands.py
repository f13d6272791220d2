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


def test_a_new_namespace_is_printed_as_a_url(extcli, live):
    created = extcli("ns", "new", "green")

    assert f"{live.url}/_ns/green\n" == created.stdout
    assert {"namespace": "green", "url": f"{live.url}/_ns/green"} == extcli("ns", "new", "green", "-o", "json").json
    extcli("ns", "rm", "green")


def test_a_new_namespace_without_a_name_gets_a_free_one(extcli, live):
    url = extcli("ns", "new").stdout.strip()

    name = url.removeprefix(f"{live.url}/_ns/")
    assert [name] in extcli("ns", "list").rows
    extcli("ns", "rm", name)


def test_a_fork_has_the_votes_of_its_source(extcli, live, blue):
    fork = extcli("ns", "fork", "blue", "fork-of-blue").stdout.strip()

    assert extcli("vote", "get", "--url", blue).stdout == extcli("vote", "get", "--url", fork).stdout != ""
    extcli("ns", "rm", "fork-of-blue")


def test_a_fork_into_a_namespace_with_data_is_refused(extcli, blue):
    refused = extcli("ns", "fork", "default", "blue", exits=4)

    assert "extcli ns rm blue" in refused.stderr


@pytest.mark.parametrize("names", [("blue", "a.b"), ("a.b", "blue"), ("", "blue"), ("blue", "")])
def test_a_fork_needs_two_names(extcli, names):
    assert 2 == extcli("ns", "fork", *names).exit_code


def test_the_list_shows_records_sockets_age_and_last_use(extcli, blue):
    details = extcli("ns", "list", "-o", "json").json["details"]

    [found] = [each for each in details if each["name"] == "blue"]
    assert {"name", "records", "age", "idle", "sockets"} == set(found)
    table = extcli("ns", "list", "-o", "table").stdout
    assert all(word in table for word in ("blue", "records", "last use"))


@pytest.mark.parametrize("idle", ["soon", "10ms", "-1h"])
def test_an_unusable_namespace_idle_ends_serve_with_exit_code_2(extcli, idle):
    refused = extcli("serve", "--port", "0", "--namespace-idle", idle, exits=2)

    assert "--namespace-idle" in refused.stderr


def test_a_namespace_that_was_not_in_use_is_not_called_deleted(extcli):
    extcli("ns", "new", "green")

    notes = [extcli("ns", "rm", "green", "-o", "table").stderr for _ in range(2)]

    assert ["namespace green is deleted\n", "namespace green was not in use\n"] == notes
