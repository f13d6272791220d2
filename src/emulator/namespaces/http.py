"""`/_ns`, `/_ns/{name}`: lists, creates and drops namespaces. `routing` sends paths below a name to that namespace."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from emulator.core.wire.refusals import invalid_member
from emulator.http.endpoint import Audience, Call, Nothing, Parameter, endpoint
from emulator.namespaces.registry import NamespaceList, Registry

_SOURCE: Final = Parameter("from", "The namespace to copy; empty data when absent.")


class NewNamespace(Struct):
    """The response to a new namespace; a drop returns `{}`."""

    namespace: str


class Wanted(Struct, forbid_unknown_fields=True, rename={"source": "from"}):
    """The body of a call that creates or drops a namespace, as JSON or a form; all members may be absent."""

    name: str = ""
    """The new namespace; a free name if absent."""
    source: str = ""
    """The namespace to copy."""
    drop: str = ""
    """The namespace to drop."""


@endpoint("GET", "/_ns", audience=Audience.CONTROL, answer=NamespaceList)
async def list_namespaces(namespaces: Registry, call: Call) -> NamespaceList:
    """List the namespaces in use, by name; `default` is absent."""
    return await namespaces.listing()


@endpoint("POST", "/_ns", audience=Audience.CONTROL, body=Wanted, answer=NewNamespace, query=(_SOURCE,))
async def change_namespaces(namespaces: Registry, call: Call) -> NewNamespace | Nothing:
    """Create a namespace, or drop the one in the member `drop`."""
    return await _change(namespaces, call, "")


@endpoint("POST", "/_ns/{name}", audience=Audience.CONTROL, body=Wanted, answer=NewNamespace, query=(_SOURCE,))
async def create_namespace(namespaces: Registry, call: Call) -> NewNamespace | Nothing:
    """Create the namespace that the path names. The body may be absent."""
    return await _change(namespaces, call, call.text("name"))


@endpoint("DELETE", "/_ns/{name}", audience=Audience.CONTROL)
async def drop_namespace(namespaces: Registry, call: Call) -> Nothing:
    """Delete a namespace with its data, clock and connections. The next use creates a new one."""
    await namespaces.drop(call.text("name"))
    return Nothing()


async def _change(namespaces: Registry, call: Call, name: str) -> NewNamespace | Nothing:
    """Create or drop the namespace that the path, the query or the body names. All that are present must agree."""
    wanted, source = call.body(Wanted) if call.raw.strip() else Wanted(), call.text("from")
    if wanted.drop:
        if wanted.name or wanted.source:
            problem = "must be absent if name or from is given: a call creates or drops a namespace"
            raise invalid_member("drop", wanted.drop, "no drop, or neither name nor from", problem)
        await namespaces.drop(_agreed_value("drop", wanted.drop, name, "name in the path"))
        return Nothing()
    name = _agreed_value("name", wanted.name, name, "name in the path")
    return NewNamespace(
        await namespaces.create(name, _agreed_value("from", wanted.source, source, "source in the query"))
    )


def _agreed_value(member: str, given: str, other: str, other_name: str) -> str:
    """Return the value that the body or another part of the request gives. Raises `BadRequest` if they differ."""
    if given and other and given != other:
        raise invalid_member(member, given, f"the {other_name}, {other[:64]!r}; leave out one of them")
    return given or other


endpoints: Final = (list_namespaces, change_namespaces, create_namespace, drop_namespace)
