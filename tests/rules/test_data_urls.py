"""Which file a data URL names."""

from __future__ import annotations

import pytest

from emulator.engines import path_in


@pytest.mark.parametrize(
    ("rest", "path"),
    [("/C:/x.db", "C:/x.db"), ("/c:\\data\\x.db", "c:\\data\\x.db"), ("//C:/x.db", "C:/x.db"), ("/x.db", "/x.db"),
     ("/./x.db", "./x.db"), ("/C:x.db", "/C:x.db")],
)  # fmt: skip
def test_a_drive_letter_begins_a_path_where_there_are_drives(rest: str, path: str):
    assert path == path_in(rest, f"sqlite://{rest}", has_drives=True)


def test_elsewhere_a_drive_letter_is_the_name_of_a_folder():
    assert "/C:/x.db" == path_in("/C:/x.db", "sqlite:///C:/x.db", has_drives=False)
