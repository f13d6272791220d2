"""Renders screens: the whole page, or its regions for an open one: the content of its `<main>`, and its frame."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from emulator.contract.shell import quote_posix, quote_windows, quote_word
from emulator.core.errors import BadRequest, EngineError, NotFound, ServiceError, storage_failed
from emulator.core.observability.request_context import DEFAULT_NAMESPACE as DEFAULT
from emulator.dashboard import commands, refusals, texts
from emulator.dashboard import screens as screens_package
from emulator.dashboard.commands import Command, command_of
from emulator.dashboard.rig.page import frame_calls, rig_page
from emulator.dashboard.screen import Query, Screen, Service, suggested_place
from emulator.dashboard.screens.faults import effect_of
from emulator.dashboard.static_files import version_of
from emulator.dashboard.stream import GONE_EVENT, region_digest, screen_events, with_last_chunk
from emulator.http.response import HTML, PAGE_HEADERS, Reply

PATHS_OUTSIDE_UI = {"overview": "", "rig": "rig"}
"""The pages that are not under `ui/`."""
_SCRIPTS = {"rig": ("rig.js",), "requests": ("trace.js",)}
"""Scripts of single pages; they follow the scripts of all pages."""
_HEADING_PATTERN = re.compile("<h1>(.*?)</h1>", re.DOTALL)
_DEFAULT_URL = "http://127.0.0.1:8282"
"""Where commands find the service without `--url`."""
_SLOW = 5.0
"""Seconds after which a frame is rendered again although nothing changed."""
_MAX_ENTRIES_READ = 2_000
"""Entries of the journal in which the latest refusal is looked for."""
_MAX_NAMESPACES = 30
"""Namespaces that the switcher offers."""
_EVENT_HEADERS = (*PAGE_HEADERS, (b"x-accel-buffering", b"no"))


@cache
def environment() -> Environment:
    """Return the templates. All values are escaped, and an absent one is an error."""
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                            lstrip_blocks=True, auto_reload=False)  # fmt: skip
    templates.filters |= texts.FILTERS
    templates.globals |= {
        "version_of": version_of,
        "typed": commands,
        "quote": quote_posix,
        "is_windows": quote_word is quote_windows,
        "hidden": hidden_fields,
    }
    templates.globals["ui"] = templates.get_template("macros.html").module  # last: macros see the globals set before
    return templates


def hidden_fields(**values: object) -> tuple[dict[str, object], ...]:
    """Return fields of a form that its reader does not see, as the macros of `macros.html` take fields."""
    return tuple({"name": name, "type": "hidden", "value": value} for name, value in values.items())


@cache
def screens() -> dict[str, Screen]:
    """Return all screens by name."""
    files = [module.name for module in pkgutil.iter_modules(screens_package.__path__)]
    return {each.name: each for file in files for each in import_module(f"{screens_package.__name__}.{file}").SCREENS}


@dataclass
class RequestedPage:
    """The page that one request names."""

    service: Service
    origin: str
    """The scheme, host and port of the browser's request."""
    name: str
    """The screen, or `rig`. Empty if there is no such screen."""
    query: Query

    async def render_page(self, fields: Mapping[str, str] | None = None) -> Reply:
        """Return the whole page, or an error page. `fields` are the form's."""
        screen, regions, more = screens().get(self.name), dict[str, str](), ServiceError.more
        try:
            if screen is None:
                name, self.name = self.name, ""
                raise refusals.no_screen(name=name[:60])
            content, status = await self._render_content(screen, fields)
            if fields is None and screen.is_live(self.query):
                regions["main"] = content
        except (ServiceError, EngineError) as error:
            failure = error if isinstance(error, ServiceError) else storage_failed()
            status, more, content = failure.status, failure.more, self.render("error.html", {"error": failure})
        page = await self._wrap_content(content, regions, status)
        page.more += more
        return page

    async def render_rig(self) -> Reply:
        """Return the rig. Its event stream has no content: the extension's frames update themselves."""
        content, calls, status, origin = await rig_page(self.service, self.query, self.base_url, self.render)
        return await self._wrap_content(content, calls, status, frames=origin)

    async def _wrap_content(self, content: str, regions: dict[str, str], status: int, frames: str = "") -> Reply:
        """Return the page with this content of `<main>`.

        `regions` are the elements that its event stream updates, besides the frame, with their content. `frames` is the
        origin that its frames may load from.
        """
        name, is_live = self.name, "main" in regions
        regions = {**regions, "frame": await self._render_frame(has_reload=is_live or status >= 400)}
        given = dict(self.query)
        given.pop("screen", None)
        if not is_live:  # the content must stay: it is edited, the response to a form, or the rig
            given["follow"] = "frame"
        given["shown"] = ".".join(region_digest(*each) for each in regions.items())
        heading = _HEADING_PATTERN.search(content)
        values = {
            "title": Markup(heading[1]).striptags() if heading else "",
            "content": Markup(content),
            "frame": Markup(regions["frame"]),
            "scripts": _SCRIPTS.get(name, ()),
            "events": f"{self.service.prefix}/_emulator/ui/{name}/events?{urlencode(given)}" if name else "",
        }
        more = {b"content-security-policy": f"; frame-src {frames}".encode() if frames else b""}
        headers = tuple((name, value + more.get(name, b"")) for name, value in PAGE_HEADERS)
        body = self.render("layout.html", values).encode("utf-8", "replace")
        return Reply(status, body, content_type=HTML, more=headers)

    def event_stream(self, headers: Mapping[bytes, bytes]) -> Reply:
        """Return the event stream of the page. Raises `NotFound`."""
        screen = screens().get(self.name)
        if screen is None and self.name not in PATHS_OUTSIDE_UI:
            raise refusals.no_screen(name=self.name[:60])
        known = headers.get(b"last-event-id", b"").decode("latin-1") or self.query["shown"]
        if self.query["follow"] == "frame":
            screen = None
        period = screen.refresh_seconds if screen else _SLOW
        body = screen_events(self.service, period, lambda: self._render_regions(screen), known)
        body = self.service.dispatcher.held.stream(body)
        if self.service.name != DEFAULT:
            body = with_last_chunk(body, GONE_EVENT)
        return Reply(200, body, content_type=b"text/event-stream", more=_EVENT_HEADERS)

    async def _render_regions(self, screen: Screen | None) -> dict[str, str]:
        """Return the regions of the page to render: content and frame; without a screen, frame and calls of the rig.

        Raises `ServiceError` and `EngineError`.
        """
        regions = {} if screen is None else {"main": (await self._render_content(screen, None))[0]}
        if self.name == "rig":
            regions |= frame_calls(self.service, self.query, self.base_url, self.render)
        return regions | {"frame": await self._render_frame(has_reload=screen is not None)}

    async def _render_content(self, screen: Screen, fields: Mapping[str, str] | None) -> tuple[str, int]:
        """Return the content of a page and its HTTP status.

        It is 404 if the page says that its record does not exist yet, and 400 if it reports a problem beside a form.
        """
        if fields is None:
            values = await screen.read(self.service, self.query)
        elif screen.submit is not None:
            values = await screen.submit(self.service, self.query, Query(fields))
        else:
            raise refusals.no_forms(screen=screen.name)
        text = self.render(f"{screen.name}.html", values)
        if values.get("problem"):
            return text, BadRequest.status
        return text, NotFound.status if values.get("is_missing") else 200

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """Render a template with these values and those that all templates have."""
        common = {
            "service": self.service,
            "now": self.service.clock.now(),
            "query": self.query,
            "suggested": suggested_place(self.service, self.query),
            "prefix": self.service.prefix,
            "root": self.service.settings.root_path,
            "namespace": self.service.name,
            "base": self.base_url,
            "call": f"{self.service.prefix}/_emulator/call",
            "url": self._url,
            "cli": self._cli,
        }
        given = {**common, **values}
        parts = environment().get_template("parts.html").make_module(given)
        return environment().get_template(template).render({**given, "parts": parts})

    @property
    def base_url(self) -> str:
        """The URL of the service, as clients are given it."""
        return f"{self.origin}{self.service.prefix}"

    def _url(self, screen: str, **query: object) -> str:
        """Return the path of a screen; parameters that are `None` or empty are left out."""
        given = {name: value for name, value in query.items() if value not in (None, "")}
        path = f"{self.service.prefix}/_emulator/{PATHS_OUTSIDE_UI.get(screen, f'ui/{screen}')}"
        return f"{path}?{urlencode(given)}" if given else path

    def _cli(self, *words: object) -> str | Command:
        """Return an `extcli` command line with the options that reach this service."""
        url = [] if self.base_url == _DEFAULT_URL else ["--url", self.base_url]
        return command_of(["extcli", *words, *url])

    async def _render_frame(self, *, has_reload: bool) -> str:
        """Return the header and the navigation. Both link to the page itself if it updates itself, or failed."""
        shown = dict(self.query)
        for name in ("screen", "shown", "follow"):
            shown.pop(name, None)
        values = {
            "current": self.name,
            "path": PATHS_OUTSIDE_UI.get(self.name, f"ui/{self.name}"),
            "titles": {name: screen.title for name, screen in screens().items()} | {"rig": "Rig"},
            "reload": self._url(self.name or "overview", **shown) if has_reload else "",
        }
        return self.render("frame.html", values | await _frame_values(self.service))


