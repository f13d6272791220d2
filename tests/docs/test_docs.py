"""The documents agree with the code and the tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from blocks import ROOT, documents, name_of

from tools import decision_index, ruling_texts

TESTS = ROOT / "tests"


def marked_rulings() -> dict[str, set[str]]:
    """Each ruling in a `ruling` mark, and the test files with that mark."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for ruling in _marks(ast.parse(path.read_text())):
            found.setdefault(ruling, set()).add(path.name)
    return found


def _marks(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "ruling":
            yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))


def table() -> list[tuple[str, set[str]]]:
    """The rulings of docs/gaps.md, each with the test files that pin it."""
    found = ruling_texts.rulings(ruling_texts.SOURCE.read_text())
    return [(id, set(re.findall(r"`(test_\w+\.py)`", tests))) for id, _, _, tests in found]


def rows() -> dict[str, set[str]]:
    return dict(table())


def test_every_marked_ruling_is_documented_once_with_its_tests():
    assert sorted(marked_rulings()) == sorted(ruling for ruling, _ in table())


def test_the_test_files_of_a_ruling_are_marked_with_it():
    marked = marked_rulings()

    assert {ruling: set() for ruling in rows()} == {ruling: files - marked[ruling] for ruling, files in rows().items()}


def test_no_document_stores_a_token_on_disk():
    """An access token cannot be revoked and must not be stored."""
    stores = re.compile(r"extcli[^\n|)]* (?:token (?:mint|sandbox|refresh)|pin request --game)\b[^\n|)]*>[^\n]*")

    assert {} == {name_of(each): found for each in documents() if (found := stores.findall(each.read_text()))}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_changelog_is_short_until_a_release():
    text = (ROOT / "CHANGELOG.md").read_text()

    # A merge by union brings old lines back: take the file as it was on the branch below, and add one line.
    assert len(text.splitlines()) <= 60 or re.search(r"^## \d", text, re.MULTILINE)


def test_the_readme_links_to_every_document():
    readme = (ROOT / "README.md").read_text()
    linked = set(re.findall(r"\]\(([^)#]+)\)", readme))
    written = {name_of(each) for each in documents()} - {"README.md"}

    # A link to a folder counts for the documents in it.
    assert set() == {each for each in written if not linked & {each, str(Path(each).parent)}}


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


def test_every_decision_has_a_status_and_a_date_and_is_in_the_list():
    assert decision_index.page() == decision_index.PAGE.read_text()


def test_every_loop_that_waits_for_a_program_ends_with_that_program():
    texts = [path.read_text() for path in (*documents(), *(ROOT / "examples").rglob("*.sh"))]
    loops = [line for text in texts for line in re.findall(r"(?:until|while) [^\n]*; do\b.*?\bdone\b", text, re.DOTALL)]

    assert len(loops) >= 4
    assert not [loop for loop in loops if "kill -0" not in loop and "while read" not in loop]


def test_the_documents_speak_of_the_product_only():
    # Paths of a developer's machine and addresses of package mirrors do not belong here.
    private = re.compile(r"(?<![\w.])/(work|tmp|home|root|Users)/|\bindex-url\b|\bpypi\b", re.IGNORECASE)
    found = {(name_of(each), match[0]) for each in documents() for match in private.finditer(each.read_text())}

    assert set() == found


def faults() -> list[tuple[Path, str]]:
    """The commands of docs/reliability.md: a test file, and the word after `-k`."""
    lines = (ROOT / "docs" / "reliability.md").read_text().splitlines()
    rows = [line.split("|")[-2] for line in lines if line.startswith("| ") and not line.startswith("| Fault")]
    found = [re.search(r"pytest (?:-s )?(tests/\S+?\.py)(?: -k (\w+))?`", row) for row in rows]
    assert all(found), [row for row, command in zip(rows, found, strict=True) if not command]
    return [(ROOT / command[1], command[2] or "") for command in found if command]


def chosen(path: Path, word: str) -> list[str]:
    """The tests of a file that `-k word` selects, by their names and parameters."""
    named = re.findall(r"def (test_\w+)", path.read_text())
    parameters = re.findall(r"parametrize\(.*?\ndef", path.read_text(), re.DOTALL)
    return [each for each in named + parameters if word in each]


def test_every_command_of_the_fault_table_selects_a_test():
    assert [] == [(path.name, word) for path, word in faults() if not chosen(path, word)]


def test_every_fault_test_is_in_the_table():
    written = {path.name for path in (TESTS / "faults").glob("test_*.py")}

    assert set() == written - {path.name for path, _ in faults()}


def test_every_quoted_log_line_is_in_the_source():
    table = re.findall(r"^\| (.+?) \|", (ROOT / "docs" / "operating.md").read_text(), re.MULTILINE)
    quoted = [quote for cell in table for quote in re.findall(r'"([^"]+)"', cell)]
    source = "".join(path.read_text() for path in (ROOT / "src" / "emulator").rglob("*.py"))
    fixed = {piece.strip(" :") for quote in quoted for piece in re.split(r"…|\(|\)|-?\d+|POST /v1/e/vote|Redis", quote)}

    assert len(quoted) > 5
    assert set() == {piece for piece in fixed if len(piece) > 5 and piece not in source and not _of_sqlite(piece)}


def test_every_documented_metric_is_served():
    told = set(re.findall(r"`(emulator_\w+)`", (ROOT / "docs" / "operating.md").read_text()))
    control = ROOT / "src" / "emulator" / "control" / "operation"
    source = "".join(path.read_text() for path in control.glob("*.py"))

    assert told
    assert set() == {name for name in told if f'"{name.removesuffix("_total")}"' not in source}


def _of_sqlite(text: str) -> bool:
    """Whether this is SQLite's own message for a full disk."""
    return "database or disk is full" in text


DATED = re.compile(
    r"\b(?:[Ss]omebody|[Nn]obody|[Ww]hoever|[Ww]hom|at hand|goes without|for ever|anew|or else|is told of|bears? with"
    r"|[Bb]eside|[Tt]hat of|[Tt]hose of|by now|[Ll]ikewise|hears?|(?:is|are) [45]\d\d)\b"
)


def test_the_documents_use_plain_words():
    found = {(name_of(each), match[0]) for each in documents() for match in DATED.finditer(each.read_text())}

    assert set() == found


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "tools"])
def test_docstrings_use_plain_words(folder: str):
    found = {
        (name_of(path), match[0])
        for path in (ROOT / folder).rglob("*.py")
        for docstring in re.findall(r'^ *"""(.*?)"""$', path.read_text(), re.MULTILINE | re.DOTALL)
        for match in DATED.finditer(re.sub("`[^`]*`", "", docstring))
    }

    assert set() == found
