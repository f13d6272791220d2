"""Published clients come back after the closes that mean so."""

from __future__ import annotations

import json

from emulator.realtime import closes
from support.browser import run_script
from support.service import LiveServer

COMING_BACK = [
    closes.stopped(),
    closes.unread(limit=1),
    closes.late(seconds=1),
    closes.replaced(),
    closes.talkative(),
    closes.late_message(seconds=1),
]
"""Closes after which a client should connect again, now or later."""


def test_pusher_js_comes_back_after_a_call_closes_its_socket(live: LiveServer):
    assert {"{}": True} == run_script("reconnects.js", live.url, "{}")


def test_pusher_js_comes_back_after_each_close_of_the_service(live: LiveServer):
    bodies = [json.dumps({"code": code}) for code in sorted({each.close_code for each in COMING_BACK})]

    assert dict.fromkeys(bodies, True) == run_script("reconnects.js", live.url, *bodies)
