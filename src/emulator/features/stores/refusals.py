"""Refusals of stores: patches, sizes and names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from emulator.errors import BadRequest, Conflict, Facts, NotFound, TooLarge, refusal

_PATCH: Final = "Invalid patch"
_UNCHANGED: Final = "nothing was changed"


@refusal(BadRequest, "Invalid store", "S1", "There is no such store", "Name one of the stores that the error lists.")
def no_store(*, name: str, stores: Iterable[str]) -> Facts:
    known = ", ".join(stores)
    return Facts(f"{name!r} is not one of {known}", f"store {name!r}", f"one of {known}")


@refusal(BadRequest, "Store too large", "S4", "The store would be too large",
         "Store less, or split it over several stores.")  # fmt: skip
def store_too_large(*, member: str, size: int, limit: int) -> Facts:
    return _too_large(member, size, limit)


@refusal(BadRequest, "Store too large", "S5", "The JSON store would be too large",
         "Store less under one id, or split it over several ids.")  # fmt: skip
def json_store_too_large(*, member: str, size: int, limit: int) -> Facts:
    return _too_large(member, size, limit)


@refusal(Conflict, "Store changed", "gaps: Polls and stores", "The store has changed since it was read",
         "Read it again, and send the digest of its text.")  # fmt: skip
def store_changed(*, digest: str, expected: str) -> Facts:
    detail = f"expected: the store now has the digest {digest}, not {expected}; {_UNCHANGED}"
    return Facts(detail, f"a store with the digest {digest}", f"one with the digest {expected}")


def _too_large(member: str, size: int, limit: int) -> Facts:
    detail = f"{member} would be {size} bytes of compact JSON; the limit is {limit}"
    return Facts(detail, f"{size} bytes of compact JSON", f"at most {limit} bytes")


@refusal(BadRequest, "Stores too large", "W8", "The patched records are too large", "Patch fewer users at once.")
def records_too_large(*, records: int, size: int, limit: int) -> Facts:
    detail = f"the first {records} records have {size} bytes; the limit is {limit} for one call: patch fewer at once"
    return Facts(detail, f"{records} records of {size} bytes", f"at most {limit} bytes")


@refusal(
    BadRequest,
    "Too many ids specified",
    "S1",
    "The request names too many users",
    "Send at most {limit} ids in one request.",
)
def too_many_users(*, count: int, limit: int) -> Facts:
    return Facts(f"{count} ids given; the limit is {limit}", f"{count} ids", f"at most {limit} ids")


@refusal(
    BadRequest,
    _PATCH,
    rule="S2",
    title="The patch has too many operations",
    next_step="Send at most {limit} operations in one patch, and the others in further ones.",
)
def too_many_operations(*, count: int, limit: int) -> Facts:
    return Facts(
        f"{count} operations; the limit is {limit} per patch", f"{count} operations", f"at most {limit} operations"
    )


@refusal(BadRequest, _PATCH, "S2", "The patch would replace the store",
         "Patch members of the store, or replace it: `extcli state set`.")  # fmt: skip
def patch_replaces_store() -> Facts:
    return Facts(f"a store must stay a JSON object; {_UNCHANGED}", "a result that is not an object", "a JSON object")


@refusal(BadRequest, _PATCH, "S2", "An operation of the patch fails",
         "Correct operation {index}; `extcli state get` shows the document.")  # fmt: skip
def operation_fails(*, index: int, problem: str) -> Facts:
    detail = f"operation {index}: {problem}; {_UNCHANGED}"
    return Facts(detail, f"operation {index}: {problem}", "operations of RFC 6902 that fit the document")


@refusal(BadRequest, _PATCH, "W8", "The patch of a user is too large", "Patch less of this user at once.")
def patch_of_user_too_large(*, user: str, size: int, limit: int) -> Facts:
    detail = f"the patch of {user} has {size} bytes; the limit is {limit}"
    return Facts(detail, f"{size} bytes for {user}", f"at most {limit} bytes")


@refusal(TooLarge, "Body too large", "W8", "The patch is too large",
         "Patch less at once; only maps of users may be larger.")  # fmt: skip
def patch_too_large(*, size: int, limit: int) -> Facts:
    return Facts(
        f"a patch of one record has {size} bytes; the limit is {limit}", f"{size} bytes", f"at most {limit} bytes"
    )


@refusal(BadRequest, "Invalid body", rule="A3", title="A user has two patches", next_step="Give each user one patch.")
def two_patches_of_a_user(*, user: str, other: str) -> Facts:
    detail = f"{other} and {user} are the same user; give each user one patch"
    return Facts(detail, f"{other} and {user}, which are the same user", "one patch per user")


@refusal(NotFound, "Not Found", "S5", "Nothing is stored under this id",
         "Write it first: `extcli json-store set {id} KEY=JSON`.")  # fmt: skip
def nothing_stored(*, id: str) -> Facts:
    held, needed = f"id {id}, never written or expired", "an id that was written in the last 14 days"
    return Facts(f"nothing is stored under {id}", held, needed)


@refusal(BadRequest, "Invalid user", "A4", "The request names no user",
         "Use a token with a user; as admin or backend, name the user (with extcli: `--user ID`).")  # fmt: skip
def no_user(*, store: str) -> Facts:
    return Facts(f"{store} needs a user", "a token without a user", "the user whose store it is")
