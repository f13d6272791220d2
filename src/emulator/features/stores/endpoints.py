"""Stores over REST: GET, POST and PATCH of each store, `all_state`, `all_config` and `json_store`; and state and config
over the socket, under their current and older names (ruling X5).
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct

from emulator.core.callers import ANYONE, Role, role_error
from emulator.core.keys import Key
from emulator.core.wire.json_codec import stream_array
from emulator.core.wire.refusals import invalid_member, missing_member
from emulator.core.wire.url import SERVICE
from emulator.features.stores import rules
from emulator.features.stores.rules import Store
from emulator.features.stores.service import EXPECTED, Stores
from emulator.http.endpoint import CHANNEL, Call, Endpoint, Nothing, Parameter, endpoint
from emulator.realtime.action import Message, action, feed

_USER_IDS = Parameter("user_ids", "For admins: up to 1,000 user ids, separated by commas. Returns a store per id.")
_USER_ID = Parameter("userID", "For backends: the user whose store to return, in place of the caller's.")
_ADMIN_ONLY = frozenset({Role.ADMIN})

JsonObject = dict[str, Any]
Patch = list[JsonObject] | JsonObject


class AllState(msgspec.Struct):
    """The four state stores."""

    extension: JsonObject
    channel: JsonObject
    viewer: JsonObject
    extension_viewer: JsonObject


class AllConfig(msgspec.Struct):
    """The two config stores."""

    extension: JsonObject
    channel: JsonObject


def _endpoints_of(store: Store) -> tuple[Endpoint, ...]:
    """Return the endpoints of a store: GET, POST and PATCH."""

    async def read(stores: Stores, call: Call) -> object:
        if store.per_viewer and call.text("user_ids"):
            user_ids = [user_id for user_id in call.text("user_ids").split(",") if user_id]
            pages = stores.read_users(store, call.caller, call.channel, user_ids)
            return stream_array(b"{", pages, b"}")
        user_id = call.text("userID") if store.per_viewer and call.caller.role is Role.BACKEND else ""
        return await stores.read(store, call.caller, call.channel, user_id=user_id)

    async def replace(stores: Stores, call: Call) -> object:
        expected = call.query.get("expected")
        await stores.replace(store, call.caller, call.channel, call.any_body(), expected=expected)
        return Nothing()

    async def patch(stores: Stores, call: Call) -> object:
        await stores.patch(store, call.caller, call.channel, call.raw)
        return Nothing()

    for handler in (read, replace, patch):
        handler.__name__ += f"_{store.name}"
    read.__doc__ = f"Read {store.name}; a store never written is an empty object."
    replace.__doc__ = f"Replace {store.name} with a JSON object of at most 64 KiB."
    patch.__doc__ = (
        f"Change {store.name} with a JSON Patch (array) or a JSON Merge Patch (object).\n\n"
        "Atomic: all operations apply, or none. `add` creates missing parent objects."
    )
    path = SERVICE + store.name
    users = (_USER_IDS, _USER_ID) if store.per_viewer else ()
    limit = "user_map" if store.accepts_map else "body"
    reading = endpoint("GET", path, roles=store.readers, answer=JsonObject, query=(CHANNEL, *users))
    replacing = endpoint("POST", path, roles=store.writers, body=JsonObject, query=(CHANNEL, EXPECTED))
    patching = endpoint(
        "PATCH", path, roles=store.writers, body=Patch, query=(CHANNEL,), limit=limit, limit_roles=_ADMIN_ONLY
    )
    return reading(read), replacing(replace), patching(patch)


@endpoint("GET", "/v1/e/all_state", roles=ANYONE, answer=AllState, query=(CHANNEL,))
async def read_all_state(stores: Stores, call: Call) -> object:
    """Read the four state stores at one instant."""
    return await stores.read_all(rules.ALL_STATE, call.caller, call.channel)


@endpoint("GET", "/v1/e/all_config", roles=ANYONE, answer=AllConfig, query=(CHANNEL,))
async def read_all_config(stores: Stores, call: Call) -> object:
    """Read the two config stores at one instant."""
    return await stores.read_all(rules.ALL_CONFIG, call.caller, call.channel)


endpoints = (*(each for store in rules.STORES for each in _endpoints_of(store)), read_all_state, read_all_config)


_STATE_STORES = {"channel": rules.CHANNEL_STATE, "extension": rules.EXTENSION_STATE}

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
    store = _state_store(message, message.body(StateBody))
    return StateReply(await stores.read(store, message.caller, message.channel))


@action("set", "state", aliases=(("set", "channel"), ("set", "extension")))
async def replace_state(stores: Stores, message: Message) -> StateReply:
    """Replace a state store."""
    body = message.body(StateBody)
    store, document = _writable(message, _state_store(message, body), body.state, "state")
    return StateReply(await stores.replace(store, message.caller, message.channel, document))


_OLDER_PATCH_ACTIONS = tuple((verb, store_id) for store_id in _STATE_STORES for verb in ("patch", "update"))


@action("patch", "state", aliases=(("update", "state"), *_OLDER_PATCH_ACTIONS))
async def patch_state(stores: Stores, message: Message) -> StateReply:
    """Apply a JSON Patch or a merge patch to a state store."""
    body = message.body(StateBody)
    store, patch = _writable(message, _state_store(message, body), body.state, "state")
    return StateReply(await stores.patch_record(store, message.caller, message.channel, patch))


@action("get", "config")
async def read_config(stores: Stores, message: Message) -> ConfigReply:
    """Read one config store, or both under `combined`."""
    config_id = message.body(ConfigBody).config_id
    if config_id == _COMBINED:
        both = await stores.read_all(rules.ALL_CONFIG, message.caller, message.channel)
        return ConfigReply(both, _COMBINED)
    store = _named_store(rules.ALL_CONFIG, config_id, "config_id", _COMBINED)
    return ConfigReply(await stores.read(store, message.caller, message.channel), config_id)


@action("set", "config")
async def replace_config(stores: Stores, message: Message) -> ConfigReply:
    """Replace a config store. Without `config_id` it is the channel's config, as published clients expect."""
    body = message.body(ConfigBody)
    store, document = _writable(message, _config_store(body), body.config, "config")
    config = await stores.replace(store, message.caller, message.channel, document)
    return ConfigReply(config, store.feed_id)


