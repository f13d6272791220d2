"""`extcli state`: the state stores."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.json_input import read_document
from extcli.cli.shared_options import command, noun
from extcli.commands.stores import STATE, scope_argument
from extcli.output import views
from extcli.session import ADMIN, VIEWER, Session

app = noun("State: a JSON object per extension, channel or viewer; kept for 30 days, a day in sandbox.")

ScopeName = Annotated[str, scope_argument(STATE)]
Document = Annotated[
    list[str] | None,
    typer.Argument(metavar="JSON|-|@FILE|KEY=JSON...", help="The object, or its members.", show_default=False),
]


@command(app)
def get(
    session: Session,
    scope: ScopeName,
    users: Annotated[
        str | None,
        typer.Option(metavar="1,2,3", help="These users' extension-viewer states; acts as admin.", show_default=False),
    ] = None,
) -> None:
    """Read a store. Acts as viewer:U1; for hidden as backend.

    Plain output is `key<TAB>JSON`.

    \b
    Examples:
      extcli state get channel
      extcli state get extension-viewer --users 1,2,3
    """
    store = STATE[scope]
    service = session.service(store.reader if users is None else ADMIN)
    session.output.show(service.read_store(store.path, users=users), views.STORE)


@command(app, "set", loses="what is in state {scope} is replaced")
def replace(session: Session, scope: ScopeName, document: Document = None) -> None:
    """Replace a store's object. Acts as who may write it: backend, broadcaster or viewer:U1.

    \b
    Examples:
      extcli state set channel '{"round": 4}'
      extcli state set channel round=4 theme=dark
    """
    store = STATE[scope]
    content = read_document(document or [], "the object")
    session.output.show(session.service(store.writer).replace_store(store.path, content), views.NOTHING)
    session.output.note(f"{store.path} is replaced")


@command(app)
def patch(session: Session, scope: ScopeName, document: Document = None) -> None:
    """Change parts of a store.

    An object merges (null removes), an array is a JSON Patch. Acts as who may write the store.
    As admin, a map of user ids patches many extension-viewer states.

    \b
    Examples:
      extcli state patch channel round=5 theme=null
      extcli state patch viewer '[{"op": "add", "path": "/team", "value": "red"}]'
    """
    store = STATE[scope]
    content = read_document(document or [], "the patch")
    session.output.show(session.service(store.writer).patch_store(store.path, content), views.NOTHING)
    session.output.note(f"{store.path} is patched")


@command(app, "all")
def read_all(session: Session) -> None:
    """Read all states that concern a viewer. Acts as viewer:U1.

    Example: extcli state all --as viewer:U7 -o json
    """
    session.output.show(session.service(VIEWER).read_store("all_state"), views.STORE)
