"""What `docs/layout.md` says of the code is there."""

from __future__ import annotations

import re

from blocks import ROOT

TEXT = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
FOLDERS = ("", "src", "src/emulator", "src/extcli")


def test_every_file_and_folder_exists():
    named = set(re.findall(r"`((?:\w+/)*\w+(?:\.py|/\w*))`", TEXT)) - {"rules.py", "service.py", "endpoints.py"}

    assert 50 < len(named)
    assert [] == sorted(each for each in named if not any((ROOT / folder / each).exists() for folder in FOLDERS))


def test_the_page_is_read_in_some_minutes():
    assert 1_500 >= len(TEXT.split())