@action("patch", "config", aliases=(("update", "config"),))
async def patch_config(stores: Stores, message: Message) -> ConfigReply:
    """Apply a JSON Patch or a merge patch to a config store. Without `config_id` it is the channel's config."""
    body = message.body(ConfigBody)
    store, patch = _writable(message, _config_store(body), body.config, "config")
    config = await stores.patch_record(store, message.caller, message.channel, patch)
    return ConfigReply(config, store.feed_id)


@feed("state", "channel", "extension")
async def state_topic(stores: Stores, message: Message) -> tuple[Key, ...]:
    """Follow the state store that `topic_id` names, or the target itself."""
    store = _STATE_STORES.get(message.target)
    if store is None:
        body = message.body(TopicBody)
        store = _named_store(_STATE_STORES, body.topic_id or body.state_id, "topic_id")
    return (stores.key(store, message.caller, message.channel),)


@feed("config")
async def config_topic(stores: Stores, message: Message) -> tuple[Key, ...]:
    """Follow the config store that `config_id` names."""
    body = message.body(TopicBody)
    store = _named_store(rules.ALL_CONFIG, body.config_id or body.topic_id, "config_id")
    return (stores.key(store, message.caller, message.channel),)


def _named_store(stores: dict[str, Store], store_id: str, member: str, *others: str) -> Store:
    if store_id not in stores:
        raise invalid_member(f"data.{member}", store_id, f"one of {', '.join((*stores, *others))}")
    return stores[store_id]


def _state_store(message: Message, body: StateBody) -> Store:
    """Return the state store that the body names, or the target of an older client."""
    target = message.target if message.target in _STATE_STORES else ""
    return _named_store(_STATE_STORES, body.state_id or target, "state_id")


def _config_store(body: ConfigBody) -> Store:
    return _named_store(rules.ALL_CONFIG, body.config_id or "channel", "config_id")


def _writable(message: Message, store: Store, content: Any, member: str) -> tuple[Store, Any]:
    """Return a store that the caller may write, and the content of the request's `member`."""
    if message.caller.role not in store.writers:
        raise role_error(message.caller, store.writers)
    if content is UNSET:
        raise missing_member(f"data.{member}")
    return store, content


actions = (read_state, replace_state, patch_state, read_config, replace_config, patch_config)
feeds = (state_topic, config_topic)
