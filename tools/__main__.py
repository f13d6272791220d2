"""Writes the generated parts of docs/, the table of completion, and the texts of rulings: `make docs`."""

from __future__ import annotations

from tools import cli_reference, completion_table, interface_pages, ruling_texts, short_pages

PAGES = {
    cli_reference.FILE: cli_reference.page,
    completion_table.FILE: completion_table.page,
    ruling_texts.FILE: ruling_texts.page,
    short_pages.LAYOUT: short_pages.layout,
    short_pages.DECISIONS: short_pages.decisions,
    short_pages.TOKENS: short_pages.tokens,
    interface_pages.REST: interface_pages.rest,
    interface_pages.ROLES: interface_pages.roles,
    interface_pages.WEBSOCKET: interface_pages.websocket,
}
"""What makes each file."""

if __name__ == "__main__":
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")
