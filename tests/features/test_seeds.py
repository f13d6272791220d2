"""`PUT /_emulator/seed`: all of a seed, or nothing."""

from __future__ import annotations

from typing import Any

from emulator.engines.records import Record
from support.service import Client, LiveServer

PLACE = {"extcli": 1, "client_id": "my-extension", "channel": "777"}


def seed(**parts: Any) -> dict[str, Any]:
    return {**PLACE, **parts}


def records(live: LiveServer) -> list[Record]:
    """Everything that the service stores, except the key that signs its tokens."""

    async def read() -> list[Record]:
        return [each async for page in live.service.engine.dump(now=live.service.clock.now()) for each in page]

    return [each for each in live.run(read()) if each[0].kind != "signing_key"]


def apply(client: Client, **parts: Any) -> dict[str, Any]:
    answer = client.put("/_emulator/seed", json=seed(**parts))
    assert 200 == answer.status_code, answer.text
    return dict(answer.json())


def test_a_seeded_poll_has_its_definition_and_votes(stranger: Client, viewer, broadcaster):
    apply(stranger, polls=[{"id": "lunch", "prompt": "Where?", "options": ["A", "B"], "votes": {"U1": 0, "U2": 1}}])

    assert (2, 1) == (
        viewer().get("vote?id=lunch").json()["count"],
        viewer(user="U2").get("vote?id=lunch").json()["vote"],
    )
    assert "Where?" == viewer().get("vote_config?id=lunch").json()["prompt"]
