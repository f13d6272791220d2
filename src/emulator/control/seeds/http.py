"""Seeds over REST: `PUT /_emulator/seed`."""

from __future__ import annotations

from typing import Final

from emulator.control.seeds.service import Seeded, Seeds
from emulator.http.endpoint import Audience, Call, endpoint


def _seed() -> object:
    from emulator.control.seeds.document import Seed

    return Seed


@endpoint(
    "PUT",
    "/_emulator/seed",
    audience=Audience.CONTROL,
    body=_seed,
    answer=Seeded,
    limit="seed",
    streamed=True,
    secrets=frozenset({"*"}),
)
async def apply_seed(seeds: Seeds, call: Call) -> Seeded:
    """Put the data of a seed into the service: all of it, or nothing.

    Everything under the same ids is replaced; everything else stays. An error names the field, such as
    `polls[0].votes.U1`, and lists up to 20 problems. `extcli seed apply` sends files in TOML and reads the codes that
    they name.
    """
    return await seeds.apply(b"".join([chunk async for chunk in call.chunks]))


endpoints: Final = (apply_seed,)
