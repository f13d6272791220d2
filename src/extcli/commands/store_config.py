"""`extcli store-config`: the config stores. (`config` is this program's own.)"""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.json_input import read_document
from extcli.cli.shared_options import command, noun
from extcli.commands.stores import CONFIG, scope_argument
from extcli.output import views
from extcli.session import VIEWER, Session

app = noun("Config: a JSON object per extension or channel; kept for good, a day in sandbox.")

ScopeName = Annotated[str, scope_argument(CONFIG)]
Document = Annotated[
    list[str] | None,
    typer.Argument(metavar="JSON|-|@FILE|KEY=JSON...", help="The object, or its members.", show_default=False),
]


@command(app)
def get(session: Session, scope: ScopeName) -> None:
    """Read a store. Acts as viewer:U1. Plain output is `key<TAB>JSON`.

    Example: extcli store-config get channel
    """
    store = CONFIG[scope]
    session.output.show(session.service(store.reader).read_store(store.path), views.STORE)


@command(app, "set", loses="what is in config {scope} is replaced")
def replace(session: Session, scope: ScopeName, document: Document = None) -> None:
    """Replace a store's object. Acts as backend for extension, broadcaster for channel.

    Example: extcli store-config set channel theme=dark
    """
    store = CONFIG[scope]
    content = read_document(document or [], "the object")
    session.output.show(session.service(store.writer).replace_store(store.path, content), views.NOTHING)
    session.output.note(f"{store.path} is replaced")


@command(app)
def patch(session: Session, scope: ScopeName, document: Document = None) -> None:
    """Change parts of a store.

    An object merges (null removes), an array is a JSON Patch.

    Example: extcli store-config patch channel theme=null
    """
    store = CONFIG[scope]
    content = read_document(document or [], "the patch")
    session.output.show(session.service(store.writer).patch_store(store.path, content), views.NOTHING)
    session.output.note(f"{store.path} is patched")


@command(app, "all")
def read_all(session: Session) -> None:
    """Read both config stores in one call. Acts as viewer:U1.

    Example: extcli store-config all -o json
    """
    session.output.show(session.service(VIEWER).read_store("all_config"), views.STORE)
