"""The documents agree with the code and the tests."""

from __future__ import annotations

import re
from pathlib import Path

from blocks import ROOT, documents, name_of

from tools import ruling_texts


def test_every_ruling_names_test_files_that_name_it():
    files = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    rulings = ruling_texts.rulings(ruling_texts.SOURCE.read_text())
    named = [(id, file) for id, _, _, tests in rulings for file in re.findall(r"`(test_\w+\.py)`", tests)]

    assert [] == [(id, file) for id, file in named if not re.search(rf"\b{id}\b", files.get(file, ""))]


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_and_anchor_resolves():
    broken = []
    for document in documents():
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", document.read_text()):
            file = document.parent / target if target else document
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append((name_of(document), f"{target}#{anchor}"))

    assert [] == broken
