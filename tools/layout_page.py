"""Writes the tables of docs/layout.md from docstrings and the rules for imports: `make docs`."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from support.architecture import (
    BASICS,
    EMULATOR_IMPORTS,
    EXTCLI_BASICS,
    EXTCLI_IMPORTS,
    FEATURE_IMPORTS,
    ROOMS,
    SRC,
    trees,
)

PAGE = SRC.parent / "docs" / "layout.md"


def page() -> str:
    return with_parts(PAGE, tables())


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


def tables() -> Mapping[str, list[str]]:
    """Return the tables by name, as lines of Markdown."""
    return {
        "service": _table("Path | Subject", _subjects("emulator")),
        **{room: _table("Folder | Subject", _subjects(f"emulator.{room}")) for room in ROOMS},
        "command line": _table("Path | Subject", _subjects("extcli")),
        "imports of features": _table("File | May import", _imports(FEATURE_IMPORTS, ".py", BASICS)),
        "imports of the service": _table("Folder | May import", _imports(EMULATOR_IMPORTS, "/", ())),
        "imports of the command line": _table("Folder | May import", _imports(EXTCLI_IMPORTS, "/", EXTCLI_BASICS)),
    }


def _table(heads: str, rows: Iterable[str]) -> list[str]:
    return [f"| {heads} |", "|---|---|", *rows]


def _subjects(package: str) -> Iterator[str]:
    """Yield a row for each folder of a package, then for each of its files."""
    inside = [name for name in trees() if name.rpartition(".")[0] == package]
    folders = {each.parent.relative_to(SRC).as_posix().replace("/", ".") for each in SRC.rglob("*.py")}
    for name in sorted(inside, key=lambda name: (name not in folders, name)):
        path = name.rpartition(".")[2] + ("/" if name in folders else ".py")
        yield f"| `{path}` | {_subject(name)} |"


def _subject(name: str) -> str:
    """Return the first paragraph of a module's docstring as one line."""
    text = ast.get_docstring(trees()[name]) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|").removesuffix(".")


def _imports(rules: Mapping[str, Collection[str]], ending: str, basics: Collection[str]) -> Iterator[str]:
    """Yield what all may import, then a row for each file or folder with what it may import besides."""
    if basics:
        yield f"| the *basics* | {_names(basics)} |"
    for name, allowed in rules.items():
        more = set(allowed) - set(basics)
        yield f"| `{name}{ending}` | {', '.join(filter(None, ('the basics' if basics else '', _names(more))))} |"


def _names(names: Collection[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    PAGE.write_text(page())