async def _frame_values(service: Service) -> dict[str, Any]:
    """Return the values that the header and navigation show. Values from storage are left out if storage fails."""
    counts: dict[str, int] = {}
    names: list[str] = []
    shown_on = {kind.name: kind.screen or kind.name for kind in service.contents.kinds}
    with suppress(EngineError):
        held = await service.contents.count_by_kind()
        for name, screen in shown_on.items():
            counts[screen] = counts.get(screen, 0) + held[name]
        names = await service.namespaces.recent_names() if service.namespaces is not None else []
    faults = [effect_of(each.fault) for each in service.faults.all().values() if not each.is_over]
    recent = service.journal.newest(_MAX_ENTRIES_READ)
    live = {"requests": len(service.journal), "sockets": service.sockets, "faults": len(faults)}
    return {
        "groups": {
            "": ("overview",),
            "Data": tuple(dict.fromkeys(shown_on.values())),
            "Live": ("requests", "broadcasts", "sockets", "rig"),
            "Control": ("clock", "faults", "namespaces"),
        },
        "counts": {**counts, **live, "namespaces": len(names)},
        "namespaces": [DEFAULT, *names[:_MAX_NAMESPACES]],
        "faults": faults,
        "refused": next((each for each in recent if each.reason and not each.is_probe), None),
    }
