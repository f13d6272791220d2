"""`extcli state`, `store-config` and `json-store`: the stores of an extension."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from string import Template
from typing import Annotated, Any

import typer

from extcli.api.call import encoded
from extcli.cli import argument, command, noun, option
from extcli.cli.json_input import read_document
from extcli.errors import UsageError, refuse_both
from extcli.output import views
from extcli.output.sanitize import visible
from extcli.session import ADMIN, BACKEND, BROADCASTER, VIEWER, Session


@dataclass(frozen=True, slots=True)
class Scope:
    """One store: the last part of its path, and the default identity for reading and for writing (ruling S1)."""

    path: str
    reader: str
    writer: str


STATE = {
    "extension": Scope("extension_state", VIEWER, BACKEND),
    "channel": Scope("channel_state", VIEWER, BROADCASTER),
    "viewer": Scope("viewer_state", VIEWER, VIEWER),
    "extension-viewer": Scope("extension_viewer_state", VIEWER, VIEWER),
    "hidden": Scope("extension_hidden_state", BACKEND, BACKEND),
}
CONFIG = {
    "extension": Scope("extension_config", VIEWER, BACKEND),
    "channel": Scope("channel_config", VIEWER, BROADCASTER),
}


Document = Annotated[
    list[str] | None, argument("JSON|-|@FILE|KEY=JSON", "The object as JSON, or its members as KEY=VALUE.")
]


def scope_argument(scopes: Collection[str]) -> Any:
    """Return the argument that names one of these scopes."""
    names = ", ".join(scopes)

    def checked_scope(name: str) -> str:
        scope = name.replace("_", "-")
        if scope not in scopes:
            raise typer.BadParameter(f"{name!r} is not one of {names}")
        return scope

    return argument("SCOPE", f"One of {names}.", callback=checked_scope)


def _get_state(
    session: Session,
    scope: str = scope_argument(STATE),
    users: str | None = option("--users 1,2,3", "Read the extension-viewer states of these users, as admin."),
    user: str | None = option("--user ID", "Read the viewer store of this user, as backend."),
) -> None:
    """Read a store. Acts as viewer:U1, or as backend for hidden. Plain output is $columns.

    The store `viewer` of another user also needs --channel.

    \b
    Examples:
      extcli state get channel
      extcli state get viewer --user U7 --channel 1001
      extcli state get extension-viewer --users 1,2,3
    """
    refuse_both(user, users, "--user and --users")
    if (user or users) and "viewer" not in scope:
        raise UsageError(f"the store {scope} has no users", fix="read the store viewer or extension-viewer")
    store = STATE[scope]
    service = session.service(ADMIN if users is not None else BACKEND if user is not None else store.reader)
    session.output.show(service.get(store.path, user_ids=users, userID=user), views.MEMBERS_OF_OBJECT)


def _get_config(session: Session, scope: str = scope_argument(CONFIG)) -> None:
    """Read a store. Acts as viewer:U1. Plain output is $columns.

    Example: extcli store-config get channel
    """
    store = CONFIG[scope]
    session.output.show(session.service(store.reader).get(store.path), views.MEMBERS_OF_OBJECT)


def _store_noun(
    name: str, summary: str, scopes: Mapping[str, Scope], get: Callable[..., None], all_path: str, **texts: str
) -> typer.Typer:
    """Return a noun with the verbs `get`, set, patch and all. `texts` are sentences of their help."""
    app = noun(summary)

    def replace(session: Session, scope: str = scope_argument(scopes), document: Document = None) -> None:
        """Replace the object in a store. $writers

        \b
        Examples:
          extcli $name set channel '{"round": 4}'
          extcli $name set channel round=4 theme=dark
        """
        store, content = scopes[scope], read_document(document or [], "the object")
        session.output.done(session.service(store.writer).post(store.path, content), f"replaced {store.path}")

    def empty(session: Session, scope: str = scope_argument(scopes)) -> None:
        """Remove the object in a store, which then reads as {}. $writers

        Example: extcli $name rm channel
        """
        store = scopes[scope]
        session.output.done(session.service(store.writer).post(store.path, {}), f"emptied {store.path}")

    def patch(session: Session, scope: str = scope_argument(scopes), document: Document = None) -> None:
        """Change parts of a store. $writers

        An object is merged, and null removes a member. An array is a JSON Patch.$patch_note

        \b
        Examples:
          extcli $name patch channel round=5 theme=null
          extcli $name patch channel '[{"op": "remove", "path": "/team"}]'
        """
        store, content = scopes[scope], encoded(read_document(document or [], "the patch"))
        session.output.done(session.service(store.writer).send("PATCH", store.path, content), f"patched {store.path}")

    def read_all(session: Session) -> None:
        """Read all stores that a viewer can read. Acts as viewer:U1.

        Example: extcli $name all -o json
        """
        session.output.show(session.service(VIEWER).get(all_path), views.MEMBERS_OF_OBJECT)

    command(app, "get", prints=views.MEMBERS_OF_OBJECT)(get)
    losses = {"set": f"the content of {name} {{scope}} is replaced", "rm": f"{name} {{scope}} is emptied"}
    for verb, function in {"set": replace, "patch": patch, "rm": empty, "all": read_all}.items():
        function.__doc__ = Template(function.__doc__ or "").substitute(name=name, **texts)
        command(app, verb, loses=losses.get(verb, ""))(function)
    return app


state_app = _store_noun(
    "state",
    "State: one JSON object per extension, channel or viewer, kept for 30 days (one day in a sandbox).",
    STATE,
    _get_state,
    "all_state",
    writers="Acts as backend for extension and hidden, as broadcaster for channel, otherwise as viewer:U1.",
    patch_note=" As admin, pass an object of patches by user id to change the extension-viewer states of many users.",
)
store_config_app = _store_noun(
    "store-config",
    "Config: one JSON object per extension or channel, kept forever (one day in a sandbox).",
    CONFIG,
    _get_config,
    "all_config",
    writers="Acts as backend for extension, as broadcaster for channel.",
    patch_note="",
)
json_store_app = noun(
    "JSON stores: objects of up to 2 KiB by id, kept for 14 days. Ids that start with global are extension-wide."
)

Store = Annotated[str, argument("ID", "The store's id; `global…` is one store for all channels.")]


@command(json_store_app, "get", prints=views.MEMBERS_OF_OBJECT)
def get_object(session: Session, store: Store) -> None:
    """Read an object. Acts as viewer:U1. Plain output is $columns.

    Exits 4 if nothing is stored under the id.

    Example: extcli json-store get highscore
    """
    session.output.show(session.service(VIEWER).get("json_store", id=store), views.MEMBERS_OF_OBJECT)


@command(json_store_app, "set", loses="the JSON store {store} is replaced")
def replace_object(session: Session, store: Store, document: Document = None) -> None:
    """Store an object. Acts as broadcaster, or as backend for ids that start with global.

    \b
    Examples:
      extcli json-store set highscore '{"name": "Ann", "score": 4}'
      extcli json-store set global-motd text=hello
    """
    _write_object(session, store, read_document(document or [], "the object"), "stored")


@command(json_store_app, "rm", loses="the JSON store {store} is emptied")
def empty_object(session: Session, store: Store) -> None:
    """Empty an object: it then reads as {}. Acts as broadcaster, or as backend for ids that start with global.

    Example: extcli json-store rm highscore
    """
    _write_object(session, store, {}, "emptied")


def _write_object(session: Session, store: str, content: Any, did: str) -> None:
    service = session.service(BACKEND if store.startswith("global") else BROADCASTER)
    session.output.done(service.post("json_store", content, id=store), f"{did} {visible(store)}")
