"""Planted faults in buffers, stores, codes, trivia and purchases."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from emulator.callers import ANYONE
from emulator.engines.sqlite.pool_cache import SpentItems
from emulator.errors import BadRequest, NotFound
from emulator.features.accumulation import service as accumulation
from emulator.features.codes import http as codes_http
from emulator.features.codes import rules as codes
from emulator.features.codes import service as codes_service
from emulator.features.stores import http as stores_http
from emulator.features.stores import json_stores, patches
from emulator.features.stores import rules as stores
from emulator.features.stores import service as stores_service
from emulator.features.transactions import service as transactions
from emulator.features.trivia import service as trivia
from support.planted_faults import Patch, allow, planted, wrap


@planted("limits.size-of-a-value")
def a_value_of_255_bytes_is_too_large(patch: Patch) -> None:
    patch.setattr(accumulation, "LIMIT", 255)


@planted("limits.size-of-a-value", "R3.compact-size-of-a-value")
def a_value_of_256_bytes_is_accepted(patch: Patch) -> None:
    patch.setattr(accumulation, "LIMIT", 257)


@planted("accumulation.start-of-a-read")
def start_is_exclusive(patch: Patch) -> None:
    wrap(
        patch,
        accumulation.Buffers,
        "read",
        lambda read, self, caller, channel, name, start: read(self, caller, channel, name, start and start + 1),
    )


@planted("accumulation.latest-entry")
def latest_is_the_newest_from_start_on(patch: Patch) -> None:
    async def since(read: Any, self: Any, caller: Any, channel: Any, name: str, start: int) -> Any:
        entries = await read(self, caller, channel, name, start)
        return entries._replace(latest=entries.latest if entries.latest >= start else 0)

    wrap(patch, accumulation.Buffers, "read", since)


@planted(
    "accumulation.stored-values",
    "accumulation.buffer-of-a-channel",
    "R3.compact-size-of-a-value",
    "resources.entries-of-a-buffer",
)
def a_buffer_is_read_oldest_first(patch: Patch) -> None:
    async def backwards(pages: AsyncIterator[list[bytes]]) -> AsyncIterator[list[bytes]]:
        yield [entry async for page in pages for entry in page][::-1]

    async def oldest_first(read: Any, *args: Any) -> Any:
        entries = await read(*args)
        return entries._replace(pages=backwards(entries.pages))

    wrap(patch, accumulation.Buffers, "read", oldest_first)


@planted("S1.stores-by-reader")
def a_viewer_may_read_the_hidden_store(patch: Patch) -> None:
    endpoints = {(each.method, each.path): each for each in stores_http.endpoints}
    allow(patch, endpoints["GET", "/v1/e/extension_hidden_state"], ANYONE)


@planted("S1.stores-by-writer")
def a_viewer_may_patch_the_channel_state(patch: Patch) -> None:
    endpoints = {(each.method, each.path): each for each in stores_http.endpoints}
    allow(patch, endpoints["PATCH", "/v1/e/channel_state"], ANYONE)


@planted("S4.size-of-a-store")
def a_store_has_at_most_65_535_bytes(patch: Patch) -> None:
    encode = stores.encode_document
    patch.setitem(encode.__kwdefaults__, "max_bytes", stores.MAX_STORE_BYTES - 1, read_by=encode)


@planted("S2.merge-patch", "S2.stores-of-the-extension")
def null_in_a_merge_patch_is_a_value(patch: Patch) -> None:
    wrap(patch, patches, "_merge_patch", lambda _, target, change: (target or {}) | change)


@planted("S2.atomic-patch")
def operations_before_a_failing_one_are_kept(patch: Patch) -> None:
    async def one_by_one(apply: Any, self: Any, store: Any, caller: Any, channel: Any, raw: bytes) -> None:
        body = json.loads(raw)
        for each in [[operation] for operation in body] if isinstance(body, list) and len(body) <= 1_000 else [body]:
            await apply(self, store, caller, channel, json.dumps(each).encode())

    wrap(patch, stores_service.Stores, "patch", one_by_one)


@planted("S1.stores-of-a-viewer", "S1.records-of-many-users")
def viewer_state_is_shared_by_all_viewers(patch: Patch) -> None:
    def without_user(key_of: Any, store: Any, *args: Any, **options: Any) -> Any:
        key = key_of(store, *args, **options)
        return key._replace(user="") if store is stores.VIEWER_STATE else key

    wrap(patch, stores_service, "store_key", without_user)


@planted("S5.size-of-a-json-store")
def a_json_store_of_2_049_bytes_is_accepted(patch: Patch) -> None:
    patch.setattr(json_stores, "MAX_JSON_STORE_BYTES", stores.MAX_JSON_STORE_BYTES + 1)


@planted(
    "S5.absent-json-store",
    "S5.json-store-of-an-id",
    "S5.json-store-that-is-no-object",
    "S5.json-store-by-role",
)
def an_absent_json_store_is_an_empty_object(patch: Patch) -> None:
    async def empty(read: Any, *args: Any) -> Any:
        try:
            return await read(*args)
        except NotFound:
            return b"{}"

    wrap(patch, json_stores.JsonStores, "read", empty)


@planted("limits.length-of-a-code")
def a_code_may_have_64_characters(patch: Patch) -> None:
    for module in (codes, codes_http):
        patch.setattr(module, "MAX_CODE_LENGTH", 64)


@planted("limits.length-of-a-code")
def a_code_has_at_most_62_characters(patch: Patch) -> None:
    for module in (codes, codes_http):
        patch.setattr(module, "MAX_CODE_LENGTH", 62)


@planted("C2.codes-handed-out-once")
def a_code_is_handed_out_again_after_a_delete(patch: Patch) -> None:
    patch.setattr(SpentItems, "spend", lambda self, family, item: True)
    patch.setattr(SpentItems, "is_unspent", lambda self, family, item: True)


@planted("C3.limits-of-prizes")
def the_limits_of_prizes_are_ignored(patch: Patch) -> None:
    patch.setattr(codes, "_limit", lambda body, prize: 1_000_000)


@planted("C4.grants-from-a-poll")
def a_vote_at_the_cutoff_is_too_late(patch: Patch) -> None:
    wrap(patch, codes_service, "is_in_time", lambda in_time, cast_at, cutoff: in_time(cast_at + 1, cutoff))


@planted("C6.redeemed-codes-of-ended-sets")
def redeemed_codes_vanish_with_their_set(patch: Patch) -> None:
    async def of_live_sets(redeemed: Any, self: Any, caller: Any) -> Any:
        live = await self.list_sets(caller)
        return [codes if index in live else [] for index, codes in enumerate(await redeemed(self, caller))]

    wrap(patch, codes_service.CodeSets, "redeemed_codes", of_live_sets)


@planted("trivia.new-question")
def viewers_see_inactive_questions(patch: Patch) -> None:
    patch.setattr(trivia, "sees_inactive", lambda caller: True)


@planted("purchases.purchase")
def a_purchase_is_sent_with_each_receipt(patch: Patch) -> None:
    patch.setattr(transactions, "is_same_claim", lambda text, claim: False)


@planted("T6.receipt-of-any-text")
def a_receipt_that_cannot_be_read_is_refused(patch: Patch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise BadRequest("Invalid receipt", "a receipt must be a JWT")

    patch.setattr(transactions, "stated_receipt", refused)
