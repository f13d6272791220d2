"""Stores over REST: GET, POST and PATCH of each store, `all_state`, `all_config` and `json_store`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from emulator.callers import ANYONE, CHANNEL_WRITERS, Role
from emulator.features.stores.json_stores import JsonStores
from emulator.features.stores.rules import ALL_CONFIG, ALL_STATE, STORES, Store
from emulator.features.stores.service import Stores
from emulator.http.endpoint import CHANNEL, Call, Endpoint, Nothing, Parameter, Streamed, checked_id, endpoint, id_of
from emulator.wire.json_codec import stream_array
from emulator.wire.url import SERVICE

_USERS = Parameter("user_ids", "Up to 1,000 user ids, separated by commas. Returns a map by id. Role admin.")
_USER = Parameter("userID", "A user whose record to return instead of the caller's. Role backend.")
_STORE_ID = id_of("store")
_EXPECTED = Parameter("expected", "The SHA-256 of the text that was read, in hex: 409 if the store has changed since.")

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


async def _read(store: Store, stores: Stores, call: Call) -> object:
    if store.per_viewer and call.text("user_ids"):
        user_ids = [user_id for user_id in call.text("user_ids").split(",") if user_id]
        pages = stores.read_users(store, call.caller, call.channel, user_ids)
        return Streamed(stream_array(b"{", pages, b"}"))
    user_id = call.text("userID") if store.per_viewer and call.caller.role is Role.BACKEND else ""
    return msgspec.Raw(await stores.read(store, call.caller, call.channel, user_id=user_id))


async def _replace(store: Store, stores: Stores, call: Call) -> object:
    await stores.replace(store, call.caller, call.channel, call.any_body(), expected=call.query.get("expected"))
    return Nothing()


async def _patch(store: Store, stores: Stores, call: Call) -> object:
    await stores.patch(store, call.caller, call.channel, call.raw)
    return Nothing()


def _store_handler(
    store: Store, handle: Callable[[Store, Stores, Call], Awaitable[object]], description: str
) -> Callable[[Stores, Call], Awaitable[object]]:
    """Return the handler of one store, with the name and description for the OpenAPI document."""

    def handler(stores: Stores, call: Call) -> Awaitable[object]:  # not async: a second coroutine per call
        return handle(store, stores, call)

    handler.__name__ = f"{handle.__name__.removeprefix('_')}_{store.name}"
    handler.__doc__ = description
    return handler


def _endpoints_of(store: Store) -> tuple[Endpoint[Stores], ...]:
    """Return the endpoints of a store: GET, POST and PATCH."""
    path = SERVICE + store.name
    users = (_USERS, _USER) if store.per_viewer else ()
    read = endpoint("GET", path, roles=store.readers, answer=JsonObject, query=(CHANNEL, *users))
    replace = endpoint("POST", path, roles=store.writers, body=JsonObject, query=(CHANNEL, _EXPECTED))
    patch = endpoint(
        "PATCH",
        path,
        roles=store.writers,
        body=Patch,
        query=(CHANNEL,),
        limit="user_map" if store.accepts_map else "body",
        limit_roles=frozenset({Role.ADMIN}),
    )
    return (
        read(_store_handler(store, _read, f"Read {store.name}; a store never written is an empty object.")),
        replace(_store_handler(store, _replace, f"Replace {store.name} with a JSON object of at most 64 KiB.")),
        patch(
            _store_handler(
                store,
                _patch,
                f"Change {store.name} with a JSON Patch (array) or a JSON Merge Patch (object).\n\n"
                "Atomic: all operations apply, or none. `add` creates missing parent objects.",
            )
        ),
    )


@endpoint("GET", "/v1/e/all_state", roles=ANYONE, answer=AllState, query=(CHANNEL,))
async def read_all_state(stores: Stores, call: Call) -> object:
    """Read the four state stores at one instant."""
    return await stores.read_all(ALL_STATE, call.caller, call.channel)


@endpoint("GET", "/v1/e/all_config", roles=ANYONE, answer=AllConfig, query=(CHANNEL,))
async def read_all_config(stores: Stores, call: Call) -> object:
    """Read the two config stores at one instant."""
    return await stores.read_all(ALL_CONFIG, call.caller, call.channel)


@endpoint("GET", "/v1/e/json_store", roles=ANYONE, answer=JsonObject, query=(_STORE_ID, CHANNEL))
async def read_json_store(stores: JsonStores, call: Call) -> object:
    """Read a JSON store; 404 if it does not exist."""
    return msgspec.Raw(await stores.read(call.caller, call.channel, checked_id(call.id, "id")))


@endpoint("POST", "/v1/e/json_store", roles=CHANNEL_WRITERS, body=JsonObject, query=(_STORE_ID, CHANNEL, _EXPECTED))
async def replace_json_store(stores: JsonStores, call: Call) -> Nothing:
    """Write a JSON store: an object of at most 2 KiB. It expires after 14 days.

    Ids that start with `global` are extension-wide.
    """
    store_id, expected = checked_id(call.id, "id"), call.query.get("expected")
    await stores.replace(call.caller, call.channel, store_id, call.any_body(), expected=expected)
    return Nothing()


endpoints: Final = (*(each for store in STORES for each in _endpoints_of(store)), read_all_state, read_all_config)
json_store_endpoints: Final = (read_json_store, replace_json_store)
