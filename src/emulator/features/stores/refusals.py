"""What stores refuse: patches, sizes and names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from emulator.errors import BadRequest, Conflict, NotFound, TooLarge
from emulator.refusals import Facts, refusal

_PATCH: Final = "Invalid patch"
_UNCHANGED: Final = "nothing was changed"


@refusal(
    BadRequest,
    "Invalid store",
    rule="S1",
    title="There is no such store",
    next_step="Name one of the stores.",
)
def no_store(*, name: str, stores: Iterable[str]) -> Facts:
    known = ", ".join(stores)
    return Facts(f"{name!r} is not one of {known}", f"store {name!r}", f"one of {known}")


@refusal(
    BadRequest,
    "Store too large",
    rule="S4",
    title="The store would be too large",
    next_step="Store less, or split it over several stores.",
)
def store_too_large(*, member: str, size: int, limit: int) -> Facts:
    return _too_large(member, size, limit)


@refusal(
    BadRequest,
    "Store too large",
    rule="S5",
    title="The JSON store would be too large",
    next_step="Store less under one id, or split it over several ids.",
)
def json_store_too_large(*, member: str, size: int, limit: int) -> Facts:
    return _too_large(member, size, limit)


@refusal(
    Conflict,
    "Store changed",
    rule="gaps: Polls and stores",
    title="The store has changed since it was read",
    next_step="Read it again, and send the digest of its text.",
)
def store_changed(*, digest: str, expected: str) -> Facts:
    detail = f"expected: the store has the digest {digest} by now, not {expected}; {_UNCHANGED}"
    return Facts(detail, f"a store with the digest {digest}", f"one with the digest {expected}")


def _too_large(member: str, size: int, limit: int) -> Facts:
    detail = f"{member} would be {size} bytes of compact JSON; the limit is {limit}"
    return Facts(detail, f"{size} bytes of compact JSON", f"at most {limit} bytes")


@refusal(
    BadRequest,
    "Stores too large",
    rule="W8",
    title="The patched records are too large",
    next_step="Patch fewer users at once.",
)
def records_too_large(*, records: int, size: int, limit: int) -> Facts:
    detail = f"the first {records} records have {size} bytes; the limit is {limit} for one call: patch fewer at once"
    return Facts(detail, f"{records} records of {size} bytes", f"at most {limit} bytes")


@refusal(
    BadRequest,
    "Too many ids specified",
    rule="S1",
    title="The request names too many users",
    next_step="Split the request.",
)
def too_many_users(*, count: int, limit: int) -> Facts:
    return Facts(f"{count} ids given; the limit is {limit}", f"{count} ids", f"at most {limit} ids")


@refusal(BadRequest, _PATCH, rule="S2", title="The patch has too many operations", next_step="Split the patch.")
def too_many_operations(*, count: int, limit: int) -> Facts:
    return Facts(
        f"{count} operations; the limit is {limit} per patch", f"{count} operations", f"at most {limit} operations"
    )


@refusal(
    BadRequest,
    _PATCH,
    rule="S2",
    title="The patch would replace the store",
    next_step="Patch members of the store, or replace it: `extcli state set`.",
)
def patch_replaces_store() -> Facts:
    return Facts(f"a store must stay a JSON object; {_UNCHANGED}", "a result that is not an object", "a JSON object")


@refusal(
    BadRequest,
    _PATCH,
    rule="S2",
    title="An operation of the patch fails",
    next_step="Correct operation {index}; `extcli state get` shows the document.",
)
def operation_fails(*, index: int, problem: str) -> Facts:
    detail = f"operation {index}: {problem}; {_UNCHANGED}"
    return Facts(detail, f"operation {index}: {problem}", "operations of RFC 6902 that fit the document")


@refusal(
    BadRequest,
    _PATCH,
    rule="W8",
    title="The patch of a user is too large",
    next_step="Patch less of this user at once.",
)
def patch_of_user_too_large(*, user: str, size: int, limit: int) -> Facts:
    detail = f"the patch of {user} has {size} bytes; the limit is {limit}"
    return Facts(detail, f"{size} bytes for {user}", f"at most {limit} bytes")


@refusal(
    TooLarge,
    "Body too large",
    rule="W8",
    title="The patch is too large",
    next_step="Patch less at once; only maps of users may be larger.",
)
def patch_too_large(*, size: int, limit: int) -> Facts:
    return Facts(
        f"a patch of one record has {size} bytes; the limit is {limit}", f"{size} bytes", f"at most {limit} bytes"
    )


@refusal(BadRequest, "Invalid body", rule="A3", title="A user has two patches", next_step="Give each user one patch.")
def two_patches_of_a_user(*, user: str, other: str) -> Facts:
    detail = f"{other} and {user} are the same user; give each user one patch"
    return Facts(detail, f"{other} and {user}, which are the same user", "one patch per user")


@refusal(
    NotFound,
    "Not Found",
    rule="S5",
    title="Nothing is stored under this id",
    next_step="Write it first: `extcli json-store set {id} KEY=JSON`.",
)
def nothing_stored(*, id: str) -> Facts:
    held, needed = f"id {id}, never written or expired", "an id that was written in the last 14 days"
    return Facts(f"nothing is stored under {id}", held, needed)


@refusal(
    BadRequest,
    "Invalid user",
    rule="A4",
    title="The request names no user",
    next_step="Use a token with a user; as admin or backend, name the user (with extcli: `--user ID`).",
)
def no_user(*, store: str) -> Facts:
    return Facts(f"{store} needs a user", "a token without a user", "the user whose store it is")
