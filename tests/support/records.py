"""Everything that a service stores."""

from __future__ import annotations

from emulator.storage.records import Record
from support.service import LiveServer


def records(live: LiveServer) -> list[Record]:
    """The records of the plain paths, except the key that signs the service's tokens."""

    async def read() -> list[Record]:
        return [each async for page in live.service.engine.dump(now=live.service.clock.now()) for each in page]

    return [each for each in live.run(read()) if each[0].kind != "signing_key"]
