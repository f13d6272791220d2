"""`extcli connect`: what to paste to have a client speak to the service."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.shared_options import shared
from extcli.commands.connecting import Kind, lines_for
from extcli.output.printer import View
from extcli.output.sanitize import visible
from extcli.session import Session

_LINES = View(
    table=lambda document: "\n".join(visible(line) for line in document["lines"]),
    rows=lambda document: [[visible(line)] for line in document["lines"]],
)


@shared
def connect(
    session: Session,
    client: Annotated[
        Kind, typer.Argument(metavar="js|cpp|unity|curl|env", help="Which kind of client.", show_default=False)
    ],
) -> None:
    """Print the lines that point a client at the service, asking nobody.

    js is for pages with the published SDK, cpp and unity for games with its libraries,
    curl a request to begin from, env for other commands here. They are of --url,
    --client-id and --channel.

    \b
    Examples:
      extcli connect js
      extcli connect unity --url http://127.0.0.1:8282/_ns/blue
      eval "$(extcli connect env --channel 777)"
    """
    session.output.show_value({"client": client, "lines": lines_for(client, session.resolver)}, _LINES)
