"""Bodies in the journal: of requests that were refused before they were read, streamed ones, and cut ones."""

from __future__ import annotations

import pytest

from support.journal import entries_of
from support.service import Client, LiveServer


def test_a_refused_request_is_recorded_with_its_body(live: LiveServer, viewer):
    viewer().post("extension_state", json={"round": 4})

    (entry,) = entries_of(live, status="403")
    assert ('{"round":4}', 11, False) == (
        entry["request"]["text"],
        entry["request"]["size"],
        entry["request"]["is_cut"],
    )


def test_a_refusal_does_not_wait_for_a_body_that_does_not_come(live: LiveServer):
    head = "POST /v1/e/extension_state HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    with live.connect() as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 401")

    (entry,) = entries_of(live, status="401")
    assert ("", 100, True) == (entry["request"]["text"], entry["request"]["size"], entry["request"]["is_cut"])


@pytest.mark.parametrize("path", ["codes/mark_from_list"])
def test_a_streamed_body_has_its_size(live: LiveServer, admin: Client, path: str):
    body = b'{"prizes": [0], "prize_limits": [1], "users": ["5"]}'
    admin.post(path, content=body)

    entry = entries_of(live, path=path)[-1]
    assert (len(body), True) == (entry["request"]["size"], entry["request"]["is_cut"])
