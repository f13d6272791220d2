"""`extcli state`, `store-config` and `json-store`: the stores of an extension."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from string import Template
from typing import Annotated, Any

import typer

from extcli.cli import argument, command, noun, option
from extcli.cli.json_input import read_document
from extcli.errors import UsageError
from extcli.output import views
from extcli.output.sanitize import visible
from extcli.session import ADMIN, BACKEND, BROADCASTER, VIEWER, Session


@dataclass(frozen=True, slots=True)
class Scope:
    """One store: the last part of its path, and the default identity for reading and for writing (ruling S1)."""

    path: str
    reader: str
    writer: str


@dataclass(frozen=True, slots=True)
class StoreNoun:
    """The differences between `state` and `store-config`. `writers` and `patch_note` are sentences of the help."""

    name: str
    summary: str
    scopes: Mapping[str, Scope]
    all_path: str
    writers: str
    patch_note: str = ""
    has_users: bool = False
    """Whether `get` can read the stores of named users."""


STATE = StoreNoun(
    name="state",
    summary="State: one JSON object per extension, channel or viewer, kept for 30 days (in sandbox one day).",
    scopes={
        "extension": Scope("extension_state", VIEWER, BACKEND),
        "channel": Scope("channel_state", VIEWER, BROADCASTER),
        "viewer": Scope("viewer_state", VIEWER, VIEWER),
        "extension-viewer": Scope("extension_viewer_state", VIEWER, VIEWER),
        "hidden": Scope("extension_hidden_state", BACKEND, BACKEND),
    },
    all_path="all_state",
    writers="Acts as backend for extension and hidden, as broadcaster for channel, otherwise as viewer:U1.",
    patch_note=" As admin, a map of user ids to patches changes many extension-viewer states.",
    has_users=True,
)
CONFIG = StoreNoun(
    name="store-config",
    summary="Config: one JSON object per extension or channel, kept forever (in sandbox one day).",
    scopes={
        "extension": Scope("extension_config", VIEWER, BACKEND),
        "channel": Scope("channel_config", VIEWER, BROADCASTER),
    },
    all_path="all_config",
    writers="Acts as backend for extension, as broadcaster for channel.",
)

Users = Annotated[str | None, option("--users 1,2,3", "Read the extension-viewer states of these users, as admin.")]
OneUser = Annotated[str | None, option("--user ID", "Read the viewer store of this user, as backend.")]
Document = Annotated[
    list[str] | None, argument("JSON|-|@FILE|KEY=JSON", "The object as JSON, or its members as KEY=VALUE.")
]


def store_app(stores: StoreNoun) -> typer.Typer:
    """Return the Typer app of a noun, with the verbs get, set, patch and all."""
    app = noun(stores.summary)

    def add(name: str, function: Callable[..., None], *, loses: str = "") -> None:
        function.__doc__ = Template(function.__doc__ or "").safe_substitute(
            name=stores.name, writers=stores.writers, patch_note=stores.patch_note
        )
        command(app, name, loses=loses, prints=views.STORE)(function)

    add("get", _get_command_with_users(stores) if stores.has_users else _get(stores))
    add("set", _set(stores), loses=f"the content of {stores.name} {{scope}} is replaced")
    add("patch", _patch(stores))
    add("all", _all_command(stores))
    return app


def _get(stores: StoreNoun) -> Callable[..., None]:
    def get(session: Session, scope: str = scope_argument(stores.scopes)) -> None:
        """Read a store. Acts as viewer:U1. Plain output is $columns.

        Example: extcli $name get channel
        """
        store = stores.scopes[scope]
        session.output.show(session.service(store.reader).read_store(store.path), views.STORE)

    return get


def _get_command_with_users(stores: StoreNoun) -> Callable[..., None]:
    def get(
        session: Session, scope: str = scope_argument(stores.scopes), users: Users = None, user: OneUser = None
    ) -> None:
        """Read a store. Acts as viewer:U1, or as backend for hidden. Plain output is $columns.

        The store `viewer` of another user also needs --channel.

        \b
        Examples:
          extcli $name get channel
          extcli $name get viewer --user U7 --channel 1001
          extcli $name get extension-viewer --users 1,2,3
        """
        if user is not None and users is not None:
            raise UsageError("--user and --users exclude each other")
        if (user or users) and "viewer" not in scope:
            raise UsageError(f"the store {scope} has no users", fix="read viewer or extension-viewer")
        store = stores.scopes[scope]
        service = session.service(ADMIN if users is not None else BACKEND if user is not None else store.reader)
        session.output.show(service.read_store(store.path, users=users, user=user), views.STORE)

    return get


def _set(stores: StoreNoun) -> Callable[..., None]:
    def replace(session: Session, scope: str = scope_argument(stores.scopes), document: Document = None) -> None:
        """Replace the object in a store. $writers

        \b
        Examples:
          extcli $name set channel '{"round": 4}'
          extcli $name set channel round=4 theme=dark
        """
        store = stores.scopes[scope]
        content = read_document(document or [], "the object")
        session.output.show(session.service(store.writer).replace_store(store.path, content), views.NOTHING)
        session.output.note(f"replaced {store.path}")

    return replace


def _patch(stores: StoreNoun) -> Callable[..., None]:
    def patch(session: Session, scope: str = scope_argument(stores.scopes), document: Document = None) -> None:
        """Change parts of a store. $writers

        An object is merged, and null removes a member. An array is a JSON Patch.$patch_note

        \b
        Examples:
          extcli $name patch channel round=5 theme=null
          extcli $name patch channel '[{"op": "remove", "path": "/team"}]'
        """
        store = stores.scopes[scope]
        content = read_document(document or [], "the patch")
        session.output.show(session.service(store.writer).patch_store(store.path, content), views.NOTHING)
        session.output.note(f"patched {store.path}")

    return patch


def _all_command(stores: StoreNoun) -> Callable[..., None]:
    def read_all(session: Session) -> None:
        """Read all stores that a viewer can read. Acts as viewer:U1.

        Example: extcli $name all -o json
        """
        session.output.show(session.service(VIEWER).read_store(stores.all_path), views.STORE)

    return read_all


def scope_argument(scopes: Collection[str]) -> Any:
    """Return the argument that names one of these scopes."""
    names = ", ".join(scopes)

    def checked_scope(name: str) -> str:
        scope = name.replace("_", "-")
        if scope not in scopes:
            raise typer.BadParameter(f"{name!r} is not one of {names}")
        return scope

    return argument("SCOPE", f"One of {names}.", callback=checked_scope, autocompletion=lambda: list(scopes))


state_app = store_app(STATE)
store_config_app = store_app(CONFIG)
json_store_app = noun(
    "JSON stores: objects of up to 2 KiB by id, kept for 14 days. Ids that start with global are extension-wide."
)

Store = Annotated[str, argument("ID", "The store's id; `global…` is one store for all channels.")]


@command(json_store_app, "get", prints=views.STORE)
def get_object(session: Session, store: Store) -> None:
    """Read an object. Acts as viewer:U1. Plain output is $columns.

    Exits 4 if nothing is stored under the id.

    Example: extcli json-store get highscore
    """
    session.output.show(session.service(VIEWER).read_json_store(store), views.STORE)


@command(json_store_app, "set", loses="the JSON store {store} is replaced")
def replace_object(session: Session, store: Store, document: Document = None) -> None:
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
