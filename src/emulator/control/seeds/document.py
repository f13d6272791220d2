"""The document of a seed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Instant = Annotated[datetime, Meta(tz=True)]
StoreName = Literal[
    "extension_state",
    "channel_state",
    "viewer_state",
    "extension_viewer_state",
    "extension_hidden_state",
    "extension_config",
    "channel_config",
]


class _Strict(Struct, forbid_unknown_fields=True, kw_only=True):
    """A table of a seed. Unknown fields are refused."""


class Placed(_Strict, kw_only=True):
    """An entry with a client id and a channel. By default it has the client id and channel at the top of the seed."""

    client_id: str = ""
    channel: str = ""


class SeedPoll(Placed, kw_only=True):
    """A poll. It has a definition if it has any field of one."""

    id: str
    prompt: str | UnsetType = UNSET
    options: list[str] | UnsetType = UNSET
    user_data: Any | UnsetType = UNSET
    starts_at: Instant | UnsetType = UNSET
    ends_at: Instant | UnsetType = UNSET
    user_id_voting: bool | UnsetType = UNSET
    distinct_options_per_user: int | UnsetType = UNSET
    total_votes_per_user: int | UnsetType = UNSET
    votes_per_option: int | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    votes: dict[str, int | list[int]] = {}
    """By user, in the order of voting."""


class SeedRanking(Placed, kw_only=True):
    """A ranking."""

    id: str
    answers: dict[str, str]
    """By user, in the order of answering."""


class SeedEntry(_Strict, kw_only=True):
    """One entry of a buffer."""

    user: str
    data: msgspec.Raw


class SeedBuffer(Placed, kw_only=True):
    """A buffer, oldest entry first."""

    id: str
    entries: list[SeedEntry]


class SeedStore(Placed, kw_only=True):
    """A state or config store."""

    store: StoreName
    data: msgspec.Raw
    user: str = ""
    """Of `viewer_state` and `extension_viewer_state`."""


class SeedJsonStore(Placed, kw_only=True):
    """A JSON store."""

    id: str
    data: msgspec.Raw


class SeedCodes(_Strict, kw_only=True):
    """A set of codes."""

    index: Annotated[int, Meta(ge=0, le=9)]
    name: str
    codes: list[str]
    marked: dict[str, Annotated[int, Meta(ge=1, le=1_000)]] = {}
    """How many codes each user may redeem."""
    client_id: str = ""


class SeedLink(Placed, kw_only=True):
    """A channel that a game is linked to."""


class SeedClock(_Strict, kw_only=True):
    """The service's clock."""

    at: Instant | None = None
    frozen: bool = False


class Seed(_Strict, kw_only=True):
    """The data with which a test begins. `extcli` is the version of the format."""

    extcli: int
    client_id: str
    channel: str
    clock: SeedClock | None = None
    polls: list[SeedPoll] = []
    rankings: list[SeedRanking] = []
    buffers: list[SeedBuffer] = []
    stores: list[SeedStore] = []
    json_stores: list[SeedJsonStore] = []
    codes: list[SeedCodes] = []
    links: list[SeedLink] = []
    faults: list[dict[str, Any]] = []
    """As `POST /_emulator/faults` takes them."""
