"""What a page of the dashboard says without JavaScript: rows, forms and links."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import httpx

from dashboard.forms import forms_in
from support.pages import fetched

_VOID = frozenset({"input", "meta", "link", "br", "img"})


class HtmlPage(HTMLParser):
    """A page as it was received."""

    def __init__(self, page: httpx.Response) -> None:
        super().__init__()
        self.url = str(page.url)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        """All elements, in order, with their attributes."""
        self.tables: list[list[list[str]]] = []
        """The texts of the cells of each table's body, row by row."""
        self.links: dict[str, str] = {}
        """Addresses by text."""
        self.forms = forms_in(page)
        """By id."""
        self.heading = ""
        self.text = ""
        self._open: list[str] = []
        self._href = ""
        self.feed(page.text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and "tbody" in self._open:
            self.tables[-1].append([])
        elif tag in ("td", "th") and "tbody" in self._open:
            self.tables[-1][-1].append("")
        elif tag == "a":
            self._href, self._link = given.get("href") or "", ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
        if tag == "a":
            self.links[self._link.strip()] = self._href

    def handle_data(self, data: str) -> None:
        self.text += data
        if "a" in self._open:
            self._link += data
        if "h1" in self._open:
            self.heading += data
        if "textarea" not in self._open and "tbody" in self._open and ("td" in self._open or "th" in self._open):
            self.tables[-1][-1][-1] += data

    def follow(self, text: str) -> HtmlPage:
        """Return the page that a link leads to."""
        return read_page(urljoin(self.url, self.links[text]))

    def submit(self, name: str, **changes: str) -> Any:
        """Send a form as a browser does, with other values of some fields (`body__value` is `body.value:json`)."""
        form = self.forms[name]
        keys = {key.replace(".", "__").partition(":")[0]: key for key in form.fields}
        fields = form.fields | {keys[key]: value for key, value in changes.items()}
        answer = replace(form, fields=fields).send()
        return HtmlPage(answer) if form.method == "get" else answer.json()


def read_page(url: str) -> HtmlPage:
    """Read a page of the dashboard without JavaScript."""
    return HtmlPage(fetched(url))
