"""`extcli conform` reports values as JSON, never as Python writes them."""

from __future__ import annotations

import re

import pytest

from cli.test_conform_command import Changed
from support.program import SECRET_BASE64
from support.service import live_server

pytestmark = pytest.mark.slow
PYTHON = re.compile(r"\b(None|True|False|NoneType)\b|<class|object has no|\bb'|[\[{(]'")
"""What Python would print, and JSON does not."""


@pytest.mark.parametrize("status", [200, 418])
def test_a_finding_shows_json_as_the_service_sends_it(extcli, status: int):
    with live_server(wrap=lambda app: Changed(app, "/v1/e/", status=status)) as live:
        run = ("conform", "--writes", "--url", live.url, "-o", "json")
        result = extcli(*run, env={"EXTCLI_SECRET": SECRET_BASE64})

    found = [each for each in result.json["rules"] if each["status"] == "fail"]
    texts = [(each["rule"], each[name]) for each in found for name in ("what", "expected", "seen")]
    assert 20 < len(found)
    assert [] == [each for each in texts if PYTHON.search(each[1])]
