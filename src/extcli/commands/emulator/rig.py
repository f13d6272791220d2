"""`extcli rig`: the address of the page that shows an extension's pages side by side."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

import typer

from extcli.cli.shared_options import shared
from extcli.config.settings import DEFAULT_CHANNEL
from extcli.errors import UsageError
from extcli.output import views
from extcli.session import Session


@shared
def rig(
    session: Session,
    page: Annotated[str, typer.Argument(metavar="PAGE", help="The URL of the viewers' page.")],
    viewers: Annotated[int, typer.Option(metavar="N", min=1, max=6, help="The number of viewers.")] = 2,
    config: Annotated[str, typer.Option(metavar="PAGE", help="The config page: a path or a URL.")] = "",
    live: Annotated[str, typer.Option(metavar="PAGE", help="The broadcaster's live page: a path or a URL.")] = "",
    is_opened: Annotated[bool, typer.Option("--open", help="Also open it in the browser.")] = False,
) -> None:
    """Print the address of a page with an extension's pages side by side.

    Each viewer is another user, and the config and live pages are the broadcaster's. Serve
    the pages with any web server; they load /_emulator/platform-helper.js. Sends nothing.

    \b
    Examples:
      extcli rig http://127.0.0.1:8000/panel.html
      extcli rig http://127.0.0.1:8000/panel.html --live live.html --viewers 3
    """
    if not page.startswith(("http://", "https://")):
        raise UsageError(f"{page[:80]!r} is not the URL of a page", fix="begin it with http:// or https://")
    query = {
        "url": page,
        "config": config,
        "live": live,
        "viewers": str(viewers),
        "channel_id": session.resolver.channel() or DEFAULT_CHANNEL,
        "client_id": session.resolver.client_id(),
    }
    given = {name: value for name, value in query.items() if value}
    address = f"{session.resolver.url()}/_emulator/rig?{urlencode(given)}"
    session.output.show_value({"url": address}, views.SOLE_VALUE)
    if is_opened:
        from extcli.running.browser import open_page

        if not open_page(address):
            session.output.note("no browser was found; open the address yourself")
