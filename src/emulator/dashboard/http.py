"""Addresses of the dashboard. The dashboard's other modules are imported when the first page is read."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from emulator.control.gate import SIGN_IN_PATH, TOKEN_COOKIE
from emulator.core.wire.url import parse_query
from emulator.http.endpoint import Audience, Call, Endpoint, Parameter, endpoint
from emulator.http.response import HTML, PAGE_HEADERS, Reply

if TYPE_CHECKING:
    from emulator.dashboard.pages import RequestedPage

_SEE_OTHER = 303
_REDIRECTED_NAMES = (
    "ui", "overview", "polls", "rankings", "buffers", "stores", "codes", "pins", "links", "trivia", "purchases",
    "broadcasts", "requests", "namespaces",
)  # fmt: skip
"""The screens whose name is not also a path of the control API, and the path above all."""


class Links(Struct):
    """The response of `/` to programs."""

    name: str
    version: str
    environment: str
    documentation: str
    dashboard: str


@endpoint("GET", "/", audience=Audience.PAGE, answer=Links)
async def read_root(service: Any, call: Call) -> Links | Reply:
    """Redirect a browser to the dashboard; other clients get JSON with links."""
    if b"text/html" in call.headers.get(b"accept", b""):
        return _redirect(service, "")
    readiness = await service.control.readiness()
    schema, dashboard = f"{service.prefix}/schema", f"{service.prefix}/_emulator/"
    return Links("extcli", readiness.version, readiness.environment, schema, dashboard)


@endpoint("GET", "/_emulator", audience=Audience.PAGE)
async def read_overview(service: Any, call: Call) -> Reply:
    """Show the overview."""
    page = await _requested_page(service, call, "overview")
    return await page.render_page()


@endpoint("GET", SIGN_IN_PATH, audience=Audience.PAGE, query=(Parameter("token", "The control token."),))
async def sign_in(service: Any, call: Call) -> Reply:
    """Take the control token from the URL into a cookie, and send the browser to the dashboard."""
    token, path = service.settings.control_token, service.settings.root_path or "/"
    # Lax, so that the redirect has it when the link is in another page. The gate refuses other sites by their origin.
    cookie = (b"set-cookie", f"{TOKEN_COOKIE}={token}; Path={path}; HttpOnly; SameSite=Lax".encode())
    return _redirect(service, "", *([cookie] if token else []))


def _redirect_to_screen(screen: str) -> Endpoint:
    """Return an endpoint that redirects from an address that people guess to a screen."""

    @endpoint("GET", f"/_emulator/{screen}", audience=Audience.PAGE)
    async def lead(service: Any, call: Call) -> Reply:
        return _redirect(service, "" if screen in ("ui", "overview") else f"ui/{screen}")

    return lead


def _redirect(service: Any, path: str, *headers: tuple[bytes, bytes]) -> Reply:
    """Return a redirect to a page of the dashboard, with these headers."""
    location = (b"location", f"{service.prefix}/_emulator/{path}".encode())
    return Reply(_SEE_OTHER, b"", content_type=HTML, more=(location, *headers, *PAGE_HEADERS))


@endpoint("GET", "/_emulator/ui/{screen}", audience=Audience.PAGE)
async def read_screen(service: Any, call: Call) -> Reply:
    """Show a screen."""
    page = await _requested_page(service, call)
    return await page.render_page()


@endpoint("POST", "/_emulator/ui/{screen}", audience=Audience.PAGE, limit="frame")
async def submit_form(service: Any, call: Call) -> Reply:
    """Show a screen with the effect of the fields of a form."""
    page = await _requested_page(service, call)
    return await page.render_page(parse_query(call.raw))


@endpoint("GET", "/_emulator/ui/{screen}/events", audience=Audience.PAGE, held=True)
async def follow_screen(service: Any, call: Call) -> Reply:
    """Send a screen again whenever it changes, as server-sent events."""
    page = await _requested_page(service, call)
    return page.event_stream(call.headers)


@endpoint("GET", "/_emulator/rig", audience=Audience.PAGE)
async def read_rig(service: Any, call: Call) -> Reply:
    """Show pages of an extension side by side."""
    page = await _requested_page(service, call, "rig")
    return await page.render_rig()


@endpoint("GET", "/_emulator/ui/static/{file}", audience=Audience.PAGE)
async def read_static_file(service: object, call: Call) -> Reply:
    """Get a style sheet or a script."""
    from emulator.dashboard.static_files import static_file

    return static_file(call.text("file"))


async def _requested_page(service: Any, call: Call, name: str = "") -> RequestedPage:
    """Return the page of this name, or of the one in the path, when it can be shown."""
    name = name or call.text("screen")
    await asyncio.to_thread(_load_page_code, name)
    from emulator.dashboard.pages import RequestedPage
    from emulator.dashboard.screen import Query

    origin = f"{call.scheme}://{call.headers.get(b'host', b'').decode('latin-1')}"
    return RequestedPage(service, origin, name, Query(call.query))


@lru_cache(maxsize=100)
def _load_page_code(name: str) -> None:
    """Import all screens, and compile the template of a page, once. In a thread: both take tens of milliseconds."""
    from emulator.dashboard import pages

    if name in pages.screens() or name in pages.PATHS_OUTSIDE_UI:
        for template in ("layout.html", f"{name}.html"):
            pages.environment().get_template(template)


redirects = tuple(map(_redirect_to_screen, _REDIRECTED_NAMES))
