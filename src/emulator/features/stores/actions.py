"""State and config over the socket (ruling X5), the older names of both included."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.callers import Caller
from emulator.engines.base import Key
from emulator.errors import BadRequest, Forbidden
from emulator.features.stores.rules import CHANNEL_CONFIG, CHANNEL_STATE, EXTENSION_CONFIG, EXTENSION_STATE, Store
from emulator.features.stores.service import ALL_CONFIG, Stores
from emulator.realtime.action import Message, action, feed

_STATES = {"channel": CHANNEL_STATE, "extension": EXTENSION_STATE}
_CONFIGS = {"channel": CHANNEL_CONFIG, "extension": EXTENSION_CONFIG}
_COMBINED = "combined"


class StateBody(Struct):
    """`state` is the whole store, or a patch of it."""

    state_id: str = ""
    state: Any = UNSET


class ConfigBody(Struct):
    """`config` is the whole store, or a patch of it."""

    config_id: str = ""
    config: Any = UNSET


class TopicBody(Struct):
    """Which store to follow; clients name it in one of these members."""

    topic_id: str = ""
    config_id: str = ""
    state_id: str = ""


class StateReply(Struct):
    """The store as it now is."""

    state: msgspec.Raw
    ok: bool = True


class ConfigReply(Struct):
    """The store as it now is, and which it is."""

    config: msgspec.Raw | dict[str, msgspec.Raw]
    config_id: str
    ok: bool = True


@action("get", "state", aliases=(("get", "channel"), ("get", "extension")))
async def read_state(stores: Stores, message: Message) -> StateReply:
    """Read a state store."""
    store = _named(_STATES, message.body(StateBody).state_id or _older(message), "state_id")
    return StateReply(msgspec.Raw(await stores.read(store, message.caller, message.channel)))


@action("set", "state", aliases=(("set", "channel"), ("set", "extension")))
async def replace_state(stores: Stores, message: Message) -> StateReply:
    """Replace a state store."""
    body = message.body(StateBody)
    store = _writable(_named(_STATES, body.state_id or _older(message), "state_id"), message.caller)
    document = _given(body.state, "state")
    return StateReply(msgspec.Raw(await stores.replace(store, message.caller, message.channel, document)))


@action(
    "patch",
    "state",
    aliases=(
        ("update", "state"),
        ("patch", "channel"),
        ("update", "channel"),
        ("patch", "extension"),
        ("update", "extension"),
    ),
)
async def patch_state(stores: Stores, message: Message) -> StateReply:
    """Change a state store by a JSON Patch or a Merge Patch, all of it or nothing."""
    body = message.body(StateBody)
    store = _writable(_named(_STATES, body.state_id or _older(message), "state_id"), message.caller)
    patch = _given(body.state, "state")
    return StateReply(msgspec.Raw(await stores.patch_own(store, message.caller, message.channel, patch)))


@action("get", "config")
async def read_config(stores: Stores, message: Message) -> ConfigReply:
    """Read a config store, or both combined."""
    config_id = message.body(ConfigBody).config_id
    if config_id == _COMBINED:
        both = await stores.read_all(ALL_CONFIG, message.caller, message.channel)
        return ConfigReply({name: both[name] for name in ("channel", "extension")}, _COMBINED)
    store = _named(_CONFIGS, config_id, "config_id", _COMBINED)
    text = await stores.read(store, message.caller, message.channel)
    return ConfigReply(msgspec.Raw(text), config_id)


@action("set", "config")
async def replace_config(stores: Stores, message: Message) -> ConfigReply:
    """Replace the channel's config, which published clients name by leaving `config_id` out."""
    body = message.body(ConfigBody)
    store = _writable(_named(_CONFIGS, body.config_id or "channel", "config_id"), message.caller)
    text = await stores.replace(store, message.caller, message.channel, _given(body.config, "config"))
    return ConfigReply(msgspec.Raw(text), store.feed_id)


@action("patch", "config", aliases=(("update", "config"),))
async def patch_config(stores: Stores, message: Message) -> ConfigReply:
    """Change the channel's config by a JSON Patch or a Merge Patch, all of it or nothing."""
    body = message.body(ConfigBody)
    store = _writable(_named(_CONFIGS, body.config_id or "channel", "config_id"), message.caller)
    text = await stores.patch_own(store, message.caller, message.channel, _given(body.config, "config"))
    return ConfigReply(msgspec.Raw(text), store.feed_id)


@feed("state")
async def state_topic(stores: Stores, message: Message) -> tuple[Key, ...]:
    """A state store, named by `topic_id`."""
    body = message.body(TopicBody)
    store = _named(_STATES, body.topic_id or body.state_id, "topic_id")
    return (stores.topic(store, message.caller, message.channel),)


@feed("channel", "extension")
async def older_state_topic(stores: Stores, message: Message) -> tuple[Key, ...]:
    """A state store, named by the target."""
    return (stores.topic(_STATES[message.target], message.caller, message.channel),)


@feed("config")
async def config_topic(stores: Stores, message: Message) -> tuple[Key, ...]:
    """A config store, named by `config_id`."""
    body = message.body(TopicBody)
    store = _named(_CONFIGS, body.config_id or body.topic_id, "config_id")
    return (stores.topic(store, message.caller, message.channel),)


def _older(message: Message) -> str:
    """The store that an older client names by the target."""
    return message.target if message.target in _STATES else ""


def _named(stores: dict[str, Store], name: str, member: str, *others: str) -> Store:
    if name not in stores:
        raise BadRequest("Invalid body", f"data.{member}: {name[:40]!r} is none of {', '.join((*stores, *others))}")
    return stores[name]


def _writable(store: Store, caller: Caller) -> Store:
    if caller.role not in store.writers:
        needed = " or ".join(sorted(store.writers))
        raise Forbidden("role is not authorized", f"the role {caller.role} may not write {store.name}: {needed} may")
    return store


def _given(value: Any | UnsetType, member: str) -> Any:
    if value is UNSET:
        raise BadRequest("Invalid body", f"data.{member}: is missing")
    return value


actions: Final = (read_state, replace_state, patch_state, read_config, replace_config, patch_config)
feeds: Final = (state_topic, older_state_topic, config_topic)
