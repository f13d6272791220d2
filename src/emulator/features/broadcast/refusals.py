"""Refusals of broadcasts."""

from __future__ import annotations

from typing import Final

from emulator.errors import BadRequest, Facts, refusal

_SEND_LESS: Final = "Send less; `extcli broadcast size` measures a message."


@refusal(BadRequest, "Invalid target", "B3", "The broadcast has no such target",
         "Send to all, or to one user: `extcli broadcast send EVENT DATA --to USER`.")  # fmt: skip
def no_target(*, target: str, all: str, whisper: str) -> Facts:
    needed = f"{all}, or {whisper}<user id>"
    return Facts(f"target: {target!r} is neither {all!r} nor '{whisper}<user id>'", f"target {target!r}", needed)


@refusal(BadRequest, "Message too large", rule="B2", title="The message is too large", next_step=_SEND_LESS)
def message_too_large(*, size: int, compressed: int, limit: int) -> Facts:
    sizes = _sizes(size, compressed)
    return Facts(f"data: {sizes}; the limit is {limit}", sizes, f"at most {limit} bytes, as JSON or compressed")


@refusal(BadRequest, "Message too large", rule="B2", title="The message is too large", next_step=_SEND_LESS)
def message_too_large_before_compression(*, size: int, compressed: int, limit: int) -> Facts:
    sizes = _sizes(size, compressed)
    return Facts(f"data: {sizes}; the limit before compression is {limit}", sizes, f"at most {limit} bytes of JSON")


def _sizes(size: int, compressed: int) -> str:
    return f"{size} bytes of compact JSON, {compressed} bytes compressed"


@refusal(BadRequest, "Too many ids specified", "B3", "The message goes to too many users",
         "Split the users over several messages.")  # fmt: skip
def too_many_recipients(*, count: int, limit: int) -> Facts:
    return Facts(f"data.ids: {count} ids; the limit is {limit}", f"{count} ids", f"at most {limit} ids")
