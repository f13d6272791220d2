"""Writes the code in docs/tokens.md as `connect --sign` prints it: `make docs`."""

from __future__ import annotations

import re

from extcli.commands.connect import SIGNERS, Kind
from extcli.config.flags import Flags
from extcli.config.resolver import Resolver
from tools.layout_page import SRC

PAGE = SRC.parent / "docs" / "tokens.md"
INFOS = {Kind.PYTHON: "python", Kind.NODE: "js", Kind.CSHARP: "csharp"}


def page() -> str:
    """Return the page with its blocks of code made again, one for each language."""
    text = PAGE.read_text(encoding="utf-8")
    for kind, info in INFOS.items():
        code = SIGNERS[kind](Resolver(Flags(), {}))
        text, count = re.subn(
            rf"(^```{info}\n).*?(^```$)", lambda found, code=code: found[1] + code + found[2], text,
            flags=re.DOTALL | re.MULTILINE,
        )  # fmt: skip
        assert count == 1, f"{PAGE.name} needs one block of {info}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
