"""`make docs` has written what is generated from the code."""

from __future__ import annotations

from pathlib import Path

import pytest
from blocks import ROOT

from tools import cli_reference, decision_index, interface_pages, layout_page, ruling_texts

PAGES = {
    cli_reference.FILE: cli_reference.page,
    decision_index.PAGE: decision_index.page,
    layout_page.PAGE: layout_page.page,
    ruling_texts.FILE: ruling_texts.page,
    **{path: lambda path=path: interface_pages.pages()[path] for path in interface_pages.pages()},
}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_generated_page_is_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path](), "run: make docs"
