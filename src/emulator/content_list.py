"""The lists of `GET /_emulator/contents`: which things of the features they have, and how long each thing lives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Final

import msgspec

from emulator.clock import Clock
from emulator.config.environment import Environment
from emulator.control.contents.rules import PIN_KIND, Kind, Shape
from emulator.control.contents.service import Contents
from emulator.engines.engine import Engine
from emulator.features.accumulation import service as accumulation
from emulator.features.codes import rules as codes
from emulator.features.pins import rules as pins
from emulator.features.ranking import service as ranking
from emulator.features.stores import rules as stores
from emulator.features.votes import rules as votes
from emulator.features.votes.listing import listed_poll

_KINDS: Final[Mapping[str, Kind]] = {
    "polls": Kind(("poll",), Shape.BALLOTS, votes.LIFETIME, has_status=True),
    "rankings": Kind(("rank",), Shape.BALLOTS, ranking.LIFETIME),
    "buffers": Kind(("accumulate",), Shape.LOGS, accumulation.LIFETIME),
    "json_stores": Kind(("json_store",), Shape.DOCUMENTS, stores.JSON_STORE_LIFETIME),
    "codes": Kind(("codes",), Shape.POOLS, codes.LIFETIME),
    "pins": Kind((PIN_KIND,), Shape.DOCUMENTS, pins.PIN_LIFETIME),
}

_pin_of: Final = partial(msgspec.json.decode, type=pins.PinRecord)
_code_set_of: Final = partial(msgspec.json.decode, type=codes.CodeSet)


@cache
def _kinds_of(environment: Environment) -> Mapping[str, Kind]:
    """Return all lists by name; shared by the services of a process."""
    # The sandbox, which alone offers them, gives config the lifetime of state.
    written = Kind(tuple(store.name for store in stores.STORES), Shape.DOCUMENTS, environment.state_lifetime)
    return {**_KINDS, "stores": written}


def contents_of(engine: Engine, clock: Clock, environment: Environment) -> Contents:
    """Return the lists of a service."""
    return Contents(
        engine,
        clock,
        _kinds_of(environment),
        listed_poll,
        _pin_of,
        _code_set_of,
    )
