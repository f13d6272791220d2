"""Refusals of namespaces."""

from __future__ import annotations

from emulator.contract.names import NAME_RULE
from emulator.core.errors import BadRequest, Conflict, Facts, NotFound, TooManyRequests, refusal

_RULE = "docs: Namespaces"
_NOT_FOUND = (NotFound, "No such namespace", _RULE)
_CONFLICT = (Conflict, "Namespace in use", _RULE)


@refusal(*_NOT_FOUND, "The namespace does not exist, and this caller cannot create it",
         "Create it first: `extcli ns new {name}`.")  # fmt: skip
def not_created(*, name: str) -> Facts:
    detail = f"{name}: the namespace does not exist; web pages of another origin, and calls to a host name not in "
    detail += f"--control-host, cannot create namespaces: run `extcli ns new {name}` first, or call an IP address"
    return Facts(detail, f"namespace {name}, which does not exist", "a namespace that exists")


@refusal(*_NOT_FOUND, "The source namespace is not in use", "Fork a namespace that `extcli ns list` lists.")
def no_source(*, name: str) -> Facts:
    detail = f"from: the namespace {name} is not in use; `extcli ns list` lists the namespaces in use"
    return Facts(detail, f"namespace {name}, not in use", "a namespace in use")


@refusal(*_CONFLICT, "The namespace cannot be a copy of itself", "Name a source other than {name}.")
def copy_of_itself(*, name: str) -> Facts:
    detail = f"the namespace {name} cannot become a copy of itself"
    return Facts(detail, f"namespace {name}, the source of the copy", "another name")


@refusal(*_CONFLICT, "Another call is changing the namespace", "Repeat the call later.")
def being_changed(*, name: str, change: str) -> Facts:
    detail = f"the namespace {name} is being {change}; repeat the call later"
    return Facts(detail, f"namespace {name}, being {change}", "a namespace that no other call copies or drops")


@refusal(*_CONFLICT, "The namespace has data", "Drop it first with `extcli ns rm {name}`, or choose another name.")
def has_data(*, name: str) -> Facts:
    detail = f"the namespace {name} has data; `extcli ns rm {name}` drops it"
    return Facts(detail, f"namespace {name}, with data", "an empty or new namespace")


@refusal(TooManyRequests, "Too many namespaces", _RULE, "Too many namespaces are open",
         "Drop some with `extcli ns rm NAME`, or start `extcli serve --namespace-idle 30m`.")  # fmt: skip
def too_many(*, limit: int) -> Facts:
    detail = f"the limit of {limit} open namespaces is reached; `extcli ns rm NAME` drops one"
    return Facts(detail, f"{limit} open namespaces", f"fewer than {limit}")


@refusal(
    BadRequest, "Invalid namespace", _RULE, "The name of the namespace is invalid", f"Choose a name of {NAME_RULE}."
)
def invalid_name(*, name: str) -> Facts:
    return Facts(f"namespace: must be {NAME_RULE}", f"the name {name[:64]!r}", NAME_RULE)


@refusal(NotFound, "Not Found", _RULE, "The path names no namespace", "Put a name into the path: /_ns/NAME/v1/e/vote")
def no_name() -> Facts:
    return Facts("the path of a namespace begins with /_ns/<name>/", "no name", "a path that begins with /_ns/<name>/")
