"""Which file a data URL names."""

from __future__ import annotations

import pytest

from emulator.storage.opening import path_in, refusal


@pytest.mark.parametrize(
    ("rest", "path"),
    [("/C:/x.db", "C:/x.db"), ("/c:\\data\\x.db", "c:\\data\\x.db"), ("//C:/x.db", "C:/x.db"), ("/x.db", "/x.db"),
     ("/./x.db", "./x.db"), ("/C:x.db", "/C:x.db"),
     ("///server/share/x.db", "//server/share/x.db"), ("/\\\\server\\share\\x.db", "\\\\server\\share\\x.db")],
)  # fmt: skip
def test_a_drive_letter_begins_a_path_where_there_are_drives(rest: str, path: str):
    assert path == path_in(rest, f"sqlite://{rest}", has_drives=True)


def test_elsewhere_a_drive_letter_is_the_name_of_a_folder():
    assert "/C:/x.db" == path_in("/C:/x.db", "sqlite:///C:/x.db", has_drives=False)


@pytest.mark.parametrize(
    ("path", "advice"),
    [("C:\\data\\x.db", "sqlite:///C:/data/x.db"), ("C:/x.db", "sqlite:///C:/x.db"), ("x.db", "sqlite:///./x.db"),
     ("\\\\server\\share\\x.db", "sqlite://///server/share/x.db"), ("/x.db", "sqlite:///x.db")],
)  # fmt: skip
def test_the_advice_for_a_path_is_a_url_of_that_path_where_there_are_drives(path: str, advice: str):
    error = refusal(path, has_drives=True)

    assert f"write {advice} for a file;" in str(error)
    assert (path_in(advice.removeprefix("sqlite://"), advice, has_drives=True) or "").removeprefix(
        "./"
    ) == path.replace("\\", "/")
