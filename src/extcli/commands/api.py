"""`extcli api`: calls any endpoint, with credentials."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from emulator.contract.names import ALIASES
from extcli import bounded_json
from extcli.api.call import CONTROL, SERVICE, encoded
from extcli.api.http import url_of
from extcli.cli import argument, confirm, flag, option, shared
from extcli.cli.confirm import Yes
from extcli.cli.json_input import read_pairs
from extcli.commands.stores import CONFIG, STATE
from extcli.errors import ErrorResponse, refuse_both
from extcli.output.format import Format
from extcli.output.printer import Output
from extcli.output.views import JSON_VALUE
from extcli.reading import read_source
from extcli.session import BROADCASTER, Session

_JSON_OR_LINES = replace(JSON_VALUE, items=lambda document: document if isinstance(document, list) else [document])
_REPLACED_BY_POST = {"json_store", "vote_config", *(scope.path for each in (STATE, CONFIG) for scope in each.values())}
"""The paths below `/v1/e/` to which a POST replaces what is there."""


@shared
def api(
    session: Session,
    method: str = argument("METHOD", "The HTTP method: GET, POST, PUT, PATCH or DELETE."),
    path: str = argument("PATH", "The path below /v1/e/; or a full path, which begins with a slash."),
    fields: list[str] | None = option("-f --field KEY=VALUE", "Add this member to the JSON body. Repeatable."),
    source: str | None = option("--input FILE|-", "Send the content of this file as the body, unchanged."),
    no_auth: bool = flag("--no-auth", "Send the request without an Authorization header."),
    yes: Yes = False,
) -> None:
    """Call any endpoint and print the body of its response, even of an error. Acts as broadcaster.

    Any method can have a body, even GET. With a production profile, calls that delete,
    replace or reset ask for confirmation.

    The format table indents JSON. jsonl prints one line, or one line for each item of an array.
    The other formats print the body unchanged.

    \b
    Examples:
      extcli api GET 'vote?id=lunch'
      extcli api POST 'rank?id=colour' -f 'key="5"'
      extcli api PATCH channel_state -f round=5
      extcli api GET /_emulator/ready --no-auth
    """
    refuse_both(fields, source, "-f and --input")
    body = None
    if source is not None:
        body = read_source(source)
    elif fields:
        body = encoded(read_pairs(fields))
    method = method.upper()
    full_path = path if path.startswith("/") else SERVICE + path
    if _loses_data(method, url_of(session.resolver.url() + full_path, {})):
        confirm.ask_in_production(session, f"{method} {path} deletes, replaces or resets data", yes=yes)
    service = session.service_with(None) if no_auth else session.service(BROADCASTER)
    try:
        _print_body(session.output, service.send(method, full_path, body).content)
    except ErrorResponse as error:
        _print_body(session.output, error.body)
        raise


def _print_body(output: Output, body: bytes) -> None:
    """Print a body: JSON as the format wants it, anything else unchanged."""
    if output.query or output.format in (Format.TABLE, Format.JSONL):
        with suppress(ValueError, RecursionError):
            output.show_value(bounded_json.decoded(body), _JSON_OR_LINES)
            return
    output.body([body])


def _loses_data(method: str, url: str) -> bool:
    """Return whether a call loses data: DELETE, PUT, and POST of a store, of a definition or to the control API.

    The service reads the path of the URL decoded, with slashes that repeat or end it left out, and knows other names.
    """
    place = re.sub("//+", "/", unquote(urlsplit(url).path)).rstrip("/").lower()
    name = place.rpartition(SERVICE)[2]
    posted_over = ALIASES.get(name, name) in _REPLACED_BY_POST or CONTROL in place
    return method in ("DELETE", "PUT") or (method == "POST" and posted_over)
