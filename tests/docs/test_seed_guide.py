"""The documents about seeds equal the declarations."""

from __future__ import annotations

import re

from blocks import ROOT

from extcli.seeds import read
from extcli.seeds.schema import reference


def test_the_guide_lists_every_field_with_what_it_accepts():
    text = (ROOT / "docs" / "guide" / "seeds.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) \|$", text, re.MULTILINE)

    assert list(reference()) == rows


def test_the_example_shows_every_field():
    text = (ROOT / "src" / "extcli" / "seeds" / "example.toml").read_text()
    names = {path.rpartition(".")[2].removesuffix("[]") for path, _, _ in reference()}

    assert set() == {name for name in names if not re.search(rf"\b{name}\b", text)}


def test_the_example_file_is_valid():
    assert read(ROOT / "src" / "extcli" / "seeds" / "example.toml", {}).document["polls"]
