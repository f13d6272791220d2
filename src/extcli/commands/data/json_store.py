"""`extcli json-store`: small objects under ids that the developer chooses."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.json_input import read_document
from extcli.cli.shared_options import command, noun
from extcli.output import views
from extcli.output.sanitize import visible
from extcli.session import BACKEND, BROADCASTER, VIEWER, Session

app = noun(
    "JSON stores: objects of up to 2 KiB by id, kept for 14 days. Ids that start with global are extension-wide."
)

Store = Annotated[str, typer.Argument(metavar="ID", help="The store's id; `global…` is one store for all channels.")]
Document = Annotated[
    list[str] | None, typer.Argument(metavar="JSON|-|@FILE|KEY=JSON", help="The object, or its members.")
]


@command(app, prints=views.STORE)
def get(session: Session, store: Store) -> None:
    """Read an object. Acts as viewer:U1. Plain output is $columns.

    Exits 4 if nothing is stored under the id.

    Example: extcli json-store get highscore
    """
    session.output.show(session.service(VIEWER).read_json_store(store), views.STORE)


@command(app, "set", loses="the JSON store {store} is replaced")
def replace(session: Session, store: Store, document: Document = None) -> None:
    """Store an object. Acts as broadcaster, or as backend for ids that start with global.

    \b
    Examples:
      extcli json-store set highscore '{"name": "Ann", "score": 4}'
      extcli json-store set global-motd text=hello
    """
    content = read_document(document or [], "the object")
    service = session.service(BACKEND if store.startswith("global") else BROADCASTER)
    session.output.show(service.replace_json_store(store, content), views.NOTHING)
    session.output.note(f"stored {visible(store)}")
