"""The kinds of stores: their roles, keys and limits (rulings S1 to S6). No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from emulator.contract.limits import MAX_STORE_BYTES
from emulator.core.callers import ANYONE, CHANNEL_WRITERS, EXTENSION_WRITERS, Caller, Role
from emulator.core.errors import BadRequest, Conflict, Facts, ServiceError, TooLarge, refusal
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import wrong_shape
from emulator.storage.kinds import VALUE, Stored, decoded, wrong
from emulator.storage.records import DocumentRecord
from emulator.storage.shapes import Edit, Texts

_INVALID_PATCH = "Invalid patch"
_NO_CHANGE = "nothing was changed"


@refusal(BadRequest, "Invalid store", "S1", "There is no such store", "Name one of the stores that the error lists.")
def no_store(*, name: str, stores: Iterable[str]) -> Facts:
    known = ", ".join(stores)
    return Facts(f"{name!r} is not one of {known}", f"store {name!r}", f"one of {known}")


@refusal(BadRequest, "Store too large", "S4", "The store would be too large",
         "Store less, or split it over several stores.")  # fmt: skip
def store_too_large(*, member: str, size: int, limit: int) -> Facts:
    return too_large(member, size, limit)


@refusal(Conflict, "Store changed", "gaps: Polls and stores", "The store has changed since it was read",
         "Read the store again, and send the SHA-256 of its text as `expected`.")  # fmt: skip
def store_changed(*, digest: str, expected: str) -> Facts:
    detail = f"expected: the store now has the digest {digest}, not {expected}; {_NO_CHANGE}"
    return Facts(detail, f"the digest {expected}", f"the digest of the current store, {digest}")


def too_large(member: str, size: int, limit: int) -> Facts:
    detail = f"{member} would be {size} bytes of compact JSON; the limit is {limit}"
    return Facts(detail, f"{size} bytes of compact JSON", f"at most {limit} bytes")


@refusal(BadRequest, "Stores too large", "W8", "The patched records are too large", "Patch fewer users at once.")
def records_too_large(*, records: int, size: int, limit: int) -> Facts:
    detail = f"the first {records} records have {size} bytes; the limit for one call is {limit}: patch fewer users"
    return Facts(detail, f"{records} records of {size} bytes", f"at most {limit} bytes")


@refusal(BadRequest, "Too many ids specified", "S1", "The request names too many users",
         "Send at most {limit} ids in one request.")  # fmt: skip
def too_many_users(*, count: int, limit: int) -> Facts:
    return Facts(f"{count} ids given; the limit is {limit}", f"{count} ids", f"at most {limit} ids")


@refusal(BadRequest, _INVALID_PATCH, "S2", "The patch has too many operations",
         "Split the patch into several, each of at most {limit} operations.")  # fmt: skip
def too_many_operations(*, count: int, limit: int) -> Facts:
    detail = f"the patch has {count} operations; the limit is {limit}"
    return Facts(detail, f"{count} operations", f"at most {limit} operations")


@refusal(BadRequest, _INVALID_PATCH, "S2", "The patch would replace the store",
         "Patch members of the store, or replace it: `extcli state set`.")  # fmt: skip
def patch_replaces_store() -> Facts:
    return Facts(f"a store must stay a JSON object; {_NO_CHANGE}", "a result that is not an object", "a JSON object")


@refusal(BadRequest, _INVALID_PATCH, "S2", "An operation of the patch fails",
         "Correct operation {index} (the first is 0); `extcli state get` shows the store.")  # fmt: skip
def operation_fails(*, index: int, problem: str) -> Facts:
    detail = f"operation {index}: {problem}; {_NO_CHANGE}"
    return Facts(detail, f"operation {index}: {problem}", "operations of RFC 6902 that apply to the store")


@refusal(BadRequest, _INVALID_PATCH, "W8", "The patch of a user is too large", "Send a smaller patch for this user.")
def patch_of_user_too_large(*, user: str, size: int, limit: int) -> Facts:
    detail = f"the patch of {user} has {size} bytes; the limit is {limit}"
    return Facts(detail, f"{size} bytes for {user}", f"at most {limit} bytes")


@refusal(TooLarge, "Body too large", "W8", "The patch is too large",
         "Send a smaller patch. Only a map of users to patches may be larger.")  # fmt: skip
def patch_too_large(*, size: int, limit: int) -> Facts:
    detail = f"the patch of one record has {size} bytes; the limit is {limit}"
    return Facts(detail, f"{size} bytes", f"at most {limit} bytes")


@refusal(BadRequest, "Invalid body", rule="A3", title="A user has two patches", next_step="Give each user one patch.")
def two_patches_of_a_user(*, user: str, other: str) -> Facts:
    detail = f"{other} and {user} are the same user; give each user one patch"
    return Facts(detail, f"{other} and {user}, which are the same user", "one patch per user")


@refusal(BadRequest, "Invalid user", "A4", "The request names no user",
         "Use a token that names a user. As admin or backend, name the user (with extcli: `--user ID`).")  # fmt: skip
def no_user(*, store: str) -> Facts:
    return Facts(f"{store} belongs to a user: name the user", "a token without a user", "the user who owns the store")


MAX_USERS = 1_000
"""The number of users that an admin may read or patch in one call (ruling S1)."""

_CHANNEL_ID_PATTERN = re.compile("[0-9]+")
_USER_ID_PATTERN = re.compile("[0-9A-Za-z_-]*[0-9]|[UA][0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*")


@dataclass(frozen=True)
class Store:
    """One kind of store: a row of the specification's storage table."""

    name: str
    """The last segment of the path."""
    per_extension: bool = True
    """Whether each client id has its own; otherwise all extensions in the channel share one (ruling S6)."""
    per_channel: bool = False
    per_viewer: bool = False
    is_config: bool = False
    readers: frozenset[Role] = ANYONE
    writers: frozenset[Role] = ANYONE
    feed_id: str = ""
    """The name on the socket: `channel` or `extension`; empty for a store without updates."""

    @property
    def accepts_map(self) -> bool:
        """Whether an admin may patch many records in one call: true for viewer stores and channel config."""
        return self.per_viewer or (self.per_channel and self.is_config)


