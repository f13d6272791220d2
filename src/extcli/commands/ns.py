"""`extcli ns`: the isolated services under `/_ns/NAME` of an emulator."""

from __future__ import annotations

import re

from emulator.contract.names import NAME_PATTERN, NAME_RULE
from extcli.api.call import NAMESPACES
from extcli.cli import argument, command, noun
from extcli.errors import Refused, UsageError
from extcli.output import views
from extcli.output.views import member_view
from extcli.reading import document_of
from extcli.session import Session

app = noun("Namespaces: isolated services at URL/_ns/NAME, each with its own data, clock and connections.")

_URL_VIEW = member_view("url", lambda created: created["url"])
"""The URL of a namespace."""


@command(app, "list")
def list_namespaces(session: Session) -> None:
    """List the namespaces in use. Plain output is one name per line.

    A table also shows the number of records (polls, stores, buffers, links…) and open sockets, the
    age and the last use. `-o json` has these in `details`, with times in seconds.

    A namespace exists from its first use until `ns rm`. The namespace `default`, at the plain URL,
    is not listed. After a restart with a data file, age and last use count from the restart. On
    Redis, a namespace is not listed after a restart until it is used again.

    Example: extcli ns list
    """
    _use_root_url(session)
    session.output.show(session.control().get(NAMESPACES), views.NAMESPACES)


@command(app)
def new(session: Session, name: str = argument("NAME", "The namespace. Default: an unused name.", "")) -> None:
    """Create an empty namespace, and print its URL. Fails if the namespace exists and has data.

    Example: extcli ns new blue
    """
    _create(session, name)


@command(app)
def fork(
    session: Session,
    source: str = argument("FROM", "The namespace to copy; `default` is the namespace at the plain URL."),
    name: str = argument("TO", "The name of the new namespace."),
) -> None:
    """Copy a namespace to a new one, with its data and clock. Prints the URL.

    Tokens of FROM are valid in TO. Exits 2 on Redis, which cannot copy namespaces. Exits 4 if TO
    has data, or if FROM or TO is being copied or deleted.

    Example: extcli ns fork default blue
    """
    _check_name(source)
    _create(session, name, source)


@command(app, loses="the namespace {name} is deleted, with its data, clock and connections", is_control=True)
def rm(session: Session, name: str = argument("NAME", "The namespace.")) -> None:
    """Delete a namespace with its data, clock and connections. The next use creates a new one.

    Example: extcli ns rm blue
    """
    _check_name(name)
    if name == "default":
        raise UsageError("the namespace default cannot be deleted", fix="`extcli reset` deletes its data")
    _use_root_url(session)
    session.output.done(session.control().delete(f"{NAMESPACES}/{name}"), f"deleted namespace {name}")


def _create(session: Session, name: str, source: str | None = None) -> None:
    if name or source:
        _check_name(name)
    _use_root_url(session)
    try:
        created = session.control().send("POST", f"{NAMESPACES}/{name}" if name else NAMESPACES, **{"from": source})
    except Refused as refused:
        if refused.code == "operation.no_fork":
            raise UsageError(refused.what, why=refused.why) from None
        raise
    name = document_of(created, {"namespace": str})["namespace"]
    session.output.show_value({"namespace": name, "url": f"{session.http.url}/_ns/{name}"}, _URL_VIEW)


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME_PATTERN, name):
        raise UsageError(f"{name!r} is not the name of a namespace", why=f"a name has {NAME_RULE}")


def _use_root_url(session: Session) -> None:
    """Send requests to the emulator itself, even if the URL names one of its namespaces."""
    session.http.url = session.http.url.partition("/_ns/")[0]
