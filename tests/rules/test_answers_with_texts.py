"""Which responses the journal searches for secrets: all that may have texts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, Raw, Struct, UnsetType

from emulator.feature_list import FEATURES
from emulator.http.endpoint import Endpoint, JavaScript, JsonLines, Nothing, endpoint


class Numbers(Struct):
    one: int
    many: list[float]
    none: bool | None = None


class Inner(Struct):
    numbers: Numbers
    text: str | UnsetType = UNSET


def answering(answer: object) -> Endpoint[Any]:
    @endpoint("GET", "/x", answer=answer)
    async def handler(service: object, call: object) -> object:
        return None

    return handler


@pytest.mark.parametrize("answer", [Nothing, Numbers, list[Numbers]])
def test_an_answer_of_numbers_has_no_texts(answer: object):
    assert not answering(answer).answers_with_texts


@pytest.mark.parametrize(
    "answer", [str, JavaScript, JsonLines, Any, Raw, bytes, Inner, list[Inner], dict[str, int], Numbers | str]
)
def test_any_other_response_may_have_texts(answer: object):
    assert answering(answer).answers_with_texts


def test_every_response_with_a_secret_member_is_searched():
    declared = {f"{each.method} {each.path}": each for feature in FEATURES for each in feature.endpoints}

    for name in ("POST link/pin", "POST pin", "POST authtoken", "POST codes/redeem", "GET codes/redeemed"):
        assert declared[name.replace(" ", " /v1/e/")].answers_with_texts
    assert not declared["POST /v1/e/vote"].answers_with_texts
