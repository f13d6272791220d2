"""Sizes of `serve --journal`."""

from __future__ import annotations

import pytest

from emulator.core.config.settings import read_settings


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("0MiB", 0), ("65536", 65_536), ("64KiB", 65_536), ("16MiB", 16_777_216), ("1GiB", 1_073_741_824)],
)
def test_a_size_of_the_journal_is_read(text: str, size: int):
    assert (
        size == read_settings(production=False, data="sqlite://", check_data=str, extensions=None, journal=text).journal
    )


def test_the_journal_has_16_mib_by_default():
    assert 16_777_216 == read_settings(production=False, data="sqlite://", check_data=str, extensions=None).journal
