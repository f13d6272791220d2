"""Forms of a page, filled in and sent as a browser without JavaScript does."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx

from support.pages import fetched

Attributes = list[tuple[str, str | None]]


@dataclass
class Form:
    """A form with the values of its fields."""

    url: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)

    def send(self, **changes: str) -> httpx.Response:
        """Send the form with some fields changed, whose dots and colons are written as `__` and `_as_`."""
        named = {name.replace("__", ".").replace("_as_", ":"): value for name, value in changes.items()}
        assert named.keys() <= self.fields.keys() | {"step"}, (named, self.fields)
        fields = {**self.fields, **named}
        headers = {"Accept": "text/html", "Origin": "null", "Sec-Fetch-Site": "same-origin"}
        if self.method == "get":
            return httpx.get(self.url, params=fields, headers=headers, timeout=30)
        return httpx.post(self.url, data=fields, headers=headers, timeout=30)


class _Reader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.forms: dict[str, Form] = {}
        self._form: Form | None = None
        self._text: str | None = None
        """The name of the open text area."""
        self._select: str | None = None

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "form":
            self._form = Form(urljoin(self._url, given.get("action", "")), given.get("method", "get"))
            self.forms[given.get("id") or given.get("class", "")] = self._form
        elif self._form is None:
            return
        elif tag == "input":
            self._form.fields[name] = given.get("value", "")
        elif tag == "textarea":
            self._text, self._form.fields[name] = name, ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and ("selected" in given or self._select not in self._form.fields):
            self._form.fields[self._select] = given.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._form is not None and self._text:
            self._form.fields[self._text] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._form and self._text:
            self._form.fields[self._text] = self._form.fields[self._text].removeprefix("\n")
            self._text = None
        elif tag == "select":
            self._select = None
        elif tag == "form":
            self._form = None


def forms_in(page: httpx.Response) -> dict[str, Form]:
    """Return the forms of a page by id, or by class for those without one. A later form replaces an earlier one."""
    reader = _Reader(str(page.url))
    reader.feed(page.text)
    return reader.forms


def forms_of(url: str) -> dict[str, Form]:
    """Return the forms of the page at this URL."""
    return forms_in(fetched(url))
