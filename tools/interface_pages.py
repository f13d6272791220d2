"""Makes docs/rest.md, docs/roles.md and docs/websocket.md from the declarations of the features.

What a page says about `global-` ids is from the role table, which `test_roles.py` compares with a running service.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

import msgspec
from msgspec import inspect as types

from emulator.core.callers import ANYONE, Role
from emulator.core.errors import OF_INPUT, OF_ROLES, REFUSALS
from emulator.core.errors import RefusalTexts as Refusal
from emulator.core.settings import Limits
from emulator.core.wire.url import ALIASES, SERVICE
from emulator.feature_list import FEATURES
from emulator.features.stores.rules import STORES
from emulator.http.endpoint import CHANNEL, UNDOCUMENTED, Audience, Endpoint
from emulator.realtime.action import Declaration
from support.architecture import SRC, feature_of
from support.role_table import TABLE
from tools.short_pages import DOCS, with_parts

REST, ROLES, WEBSOCKET = DOCS / "rest.md", DOCS / "roles.md", DOCS / "websocket.md"
SCOPES = {
    "codes": "extension",
    "curated_poll": "extension",
    "user_ids": "extension",
    "extension_broadcast": "extension",
    "broadcast": "channel",
    "pusher_broadcast": "channel",
    "validate_pin": "channel",
    "pin": "channel",
    "team_membership": "viewer",
    "whisper_self": "viewer",
    "user_info": "viewer",
}
"""The scopes of endpoints whose declarations do not say it, by the beginning of their paths."""
CREDENTIALS = {
    Audience.CLIENT_ID: "a client id, with or without a token",
    Audience.PUBLIC: "none",
    Audience.HEALTH: "none",
    Audience.MONITORING: "none",
    Audience.CONTROL: "[the control API](control-api.md), sandbox only",
}

MS = (
    "advance at delay delay_max ends_at expires_at lasts latest now observed offset opened_at server_time set system_at"
)
UNITS = {
    **dict.fromkeys([*MS.split(), "timestamp"], "ms"),
    **dict.fromkeys(("age", "endsAt", "endsIn", "idle", "retry_after", "startsAt", "startsIn"), "s"),
    "cutoff_timestamp": "s | ms",
}
"""The units of members that are times. Shapes show the unit in place of the type."""


def rest() -> str:
    """Return docs/rest.md."""
    own = {package.rpartition(".")[2] for package in groups()}
    shared = {code.partition(".")[0] for code in declared()} - own - {"closes"}
    return with_parts(REST, {"refusals": _refusals(shared), "endpoints": list(_endpoints())})


def roles() -> str:
    """Return docs/roles.md."""
    return with_parts(ROLES, {"roles": list(_role_rows()), "others": list(_rows_without_role())})


def websocket() -> str:
    """Return docs/websocket.md."""
    parts = {"actions": list(_actions()), "topics": list(_feeds()), "closes": list(_closes())}
    return with_parts(WEBSOCKET, parts)


def declared() -> Mapping[str, Refusal]:
    """Return all declared refusals by code."""
    for path in SRC.glob("emulator/**/*.py"):
        if "@refusal(" in path.read_text():
            import_module(".".join(path.relative_to(SRC).with_suffix("").parts))
    return REFUSALS


def groups() -> dict[str, list[Endpoint]]:
    """Return the endpoints that are not pages, by the module or package of their feature: first those for clients."""
    found: dict[str, list[Endpoint]] = {}
    for each in (each for feature in FEATURES for each in feature.endpoints if each.audience not in UNDOCUMENTED):
        module = inspect.unwrap(each.handler).__module__
        found.setdefault(feature_of(module) or module.rpartition(".")[0], []).append(each)
    return dict(sorted(found.items(), key=lambda group: not group[1][0].path.startswith(SERVICE)))


# docs/rest.md


def _endpoints() -> Iterator[str]:
    for package, endpoints in groups().items():
        folder, about = package.rpartition(".")[2], import_module(package).__doc__ or ""
        yield from (f"## {folder}", "", _line(about.partition("\n\n")[0]), "")
        for each in endpoints:
            yield from _endpoint(each)
        if rows := _refusals([folder]):
            yield from (f"Refusals of {folder}:", "", *rows, "")


def _endpoint(endpoint: Endpoint) -> Iterator[str]:
    yield from (f"### {endpoint.title}", "", _line(endpoint.handler.__doc__ or ""), "")
    roles = "any" if endpoint.roles == ANYONE else ", ".join(each for each in Role if each in endpoint.roles)
    who = f"Role: {roles}" if endpoint.audience is Audience.CLIENTS else f"Credential: {CREDENTIALS[endpoint.audience]}"
    names = sorted(alias for alias, name in ALIASES.items() if SERVICE + name == endpoint.path)
    yield f"- {who}"
    yield from (f"- Query `{each.name}`: {each.meaning}" for each in endpoint.query)
    if endpoint.body is not None:
        limit = _size(getattr(Limits(), endpoint.limit))
        only = "" if endpoint.limit_roles == ANYONE else f" ({_size(Limits().body)} for other roles than admin)"
        yield f"- Body: `{shape(endpoint.body)}`, at most {limit}{only}"
    yield from (f"- Header `{each.name}`: {each.meaning}" for each in endpoint.headers)
    status = "" if endpoint.status == 200 else f" ({endpoint.status})"
    yield f"- Response{status}: {_response(endpoint)}"
    if names:
        yield f"- Also at: {', '.join(f'`{SERVICE}{name}`' for name in names)}"
    yield ""


_CONTENT: Final = {
    b"text/plain; version=0.0.4": "plain text",
    b"text/javascript": "a script",
    b"application/x-ndjson": "JSON, one value per line",
}
"""Types of responses that are not JSON, in words."""


def _response(endpoint: Endpoint) -> str:
    return _CONTENT.get(endpoint.content_type) or f"`{shape(endpoint.answer, is_sent=True)}`"


def shape(kind: Any, *, is_sent: bool = False) -> str:
    """Return a type as JSON with type names; a member with `?` may be absent. `is_sent`: by the service."""
    return _shape(types.type_info(kind), 2, is_sent)


def _shape(kind: Any, depth: int, is_sent: bool) -> str:
    match kind:
        case types.StructType() if depth == 0 and kind.fields:
            return "{…}"
        case types.StructType():
            is_full = is_sent and not kind.cls.__struct_config__.omit_defaults
            members = [
                f"{each.encode_name}{_mark(each, is_full)}: {_member(each, depth - 1, is_sent)}" for each in kind.fields
            ]
            return "{" + ", ".join(members) + "}"
        case types.ListType() | types.VarTupleType() | types.SetType() | types.FrozenSetType():
            return f"[{_shape(kind.item_type, depth, is_sent)}]"
        case types.TupleType():
            return f"[{', '.join(_shape(each, depth, is_sent) for each in kind.item_types)}]"
        case types.DictType():
            return f"{{…: {_shape(kind.value_type, depth, is_sent)}}}"
        case types.UnionType():
            return " | ".join(dict.fromkeys(_shape(each, depth, is_sent) for each in kind.types))
        case types.LiteralType():
            return " | ".join(msgspec.json.encode(each).decode() for each in kind.values)
        case types.EnumType():
            return " | ".join(msgspec.json.encode(each.value).decode() for each in kind.cls)
        case types.Metadata():
            return _shape(kind.type, depth, is_sent)
    names = {
        "DateTimeType": "string",
        "IntType": "integer",
        "FloatType": "number",
        "StrType": "string",
        "BoolType": "boolean",
    }
    return {**names, "NoneType": "null", "AnyType": "any", "RawType": "any"}[type(kind).__name__]


def _member(member: Any, depth: int, is_sent: bool) -> str:
    """Return the type of a member; for a time, its unit."""
    return _shape(member.type, depth, is_sent).replace("integer", UNITS.get(member.encode_name, "integer"))


def _mark(member: Any, is_full: bool) -> str:
    """Return `?` for a member that may be absent. `is_full` says that defaults are sent."""
    return "" if member.required or (is_full and member.default is not msgspec.UNSET) else "?"


def _refusals(folders: Iterable[str]) -> list[str]:
    """Return a table of what these folders refuse; empty if they refuse nothing."""
    rows = [
        f"| {each.error.status} | `{code}` | {each.title} | {_rule(each.rule)} |"
        for code, each in sorted(declared().items(), key=lambda item: (item[1].error.status, item[0]))
        if code.partition(".")[0] in folders
    ]
    return ["| Status | Code | When | Rule |", "|---|---|---|---|", *rows] if rows else []


def _rule(rule: str) -> str:
    if found := re.fullmatch(r"(?:gaps: )?(.+)", rule) if re.match(r"gaps: |[A-Z]\d+$", rule) else None:
        return f"[{found[1]}](gaps.md#{found[1].lower().replace(' ', '-')})"
    return {OF_INPUT: "The rule of the value", OF_ROLES: "The rule of the roles"}.get(rule, rule)


def _size(size: int) -> str:
    units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
    return next(f"{size // unit} {name}" for unit, name in units if size % unit == 0 and size >= unit)


# docs/roles.md


def _role_rows() -> Iterator[str]:
    heads = " | ".join(Role)
    yield from (f"| Endpoint | {heads} | Scope |", f"|---|{'---|' * len(Role)}---|")
    shared = {words[:2]: {*words[2:6]} for words in map(_words, TABLE.splitlines()) if len(words) >= 6}
    for each in (each for group in groups().values() for each in group if each.audience is Audience.CLIENTS):
        name = each.path.removeprefix(SERVICE)
        yield _role_row(f"`{each.method} {name}`", each.roles, _scope(each))
        allowed = shared.get((each.method, f"{name}?id=global-x"))
        if allowed is not None and allowed & set(Role) != each.roles:
            yield _role_row(f"`{each.method} {name}?id=global-…`", allowed, "extension")


def _words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


def _role_row(title: str, roles: Iterable[str], scope: str) -> str:
    return f"| {title} | {' | '.join('yes' if each in set(roles) else 'no' for each in Role)} | {scope} |"


def _scope(endpoint: Endpoint) -> str:
    """Return what the data of an endpoint belongs to."""
    name = endpoint.path.removeprefix(SERVICE)
    if store := next((each for each in STORES if each.name == name), None):
        parts = [("extension", store.per_extension and not store.per_channel), ("channel", store.per_channel)]
        return " and ".join([word for word, is_part in parts if is_part] + ["viewer"] * store.per_viewer)
    if found := next((scope for beginning, scope in SCOPES.items() if name.startswith(beginning)), None):
        return found
    assert CHANNEL in endpoint.query, f"{name} has no scope"
    return "channel"


def _rows_without_role() -> Iterator[str]:
    yield from ("| Endpoint | Credential |", "|---|---|")
    for each in (each for group in groups().values() for each in group):
        if each.audience in CREDENTIALS and each.audience is not Audience.CONTROL:
            yield f"| `{each.title}` | {CREDENTIALS[each.audience]} |"


# docs/websocket.md


def _actions() -> Iterator[str]:
    for each in (each for feature in FEATURES for each in feature.actions):
        first, *others = (f"{action} {target}".rstrip() for action, target in each.names)
        yield from (f"### {first}", "", _line(each.handler.__doc__ or ""), "", f"- Role: {_socket_roles(each)}")
        yield f"- Data: {_data(each.handler)}"
        yield f"- Reply: `{shape(typing.get_type_hints(each.handler)['return'], is_sent=True)}`"
        if others:
            yield f"- Also: {', '.join(f'`{name}`' for name in others)}"
        yield ""


def _feeds() -> Iterator[str]:
    yield from ("| Target | Roles | `data` of the subscription | What it follows |", "|---|---|---|---|")
    for each in (each for feature in FEATURES for each in feature.feeds):
        names = ", ".join(f"`{name}`" for name in each.names)
        about = _line(each.handler.__doc__ or "")
        yield f"| {names} | {_socket_roles(each)} | {_cell(_data(each.handler))} | {about} |"


def _socket_roles(declared: Declaration) -> str:
    if declared.is_open:
        return "none needed"
    if "_writable(" in inspect.getsource(declared.handler):
        return "as for the store over REST"
    return "any" if declared.roles == ANYONE else ", ".join(each for each in Role if each in declared.roles)


def _data(handler: Any) -> str:
    """Return the shape that a handler, or a function that it passes the message to, reads from the message."""
    module = inspect.getmodule(handler)
    source = inspect.getsource(handler)
    source += "".join(inspect.getsource(getattr(module, name)) for name in re.findall(r"\b(_\w+)\(message\)", source))
    shapes = [shape(getattr(module, name)) for name in re.findall(r"message\.body\((\w+)\)", source)]
    return f"`{shapes[0]}`" if shapes else "none"


def _closes() -> Iterator[str]:
    yield from ("| Code | When | Reason in the close frame | What to do |", "|---|---|---|---|")
    for each in (each for name, each in declared().items() if name.startswith("closes.")):
        found = each.facts(**dict.fromkeys(inspect.signature(each.facts).parameters, "…"))
        code = "any" if found.close_code == "…" else found.close_code
        reason = "" if found.detail == "…" else found.detail
        step = re.sub(r"{\w+}", "…", each.next_step)
        yield f"| {code} | {each.title} | {reason} | {_cell(step)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(text.split())
