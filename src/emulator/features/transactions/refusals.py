"""Refusals of purchases."""

from __future__ import annotations

from typing import Final

from emulator.errors import BadRequest, Facts, NotFound, refusal

_RULE: Final = "gaps: Purchases"
_RECEIPT: Final = (BadRequest, "Invalid receipt", _RULE)


@refusal(*_RECEIPT, "The receipt is malformed",
         "Post a receipt as the platform makes it: `extcli bits purchase SKU` makes one.")  # fmt: skip
def malformed_receipt(*, problem: str) -> Facts:
    return Facts(f"transactionReceipt: {problem}", problem, "a receipt as the platform makes it")


@refusal(*_RECEIPT, "The receipt belongs to another buyer", "Post the receipt with the buyer's own token.")
def other_buyer() -> Facts:
    detail = "transactionReceipt: userId is not the user of the token"
    return Facts(detail, "a token of another user", "the buyer's token")


@refusal(*_RECEIPT, "The purchase was posted before", "Post a receipt only as its buyer, and in one channel.")
def posted_before() -> Facts:
    detail = "transactionReceipt: its transaction was posted before, in another channel or by another user"
    held = "a transaction id that another user or channel has posted"
    return Facts(detail, held, "a transaction id of this user and channel")


@refusal(NotFound, "Not Found", _RULE, "No purchase matches", "List the outstanding purchases: `extcli bits list`.")
def no_purchase() -> Facts:
    needed = "a purchase that is neither validated nor refunded"
    return Facts("no outstanding transaction matches", "no outstanding purchase", needed)
