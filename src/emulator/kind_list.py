"""All kinds of records that features keep. Lists, waits, snapshots and the dashboard follow from them."""

from __future__ import annotations

from typing import Final

from emulator.features.accumulation import service as accumulation
from emulator.features.codes import service as codes
from emulator.features.pins import service as pins
from emulator.features.ranking import service as ranking
from emulator.features.stores import json_stores
from emulator.features.stores import service as stores
from emulator.features.transactions import service as transactions
from emulator.features.trivia import service as trivia
from emulator.features.votes import service as votes
from emulator.kinds import Kind

KINDS: Final[tuple[Kind, ...]] = (
    votes.POLLS,
    ranking.RANKINGS,
    accumulation.BUFFERS,
    stores.STORES_WRITTEN,
    json_stores.OBJECTS,
    codes.CODES,
    pins.PINS,
    pins.LINKS,
    trivia.TRIVIA,
    transactions.PURCHASES,
)
