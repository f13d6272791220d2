"""A duration of the control API in another form than milliseconds is refused with its unit, which OpenAPI also has."""

from __future__ import annotations

import pytest

from support.explanations import id_of, why
from support.service import Client, LiveServer

FAULT = {"match": "*", "effect": "delay"}


@pytest.mark.parametrize("value", ["8d", 1.5, True])
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [("clock", {}, "advance"), ("faults", FAULT, "delay"), ("faults", FAULT, "lasts")],
)
def test_a_duration_that_is_no_integer_is_refused_with_its_unit(
    live: LiveServer, stranger: Client, path: str, body: dict[str, object], field: str, value: object
):
    answer = stranger.post(f"/_emulator/{path}", json={**body, field: value})

    info = answer.json()["info"]
    assert (400, True) == (answer.status_code, info.startswith(f"{field}: expected an integer or null, got "))
    assert info.endswith("; it is in ms")
    assert why(live, id_of(answer))["needed"].endswith(" in ms")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        *(("/_emulator/clok", "/_emulator/clock"), ("/_emulator/seeds", "/_emulator/seed"), ("/v1/vote", "/v1/e/vote")),
        *(("/emulator/clock", "/_emulator/clock"), ("/v1/e/chanel_state", "/v1/e/channel_state")),
        *((each, "") for each in ("/_emulator/nope", "/_emulator/time", "/v1/e/node", "/x", f"/v1/e/vote{'x' * 100}")),
    ],
)
def test_a_misspelt_path_has_a_suggestion_and_one_unlike_all_others_none(stranger: Client, path: str, meant: str):
    info = stranger.get(path).json()["info"]

    assert (f"did you mean {meant}?" in info) if meant else "did you mean" not in info
