"""The documents and their fenced blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is the number of its first line of text."""

    document: Path
    line: int
    info: str
    text: str

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Each `$ command` of a transcript, with the output shown below it."""
        found: list[tuple[str, str]] = []
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
        return found


def documents() -> list[Path]:
    """Every Markdown file of the project."""
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        ROOT / "SECURITY.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("*.md")),
    ]


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def blocks(document: Path) -> list[Block]:
    """The blocks of a document, in order."""
    text = document.read_text()
    return [
        Block(document, text[: found.start()].count("\n") + 2, found[1], found[2]) for found in FENCE.finditer(text)
    ]
