"""Writes the table of docs/layout.md from docstrings and the rules for imports: `make docs`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.architecture import FLOORS, SRC, trees

PAGE = SRC.parent / "docs" / "layout.md"


def page() -> str:
    return with_parts(PAGE, {"floors of the service": ["| Floor | Room | Subject |", "|---|---|---|", *_floors()]})


def with_parts(path: Path, parts: Mapping[str, list[str]]) -> str:
    """Return a page with its parts made again. Each stands between a comment with its name and `<!-- end -->`."""
    text = path.read_text()
    for name, lines in parts.items():
        pattern = rf"(<!-- {name}: .*? -->\n).*?(<!-- end -->)"
        text, count = re.subn(
            pattern, lambda found, lines=lines: found[1] + "\n".join(lines) + "\n" + found[2], text, flags=re.DOTALL
        )
        assert count == 1, f"{path.name} has no part {name}"
    return text


def _subject(name: str) -> str:
    """Return the first sentence of a module's docstring as one line."""
    text = " ".join((ast.get_docstring(trees()[name]) or "").split())
    return text.partition(". ")[0].replace("|", "\\|").removesuffix(".")


def _floors() -> Iterator[str]:
    """Yield a row for each room, from the top floor down."""
    for floor, rooms in reversed(list(enumerate(FLOORS, 1))):
        for room in rooms:
            ending = "/" if (SRC / "emulator" / room).is_dir() else ".py"
            yield f"| {floor} | `{room}{ending}` | {_subject(f'emulator.{room}')} |"


if __name__ == "__main__":
    PAGE.write_text(page())
