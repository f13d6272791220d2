"""State and config over the socket, under their current and older names (ruling X5)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.callers import Caller, role_error
from emulator.engines.shapes import Key
from emulator.features.stores.rules import (
    ALL_CONFIG,
    CHANNEL_CONFIG,
    CHANNEL_STATE,
    EXTENSION_CONFIG,
    EXTENSION_STATE,
    Store,
)
from emulator.features.stores.service import Stores
from emulator.realtime.action import Message, action, feed
from emulator.wire.refusals import invalid_member, missing_member

_STATES = {"channel": CHANNEL_STATE, "extension": EXTENSION_STATE}
_CONFIGS = {"channel": CHANNEL_CONFIG, "extension": EXTENSION_CONFIG}
_COMBINED = "combined"


class StateBody(Struct):
    """A store's id, and its new content or a patch."""

    state_id: str = ""
    state: Any = UNSET


class ConfigBody(Struct):
    """A store's id, and its new content or a patch."""

    config_id: str = ""
    config: Any = UNSET


class TopicBody(Struct):
    """The id of the store to follow; clients differ in the member that holds it."""

    topic_id: str = ""
    config_id: str = ""
    state_id: str = ""


class StateReply(Struct):
    """The store's current content."""

    state: msgspec.Raw
    ok: bool = True


class ConfigReply(Struct):
    """The store's current content, and its id."""

    config: msgspec.Raw | dict[str, msgspec.Raw]
    config_id: str
    ok: bool = True


@action("get", "state", aliases=(("get", "channel"), ("get", "extension")))
async def read_state(stores: Stores, message: Message) -> StateReply:
    """Read the state store that `state_id` names: `channel` or `extension`."""
    store = _store(_STATES, message.body(StateBody).state_id or _target_id(message), "state_id")
    return StateReply(msgspec.Raw(await stores.read(store, message.caller, message.channel)))


@action("set", "state", aliases=(("set", "channel"), ("set", "extension")))
async def replace_state(stores: Stores, message: Message) -> StateReply:
    """Replace a state store."""
    body = message.body(StateBody)
    store = _writable(_store(_STATES, body.state_id or _target_id(message), "state_id"), message.caller)
    document = _require(body.state, "state")
    return StateReply(msgspec.Raw(await stores.replace(store, message.caller, message.channel, document)))


@action(
    "patch",
    "state",
    aliases=(("update", "state"), *((verb, store_id) for store_id in _STATES for verb in ("patch", "update"))),
)
async def patch_state(stores: Stores, message: Message) -> StateReply:
    """Apply a JSON Patch or a merge patch to a state store."""
    body = message.body(StateBody)
    store = _writable(_store(_STATES, body.state_id or _target_id(message), "state_id"), message.caller)
    patch = _require(body.state, "state")
    return StateReply(msgspec.Raw(await stores.patch_record(store, message.caller, message.channel, patch)))


@action("get", "config")
async def read_config(stores: Stores, message: Message) -> ConfigReply:
    """Read one config store, or both under `combined`."""
    config_id = message.body(ConfigBody).config_id
    if config_id == _COMBINED:
        both = await stores.read_all(ALL_CONFIG, message.caller, message.channel)
        return ConfigReply({name: both[name] for name in ("channel", "extension")}, _COMBINED)
    store = _store(_CONFIGS, config_id, "config_id", _COMBINED)
    text = await stores.read(store, message.caller, message.channel)
    return ConfigReply(msgspec.Raw(text), config_id)


@action("set", "config")
async def replace_config(stores: Stores, message: Message) -> ConfigReply:
    """Replace a config store. Without `config_id` it is the channel's config, as published clients expect."""
    body = message.body(ConfigBody)
    store = _writable(_store(_CONFIGS, body.config_id or "channel", "config_id"), message.caller)
    text = await stores.replace(store, message.caller, message.channel, _require(body.config, "config"))
    return ConfigReply(msgspec.Raw(text), store.feed_id)


@action("patch", "config", aliases=(("update", "config"),))
async def patch_config(stores: Stores, message: Message) -> ConfigReply:
    """Apply a JSON Patch or a merge patch to a config store. Without `config_id` it is the channel's config."""
    body = message.body(ConfigBody)
    store = _writable(_store(_CONFIGS, body.config_id or "channel", "config_id"), message.caller)
    text = await stores.patch_record(store, message.caller, message.channel, _require(body.config, "config"))
    return ConfigReply(msgspec.Raw(text), store.feed_id)


@feed("state")
async def state_topic(stores: Stores, message: Message) -> tuple[Key, ...]:
    """Follow the state store that `topic_id` names."""
    body = message.body(TopicBody)
    store = _store(_STATES, body.topic_id or body.state_id, "topic_id")
    return (stores.topic(store, message.caller, message.channel),)


@feed("channel", "extension")
async def older_state_topic(stores: Stores, message: Message) -> tuple[Key, ...]:
    """Follow the state store that the target names."""
    return (stores.topic(_STATES[message.target], message.caller, message.channel),)


@feed("config")
async def config_topic(stores: Stores, message: Message) -> tuple[Key, ...]:
    """Follow the config store that `config_id` names."""
    body = message.body(TopicBody)
    store = _store(_CONFIGS, body.config_id or body.topic_id, "config_id")
    return (stores.topic(store, message.caller, message.channel),)


def _target_id(message: Message) -> str:
    """Return the store id that an older client sends as the target."""
    return message.target if message.target in _STATES else ""


def _store(stores: dict[str, Store], store_id: str, member: str, *others: str) -> Store:
    if store_id not in stores:
        known = ", ".join((*stores, *others))
        raise invalid_member(f"data.{member}", store_id, f"one of {known}")
    return stores[store_id]


def _writable(store: Store, caller: Caller) -> Store:
    if caller.role not in store.writers:
        raise role_error(caller.role, store.writers)
    return store


def _require(value: Any | UnsetType, member: str) -> Any:
    if value is UNSET:
        raise missing_member(f"data.{member}")
    return value


actions: Final = (read_state, replace_state, patch_state, read_config, replace_config, patch_config)
feeds: Final = (state_topic, older_state_topic, config_topic)
