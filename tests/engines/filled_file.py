"""A file that a service has filled by every feature."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import jwt

from emulator.core.settings import Settings
from support import trivia
from support.filled_service import PLAIN, filled_service
from support.service import CHANNEL, SECRET


@cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.db"
        _fill(path)
        return path.read_bytes()


def write_filled_file(target: Path) -> Path:
    """Write such a file to `target`, and return that."""
    target.write_bytes(_content())
    target.chmod(0o600)
    return target


def _fill(path: Path) -> None:
    with filled_service(*PLAIN, settings=Settings(data=f"sqlite://{path}")) as live:
        admin = live.client("admin", user="9001", channel=CHANNEL)
        trivia.create_question(admin)
        for user in ("5551", "5552", "5553"):
            viewer = live.client("viewer", user=user, channel=CHANNEL)
            assert trivia.vote(viewer) < 300
            product = {"sku": "hat", "displayName": "A hat", "cost": {"amount": 50, "type": "bits"}}
            data = {"transactionId": f"t{user}", "userId": user, "product": product}
            receipt = jwt.encode({"topic": "bits_transaction_receipt", "data": data}, SECRET)
            body = {"transactionReceipt": receipt, "displayName": "Ann"}
            viewer.post("bits/transactions", json=body).raise_for_status()
        config = {"userData": {"totalVotesAllowed": 9, "votesPerOption": 5, "distinctOptions": 3}}
        admin.post("vote_config?id=many", json={"config": config})
        for value in (1, 1, 2):
            live.client("viewer", user="5551", channel=CHANNEL).post("vote?id=many", json={"value": value, "count": 1})
