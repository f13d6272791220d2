"""Writes the parts of pages that are short: the layout, the list of decisions, and the code that signs tokens."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from extcli.commands.connect import SIGNING_WRITERS, ClientKind
from extcli.config.flags import Flags
from extcli.config.resolver import Resolver
from support.architecture import FLOORS, SRC, trees

DOCS = SRC.parent / "docs"
LAYOUT = DOCS / "layout.md"
DECISIONS = DOCS / "decisions" / "README.md"
TOKENS = DOCS / "tokens.md"
LANGUAGES = {ClientKind.PYTHON: "python", ClientKind.NODE: "js", ClientKind.CSHARP: "csharp"}
DECISIONS_HEAD = """\
# Decisions

Why the unusual parts are as they are. A decision that another one replaces stays, and says which.

| Decision | Status |
|---|---|
"""


def with_parts(path: Path, parts: Mapping[str, list[str]]) -> str:
    """Return a page with its parts made again. Each stands between a comment with its name and `<!-- end -->`."""
    text = path.read_text()
    for name, lines in parts.items():
        text = _replaced(text, rf"(<!-- {name}: .*? -->\n).*?(<!-- end -->)", "\n".join(lines) + "\n")
    return text


def _replaced(text: str, pattern: str, content: str) -> str:
    """Return a text with new content between the two groups of a pattern, which must occur once."""
    text, count = re.subn(pattern, lambda found: found[1] + content + found[2], text, flags=re.DOTALL | re.MULTILINE)
    assert count == 1, f"{pattern} occurs {count} times"
    return text


def layout() -> str:
    """Return docs/layout.md with the floors of the service, from docstrings and the rules for imports."""
    return with_parts(LAYOUT, {"floors of the service": ["| Floor | Room | Subject |", "|---|---|---|", *_floors()]})


def _floors() -> Iterator[str]:
    """Yield a row for each room, from the top floor down."""
    for floor, rooms in reversed(list(enumerate(FLOORS, 1))):
        for room in rooms:
            ending = "/" if (SRC / "emulator" / room).is_dir() else ".py"
            about = " ".join((ast.get_docstring(trees()[f"emulator.{room}"]) or "").split())
            subject = about.partition(". ")[0].replace("|", "\\|").removesuffix(".")
            yield f"| {floor} | `{room}{ending}` | {subject} |"


def decisions() -> str:
    """Return the list of decisions. Raises `ValueError` for one without number, title, status or date."""
    rows = []
    for number, path in enumerate(sorted(DECISIONS.parent.glob("[0-9]*.md")), start=1):
        head = rf"# {number:04} (.+)\n\n\*(Accepted|Replaced by \d{{4}}) (\d{{4}}-\d\d-\d\d)\.\*\n\n"
        found = re.match(head, path.read_text())
        if found is None or not path.name.startswith(f"{number:04}-"):
            raise ValueError(f"{path.name} does not begin with number {number:04}, title, status and date")
        title, status, day = found.groups()
        rows.append(f"| [{number:04} {title}]({path.name}) | {status}, {day} |\n")
    return DECISIONS_HEAD + "".join(rows)


def tokens() -> str:
    """Return docs/tokens.md with the code that `connect --sign` prints, one block for each language."""
    text = TOKENS.read_text()
    for kind, language in LANGUAGES.items():
        text = _replaced(text, rf"(^```{language}\n).*?(^```$)", SIGNING_WRITERS[kind](Resolver(Flags(), {})))
    return text
