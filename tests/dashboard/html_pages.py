"""What a page of the dashboard says without JavaScript: rows, links, and forms that are filled in and sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import httpx

from support.pages import fetched

_VOID = frozenset({"input", "meta", "link", "br", "img"})


@dataclass
class Form:
    """A form with the values of its fields."""

    url: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)

    def send(self, **changes: str) -> httpx.Response:
        """Send the form as a browser does, with some fields changed: `body__value` is the field `body.value:json`."""
        names = {name.replace(".", "__").partition(":")[0]: name for name in (*self.fields, "step")}
        fields = self.fields | {names[name]: value for name, value in changes.items()}
        headers = {"Accept": "text/html", "Origin": "null", "Sec-Fetch-Site": "same-origin"}
        if self.method == "get":
            return httpx.get(self.url, params=fields, headers=headers, timeout=30)
        return httpx.post(self.url, data=fields, headers=headers, timeout=30)


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
        self.forms: dict[str, Form] = {}
        """By id, or by class for those without one. A later form replaces an earlier one."""
        self.heading = ""
        self.text = ""
        self._open: list[str] = []
        self._href = self._select = self._area = ""
        self._form = Form("", "")
        self.feed(page.text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given, fields = dict(attrs), self._form.fields
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
        elif tag == "form":
            self._form = Form(urljoin(self.url, given.get("action") or ""), given.get("method") or "get")
            self.forms[given.get("id") or given.get("class") or ""] = self._form
        elif tag == "input":
            fields[given.get("name") or ""] = given.get("value") or ""
        elif tag == "textarea":
            self._area = given.get("name") or ""
            fields[self._area] = ""
        elif tag == "select":
            self._select = given.get("name") or ""
        elif tag == "option" and ("selected" in given or self._select not in fields):
            fields[self._select] = given.get("value") or ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
        if tag == "a":
            self.links[self._link.strip()] = self._href
        elif tag == "textarea":
            self._form.fields[self._area] = self._form.fields[self._area].removeprefix("\n")
        elif tag == "form":
            self._form = Form("", "")

    def handle_data(self, data: str) -> None:
        self.text += data
        if "a" in self._open:
            self._link += data
        if "h1" in self._open:
            self.heading += data
        if "textarea" in self._open:
            self._form.fields[self._area] += data
        elif "tbody" in self._open and ("td" in self._open or "th" in self._open):
            self.tables[-1][-1][-1] += data

    def follow(self, text: str) -> HtmlPage:
        """Return the page that a link leads to."""
        return read_page(urljoin(self.url, self.links[text]))

    def submit(self, name: str, **changes: str) -> Any:
        """Send a form; return the page of a search, otherwise the JSON of the response."""
        answer = self.forms[name].send(**changes)
        return HtmlPage(answer) if self.forms[name].method == "get" else answer.json()


def read_page(url: str) -> HtmlPage:
    """Read a page of the dashboard without JavaScript."""
    return HtmlPage(fetched(url))


def forms_of(url: str) -> dict[str, Form]:
    """Return the forms of the page at this URL."""
    return read_page(url).forms
