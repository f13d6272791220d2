"""The environment of a command of `extcli exec`: templates, and variables of the caller."""

from __future__ import annotations

import pytest

from extcli.config.urls import reachable
from extcli.errors import UsageError
from extcli.running.exec_run import Template

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
    template = Template.parse(argument)

    assert (name, filled) == (template.name, template.fill(VALUES))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("API", "--env 'API' is not NAME=TEXT"),
        ("=x", "--env '=x' is not NAME=TEXT"),
        ("A B=x", "--env 'A B=x' is not NAME=TEXT"),
        ("1A=x", "--env '1A=x' is not NAME=TEXT"),
        ("API={ulr}", "--env API: unknown field {ulr}"),
        ("API={}", "--env API: unknown field {}"),
        ("API={url.__class__}", "--env API: unknown field {url.__class__}"),
        ("API={url!r}", "--env API: unknown field {url!r}"),
        ("API={url", "--env API: '{' is not part of a field"),
        ("API=url}", "--env API: '}' is not part of a field"),
    ],
)
def test_a_faulty_template_is_refused_before_anything_starts(argument: str, message: str):
    with pytest.raises(UsageError) as refused:
        Template.parse(argument)

    assert message == refused.value.what
    assert refused.value.fix


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
    assert connected == reachable(url)
