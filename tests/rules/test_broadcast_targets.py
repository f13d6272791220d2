"""The targets of a broadcast (rules of broadcasts)."""

from __future__ import annotations

import pytest

from emulator.contract.limits import MAX_USER_LENGTH
from emulator.core.errors import BadRequest
from emulator.features.broadcast.service import user_of_target


def test_a_whisper_names_a_user_of_at_most_256_characters():
    longest = "u" * MAX_USER_LENGTH

    assert (256, longest) == (MAX_USER_LENGTH, user_of_target(f"whisper-{longest}"))
    with pytest.raises(BadRequest):
        user_of_target(f"whisper-{longest}u")