EXTENSION_STATE = Store("extension_state", writers=EXTENSION_WRITERS, feed_id="extension")
CHANNEL_STATE = Store(
    "channel_state", per_extension=False, per_channel=True, writers=CHANNEL_WRITERS, feed_id="channel"
)
VIEWER_STATE = Store("viewer_state", per_channel=True, per_viewer=True)
EXTENSION_VIEWER_STATE = Store("extension_viewer_state", per_viewer=True)
HIDDEN_STATE = Store("extension_hidden_state", readers=EXTENSION_WRITERS, writers=EXTENSION_WRITERS)
EXTENSION_CONFIG = Store("extension_config", is_config=True, writers=EXTENSION_WRITERS, feed_id="extension")
CHANNEL_CONFIG = Store(
    "channel_config", per_extension=False, per_channel=True, is_config=True, writers=CHANNEL_WRITERS, feed_id="channel"
)
STORES = (
    EXTENSION_STATE,
    CHANNEL_STATE,
    VIEWER_STATE,
    EXTENSION_VIEWER_STATE,
    HIDDEN_STATE,
    EXTENSION_CONFIG,
    CHANNEL_CONFIG,
)
ALL_STATE = {
    "extension": EXTENSION_STATE,
    "channel": CHANNEL_STATE,
    "viewer": VIEWER_STATE,
    "extension_viewer": EXTENSION_VIEWER_STATE,
}
"""The stores of `all_state` (ruling S3)."""
ALL_CONFIG = {"extension": EXTENSION_CONFIG, "channel": CHANNEL_CONFIG}
"""The stores of `all_config` (ruling S3)."""


def digest_of(text: bytes | None) -> str:
    """Return the SHA-256 of a store's text in hex. If nothing is stored, use the empty text."""
    return sha256(text or b"").hexdigest()


def replacing_edit(key: Key, text: bytes, expected: str | None) -> Edit:
    """Return the edit that writes a store.

    It raises `Conflict` unless the store still has the digest `expected`; `None` matches any store.
    """

    def replace(found: Texts) -> Texts:
        if expected is not None and (digest := digest_of(found.get(key))) != expected:
            raise store_changed(digest=digest, expected=expected[:64] or "''")
        return {key: text}

    return replace


def encode_document(
    document: Any,
    *,
    name: str,
    max_bytes: int = MAX_STORE_BYTES,
    refuse: Callable[..., ServiceError] = store_too_large,
) -> bytes:
    """Return the compact JSON of a store's new content; raise `BadRequest` if it is not an object or is too large."""
    if not isinstance(document, dict):
        raise wrong_shape(needed="a JSON object", problem=f"{name} must be a JSON object")
    text = json_codec.encode(document)
    if len(text) > max_bytes:
        raise refuse(member=name, size=len(text), limit=max_bytes)
    return text


def unique_ids(ids: list[str]) -> list[str]:
    """Remove duplicates, keeping the order; raise `BadRequest` for more than 1,000 ids."""
    if len(ids) > MAX_USERS:
        raise too_many_users(count=len(ids), limit=MAX_USERS)
    return list(dict.fromkeys(ids))


def is_map_of_patches(store: Store, caller: Caller, body: dict[str, Any]) -> bool:
    """Return whether a PATCH body maps ids to patches.

    The caller must be an admin, and keys and values must look like ids and patches.
    A user id may be any name that ends in a digit, or has a digit after an initial `U` or `A` as opaque ids do, because
    admins rarely patch their own viewer record. A channel id must be digits only, because channel config may have a
    member such as `level1`.
    """
    id_pattern = _USER_ID_PATTERN if store.per_viewer else _CHANNEL_ID_PATTERN
    return (
        caller.role is Role.ADMIN
        and store.accepts_map
        and bool(body)
        and all(id_pattern.fullmatch(name) for name in body)
        and all(map(_looks_like_a_patch, body.values()))
    )


def _looks_like_a_patch(value: Any) -> bool:
    if isinstance(value, msgspec.Raw):
        return bytes(value)[:1] in (b"{", b"[")
    return isinstance(value, dict | list)


def check_stored(record: DocumentRecord, max_bytes: int = MAX_STORE_BYTES) -> None:
    document = decoded(record.value, object, VALUE)
    if not isinstance(document, dict):
        raise wrong(VALUE, "must be a JSON object")
    encode_document(document, max_bytes=max_bytes, name=VALUE)


STORED = tuple(Stored(DocumentRecord, store.name, check_stored) for store in STORES)
