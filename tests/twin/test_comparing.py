"""Random ids are compared by where they stand, whatever their characters are."""

from __future__ import annotations

import json

import pytest

from twin.comparing import Comparison
from twin.names import kinds
from twin.rest import deliveries_last

USUAL = "Vq0cGm5TnRrX2bYd7LwKz1"


def test_the_id_of_a_message_is_an_id():
    replies = (f'e"}}}}], "request_id": "{each}-216/2"}}}}' for each in ("fc014c4c", "25a6f2d3"))

    assert [] == Comparison().texts(*replies, "stderr")


@pytest.mark.parametrize("rare", ["EZU4IBS5Z6V3HBA1V57EA6", "6f7sfh7l017bi0jasl0ltz", "abcdefghIJKLMNOPqrstuv"])
def test_a_random_id_of_one_case_or_without_digits_is_an_id(rare: str):
    replies = (json.dumps({"data": {"link": each, "again": each}}) for each in (rare, USUAL))

    assert ([], "<id22>") == (Comparison().texts(*replies, "reply"), kinds(rare))


@pytest.mark.parametrize("signature", ["7ms-x", "x-7ms-x", "x-12ms"])
def test_a_token_that_contains_a_duration_is_recognized_as_a_token(signature: str):
    replies = (
        json.dumps({"data": {"jwt": f"eyJhbGciOiJIUzI1NiJ9.e30.{each}"}}) for each in (signature, "x" * len(signature))
    )

    assert [] == Comparison().texts(*replies, "reply")


def test_a_duration_for_readers_is_not_compared():
    assert [] == Comparison().texts("took 12 ms, then (0.5ms)", "took 3.5 ms, then (7ms)", "reply")


def test_a_delivery_in_the_journal_may_come_before_or_after_other_responses():
    request = b'{"number":%d,"kind":"request"}'
    delivery = b'{"number":%d,"kind":"delivery","text":"{\\"timestamp\\":%d}"}'
    early, late = (request % 1, delivery % (2, 5), request % 3), (request % 1, request % 2, delivery % (3, 7))
    listed = [b'{"entries":[%b]}' % b",".join(each) for each in (early, late)]
    streamed = [b"\n".join([b'{"mark":0}', *each, b""]) for each in (early, late)]

    assert deliveries_last(listed[0]) == deliveries_last(listed[1])
    assert deliveries_last(streamed[0]) == deliveries_last(streamed[1])
    assert deliveries_last(listed[0]) != deliveries_last(b'{"entries":[%b]}' % b",".join(early[:2]))
