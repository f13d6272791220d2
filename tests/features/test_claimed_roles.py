"""A refusal names the claim of a token whose role is unknown, and that it counts as viewer (ruling A2)."""

from __future__ import annotations

from typing import Any

import jwt
import pytest

from support.explanations import id_of, why
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer
from support.socket_client import SocketClient


def header(claims: dict[str, Any], exp: int | None = 2 * 10**9) -> str:
    times = {} if exp is None else {"exp": exp}
    return f"{CLIENT_ID} {jwt.encode({'channel_id': CHANNEL, **times, **claims}, SECRET, 'HS256')}"


@pytest.mark.parametrize(
    ("claims", "note"),
    [
        ({"role": "external"}, '"external"'),
        ({"role": "\ud800"}, '"\\ud800"'),
        ({"role": "x" * 500}, "x" * 39),
        ({"role": ["backend"]}, '["backend"]'),
        ({"role": None}, "null"),
        ({"roles": ["backend"]}, "the token has no role"),
    ],
)
def test_a_refused_call_names_the_role_of_the_token(live: LiveServer, stranger: Client, claims, note: str):
    answer = stranger.delete("/v1/e/vote", headers={"Authorization": header(claims)})

    held = why(live, id_of(answer))["held"]
    assert (403, True, True) == (answer.status_code, note in answer.json()["info"], note in held)


@pytest.mark.parametrize(
    ("path", "exp", "status"), [("vote?id=global-x", 2 * 10**9, 403), ("rank", 2 * 10**9, 403), ("vote", None, 401)]
)
def test_other_refusals_of_a_role_name_it_too(production: LiveServer, path: str, exp: int | None, status: int):
    with Client(base_url=production.url) as client:
        answer = client.delete(f"/v1/e/{path}", headers={"Authorization": header({"role": "Admin"}, exp)})

    assert (status, True) == (answer.status_code, 'role "Admin" counts as viewer' in answer.json()["info"])


def test_a_refused_frame_names_the_role_of_the_token(live: LiveServer):
    with SocketClient(live) as game:
        game.data("authenticate", data={"jwt": header({"role": "external"}).split()[1], "client_id": CLIENT_ID})
        error = game.error("set", "config", {"config_id": "channel", "value": {}})

    assert (403, True) == (error["status"], 'role "external" counts as viewer' in error["detail"])
