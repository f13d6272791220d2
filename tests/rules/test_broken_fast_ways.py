"""A difference that is planted in a fast way is found by the property test that compares it with the slow one.

`tests/engines/test_sqlite_marks.py` and `tests/web/test_hot_path.py` do the same for theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest

from emulator.auth import claims, hs256, tokens
from emulator.auth.tokens import Tokens
from emulator.features.codes import duplicates, rules
from emulator.http import streaming_json
from emulator.observability import masking
from emulator.wire import url
from rules import test_code_duplicates, test_fast_ways, test_hs256, test_streaming_json, test_usual_claims

# Like `claims._UsualClaims`, but ignores all other claims.
IGNORING = msgspec.defstruct(
    "Ignoring", [("exp", int), *((name, str, "") for name in ("role", "channel_id", "user_id", "opaque_user_id"))]
)
DIFFERENCES: dict[str, tuple[object, str, object, Callable[[], object]]] = {
    "a token with any header is read": (
        hs256, "_is_usual", lambda header: True, test_hs256.test_the_fast_way_agrees_with_pyjwt_or_abstains,
    ),
    "a token with any signature is accepted": (
        hs256, "_signer", lambda message, signature, keys: "",
        test_hs256.test_the_fast_way_agrees_with_pyjwt_or_abstains,
    ),
    "claims with an effect are ignored": (
        claims, "_usual_claims_of", msgspec.json.Decoder(IGNORING).decode,
        test_usual_claims.test_usual_claims_give_the_caller_that_all_claims_give,
    ),
    "a plus in a query stays": (
        url, "unquote_plus", lambda text: text.replace("%20", " "),
        test_fast_ways.test_a_query_reads_as_each_of_its_parameters_by_itself,
    ),
    "a secret with a long name is missed": (
        masking, "_is_suspect", lambda text: b"pin" in text.lower() and masking._SUSPECT.search(text) is not None,
        test_fast_ways.test_the_fast_check_for_secrets_agrees_with_the_pattern,
    ),
    "tokens stay cached when the secrets change": (
        Tokens, "forget", lambda tokens: None,
        test_fast_ways.test_a_cached_token_agrees_with_its_verification_or_abstains,
    ),
    "a sandbox takes every usual token for one that production accepts": (
        tokens, "usual_caller", lambda client_id, payload, grant, production="": claims.usual_caller(
            client_id, payload, grant
        ),
        test_fast_ways.test_a_token_with_usual_claims_agrees_with_the_same_token_and_an_unusual_claim,
    ),
    "strings that are read at once end at the first comma": (
        streaming_json, "_leading_strings", lambda data, at: (at, ["x"]),
        test_streaming_json.test_any_body_in_any_chunks_is_read,
    ),
    "a code with a control character is valid": (
        rules, "_PRINTABLE_ASCII", bytes(range(128)),
        test_fast_ways.test_the_fast_check_for_printable_characters_agrees_with_the_slow_one,
    ),
    "hashes are counted and not compared": (
        duplicates, "compress", lambda hashes, chosen: range(sum(chosen)),
        test_code_duplicates.test_exactly_the_repeated_hashes_are_found_at_once_and_in_steps,
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_wrong_query_stays() -> Iterator[None]:
    yield
    url._cached.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_a_planted_difference_is_found(monkeypatch: pytest.MonkeyPatch, difference: str):
    owner, name, value, property_test = DIFFERENCES[difference]

    monkeypatch.setattr(owner, name, value)

    with pytest.raises((AssertionError, ExceptionGroup)):
        property_test()
