"""The environment of a command of `extcli exec`: templates, and variables of the caller."""

from __future__ import annotations

import pytest

from extcli.config.urls import reachable_url
from extcli.errors import UsageError
from extcli.running.exec_run import parse_variable

VALUES = {
    "url": "http://h:1",
    "ws_url": "ws://h:1/ws",
    "host": "h",
    "port": "1",
    "client_id": "c",
    "namespace": "default",
}


@pytest.mark.parametrize(
    ("argument", "name", "filled"),
    [
        ("API={url}/v1", "API", "http://h:1/v1"),
        ("A_1={ws_url}|{host}:{port}", "A_1", "ws://h:1/ws|h:1"),
        ("ID={client_id}/{namespace}", "ID", "c/default"),
        ("PLAIN=text", "PLAIN", "text"),
        ("EMPTY=", "EMPTY", ""),
        ("EQUALS=a=b", "EQUALS", "a=b"),
        ('JSON={{"url":"{url}"}}', "JSON", '{"url":"http://h:1"}'),
        ("NESTED={{{host}}}", "NESTED", "{h}"),
        ("NOT_AGAIN={{url}}", "NOT_AGAIN", "{url}"),
    ],
)
def test_a_template_is_filled(argument: str, name: str, filled: str):
    found, text = parse_variable(argument)

    assert (name, filled) == (found, text.format_map(VALUES))


@pytest.mark.parametrize("argument", ["API", "=x", "A B=x", "1A=x"])
def test_a_variable_without_a_name_is_refused_before_anything_starts(argument: str):
    with pytest.raises(UsageError, match="is not NAME=TEXT"):
        parse_variable(argument)


@pytest.mark.parametrize("text", ["{ulr}", "{}", "{url.__class__}", "{url!r}", "{url:{port}}", "{url", "url}"])
def test_braces_that_are_no_field_are_refused_before_anything_starts(text: str):
    with pytest.raises(UsageError, match="--env API: a field in braces must be one of url, ws_url") as refused:
        parse_variable(f"API={text}")

    assert "{{" in refused.value.fix


@pytest.mark.parametrize(
    ("url", "connected"),
    [
        ("http://127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://0.0.0.0:1", "http://127.0.0.1:1"),
        ("http://[::]:1", "http://[::1]:1"),
        ("http://[fe80::1]:1", "http://[fe80::1]:1"),
    ],
)
def test_a_client_connects_to_loopback_if_the_service_listens_on_all_addresses(url: str, connected: str):
    assert connected == reachable_url(url)
