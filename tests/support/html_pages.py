"""What a page of the dashboard says without JavaScript: rows, forms, links and commands."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import httpx

from support.pages import fetched
from support.program import PROGRAM

_VOID = frozenset({"input", "meta", "link", "br", "img"})


@dataclass
class Form:
    """A form and its fields."""

    method: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)


class HtmlPage(HTMLParser):
    """A page as it was received."""

    def __init__(self, url: str, text: str) -> None:
        super().__init__()
        self.url = url
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        """All elements, in order, with their attributes."""
        self.tables: list[list[list[str]]] = []
        """The texts of the cells of each table's body, row by row."""
        self.links: dict[str, str] = {}
        """Addresses by text."""
        self.forms: dict[str, Form] = {}
        """By id."""
        self.commands: list[str] = []
        self.heading = ""
        self.text = ""
        self._open: list[str] = []
        self._form: Form | None = None
        self._textarea = ""
        self._href = ""
        self.feed(text)
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
        elif tag == "form":
            self._form = Form(given.get("method") or "", given.get("action") or "")
            self.forms[given.get("id") or given.get("class") or ""] = self._form
        elif tag == "input" and self._form:
            self._form.fields[given["name"] or ""] = given.get("value") or ""
        elif tag in ("select", "textarea") and self._form:
            self._textarea = given["name"] or ""
            self._form.fields[self._textarea] = ""
        elif tag == "option" and self._form and "selected" in given:
            self._form.fields[self._textarea] = given["value"] or ""
        if given.get("data-copy"):
            self.commands.append(given["data-copy"] or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
        if tag == "a":
            self.links[self._link.strip()] = self._href
        elif tag == "form":
            self._form = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if "a" in self._open:
            self._link += data
        if "h1" in self._open:
            self.heading += data
        if "textarea" in self._open and self._form:
            self._form.fields[self._textarea] += data.removeprefix("\n")
        elif "tbody" in self._open and ("td" in self._open or "th" in self._open):
            self.tables[-1][-1][-1] += data

    def follow(self, text: str) -> HtmlPage:
        """Return the page that a link leads to."""
        return read_page(_absolute(self.url, self.links[text]))

    def submit(self, name: str, **changes: str) -> Any:
        """Send a form as a browser does, with other values of some fields (`body__value` is `body.value:json`)."""
        form = self.forms[name]
        keys = {key.replace(".", "__").partition(":")[0]: key for key in form.fields}
        fields = form.fields | {keys[key]: value for key, value in changes.items()}
        if form.method == "get":
            return read_page(str(httpx.URL(_absolute(self.url, form.action), params=fields)))
        return httpx.post(_absolute(self.url, form.action), data=fields).json()

    def run(self, command: str) -> str:
        """Run one of the commands that the page shows, and return what it prints."""
        words = shlex.split(command)
        assert words[0] == "extcli"
        variables = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
        done = subprocess.run(
            [PROGRAM, *words[1:]], env=variables, capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout


def read_page(url: str) -> HtmlPage:
    """Read a page of the dashboard without JavaScript."""
    return HtmlPage(url, fetched(url).raise_for_status().text)


def _absolute(url: str, path: str) -> str:
    parts = urlsplit(url)
    return path if "://" in path else f"{parts.scheme}://{parts.netloc}{path}"
