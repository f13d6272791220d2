"""A value at a limit is accepted, and the next one is refused (rules of broadcasts, calls, codes and receipts)."""

from __future__ import annotations

import pytest

from emulator.contract.limits import MAX_USER_LENGTH
from emulator.control.calls import CallBody, check_call
from emulator.core.errors import BadRequest
from emulator.features.broadcast.service import user_of_target
from emulator.features.codes.uploads import (
    MAX_CODE_LENGTH,
    MAX_CODES,
    problems_of_codes,
)
from emulator.features.transactions import Product, ReceiptData, TransactionBody, purchase_in_receipt


@pytest.mark.parametrize("name", ["user_id", "channel_id", "opaque_user_id"])
def test_an_id_of_a_call_has_at_most_256_characters(name: str):
    def call(length: int) -> CallBody:
        return CallBody(**{"path": "/v1/e/vote", "client_id": "ext"} | {name: "x" * length})  # type: ignore[arg-type]

    check_call(call(256))
    with pytest.raises(BadRequest):
        check_call(call(257))


def errors_of(array: int, at: int, codes: list[str]) -> list[str]:
    return list(problems_of_codes(array, at, codes))


def test_a_code_of_the_greatest_length_is_valid_next_to_an_invalid_one():
    wrong = f"codes[0][1]: has {MAX_CODE_LENGTH + 1} characters; a code has 1 to {MAX_CODE_LENGTH}"

    assert [wrong] == errors_of(0, 0, ["x" * MAX_CODE_LENGTH, "x" * (MAX_CODE_LENGTH + 1)])


def test_too_many_codes_in_a_set_are_reported_once():
    too_many = [f"codes[2]: has more than {MAX_CODES} codes"]

    assert [] == errors_of(2, MAX_CODES - 2, ["a", "b"])
    assert too_many == errors_of(2, MAX_CODES - 1, ["a", "b"]) == errors_of(2, MAX_CODES, ["a"])
    assert [] == errors_of(2, MAX_CODES + 1, ["a"])


@pytest.mark.parametrize("name", ["transactionId", "sku", "userId"])
def test_the_texts_of_a_receipt_have_1_to_256_characters(name: str):
    def post(text: str) -> None:
        texts = {"transactionId": "t1", "sku": "hat", "userId": "5551"} | {name: text}
        data = ReceiptData(texts["transactionId"], texts["userId"], Product(texts["sku"]))
        purchase_in_receipt(data, TransactionBody(""), own_id="own", now=1)

    post("x" * 256)
    for wrong in ("", "x" * 257):
        with pytest.raises(BadRequest, match=f"transactionReceipt: {name}: must be 1 to 256 printable characters"):
            post(wrong)


def test_a_whisper_names_a_user_of_at_most_256_characters():
    longest = "u" * MAX_USER_LENGTH

    assert (256, longest) == (MAX_USER_LENGTH, user_of_target(f"whisper-{longest}"))
    with pytest.raises(BadRequest):
        user_of_target(f"whisper-{longest}u")
