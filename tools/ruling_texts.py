"""Makes the texts of rulings for `extcli explain` from docs/gaps.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from emulator.contract.rules import RULINGS_FILE

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "docs" / "gaps.md"
FILE = RULINGS_FILE

HEAD = "# `make docs` writes this file from docs/gaps.md.\n"


def page() -> str:
    """Return the content of the file."""
    text = SOURCE.read_text()
    return HEAD + "".join(_rule(each) for each in (*_rulings(text), *_sections(text)))


def rulings(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the id, the choice, the reason and the tests of each ruling. The reason may be empty."""
    for id, body in re.findall(r"^### ([A-Z]\d+)\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE):
        paragraphs = [" ".join(each.split()) for each in body.strip().split("\n\n")]
        named = {kind: rest for kind, _, rest in (each.removeprefix("*").partition(":* ") for each in paragraphs[1:])}
        yield id, paragraphs[0], named.pop("Why", ""), named.pop("Tests")
        assert not named, f"{id}: {named}"


def _rulings(text: str) -> Iterator[dict[str, str]]:
    for id, choice, why, _ in rulings(text):
        yield {"id": id, "text": _plain(choice), "why": _plain(why)}


def _sections(text: str) -> Iterator[dict[str, str]]:
    """Yield the choices that have no number, by heading."""
    for section in re.split(r"^### ", text.partition("## Further choices")[2], flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        items = re.split(r"^- |\n\n(?!- )", body, flags=re.MULTILINE)
        paragraphs = [" ".join(_plain(item).split()) for item in items if item.strip()]
        yield {"id": f"gaps: {title}", "text": "\n".join(paragraphs)}


def _plain(text: str) -> str:
    """Return Markdown without the targets of its links."""
    text = re.sub(r"\[(\d{4})\]\(decisions/[^)]*\)", r"decision \1", text)
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)


def _rule(fields: dict[str, str]) -> str:
    id, *lines = (f"{name} = {json.dumps(text, ensure_ascii=False)}" for name, text in fields.items() if text)
    return "\n".join([f"\n[{id.removeprefix('id = ')}]", *lines, ""])
