"""The documents agree with the code and the tests: names, links, tables, guides, and what `make docs` writes."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import pytest
from blocks import ROOT, blocks, documents, name_of

from emulator.control.snapshots.codec import read_header, read_records
from extcli.app import load_noun
from extcli.config import settings
from extcli.seeds import reference
from support.plugin_runs import run_pytest
from tools import ruling_texts
from tools.__main__ import PAGES
from tools.cli_reference import commands

FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
KNOWN = dict(commands())


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


def test_every_command_named_in_a_sentence_exists() -> None:
    texts = {name_of(each): re.sub(FENCED, "", each.read_text()) for each in documents()}
    named = {
        (document, words)
        for document, text in texts.items()
        for words in re.findall(r"`extcli (?:-p \w+ )?((?:[a-z][a-z-]* ?)+)", text)
    }

    assert len(named) > 10
    # Of a group's command two words count, of others one.
    assert [] == [(document, words) for document, words in sorted(named) if not _exists(*words.split())]


def _exists(noun: str, *rest: str) -> bool:
    verbs = getattr(KNOWN.get(noun), "commands", None)
    return noun in KNOWN and (verbs is None or not rest or rest[0] in verbs)


TEXT = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("configuration", "serve"))


def rows(heading: str) -> list[list[str]]:
    """The rows of the table whose heading begins like this, with their cells."""
    found = []
    for table in re.findall(rf"^\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE):
        found += [[cell.strip() for cell in line.strip("|").split(" |")] for line in table.splitlines()]
    return [[cell.strip("` ") if cell.count("`") == 2 else cell for cell in row] for row in found]


def test_the_documented_settings_variables_and_options_equal_the_code():
    # The documented settings equal the code
    coded = {key: (setting.option, setting.variable) for key, setting in settings.SETTINGS.items()}

    assert {**coded, settings.PRODUCTION: ("", "")} == {row[0]: (row[1], row[2]) for row in rows("Profile key")}

    # Every variable is in the tables
    sources = [path.read_text() for path in Path(settings.__file__).parent.parent.rglob("*.py")]
    used = {name for source in sources for name in re.findall(r"\bEXTCLI_(?!SERVE_)[A-Z_]+[A-Z]\b", source)}
    written = {row[2] for row in rows("Profile key")} | {row[0] for row in rows("Variable")}

    assert used == written - {""}

    # The documented options of serve equal the code
    coded = {each.opts[0]: each.envvar for each in load_noun("serve").params if not each.hidden}

    assert coded == {row[0]: row[1] for row in rows("Option")}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_generated_page_is_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path](), "run: make docs"


GUIDES = ROOT / "docs" / "guide"


@pytest.mark.slow
def test_the_examples_of_the_guide_to_pytest_pass(tmp_path: Path):
    shown = blocks(GUIDES / "pytest.md")
    examples = "\n\n".join(block.text for block in shown if block.info == "python")
    (seed,) = (block.text for block in shown if block.info == "toml")

    run = run_pytest(
        tmp_path, "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function",
        files={"test": examples, "lunch.toml": seed},
    )  # fmt: skip

    assert (0, examples.count("def test_")) == (run.exit_code, run.outcomes.get("passed")), run.output


def test_the_guide_to_seeds_lists_every_field_with_what_it_accepts():
    text = (GUIDES / "seeds.md").read_text()
    found = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) \|$", text, re.MULTILINE)

    assert list(reference()) == found


def test_the_snapshot_of_the_guide_is_valid() -> None:
    (shown,) = (each for each in blocks(GUIDES / "snapshots.md") if each.info == "json")
    file = BytesIO(shown.text.encode())

    header = read_header(file)

    assert sum(map(len, read_records(file))) == sum(header.counts.values())
