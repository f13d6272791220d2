"""`extcli config`: the effective configuration of extcli, and edits of the profiles file. Nothing shows a secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from extcli.cli import argument, command, flag, noun
from extcli.config import secret_lookup, settings
from extcli.config.resolver import Found
from extcli.config.settings import KEYS, OUTPUT, SETTINGS, Setting
from extcli.errors import ExpectationFailed, UsageError
from extcli.output.columns import Column, listing
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import SOLE_VALUE
from extcli.session import Session

if TYPE_CHECKING:
    from extcli.config.profiles import Profile


def _text(value: object) -> str:
    return "-" if value is None else visible(value if isinstance(value, str) else str(value).lower())


def _without_file(settings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Show the path of the profiles file once, as the value of `config`, because it is long."""
    file = next(str(each["value"]) for each in settings if each["key"] == "config")
    return [
        {**each, **({"origin": _short_origin(each["origin"], file)} if "origin" in each else {})} for each in settings
    ]


def _short_origin(origin: str, file: str) -> str:
    return "the key profile" if origin == file else origin.replace(f" in {file}", "")


def _plain_value(value: object) -> str:
    return field("" if value is None else value)


_EFFECTIVE = listing(
    "",
    Column("key", text=_text),
    Column("value", text=_text, plain=_plain_value, folds=True),
    Column("origin", text=_text, folds=True, optional=True),
)
EFFECTIVE = replace(_EFFECTIVE, table=lambda settings: _EFFECTIVE.table(_without_file(settings)))
"""Settings by key, with their origin if requested."""

SETTING = View(
    table=lambda setting: "" if setting["value"] is None else _text(setting["value"]),
    rows=lambda setting: [] if setting["value"] is None else [[field(setting["value"])]],
)
"""The value of one setting; empty if it has none."""


def facts_of(profile: Profile, chosen: str | None) -> dict[str, Any]:
    """Return a profile as a record. `chosen` is the name of the current profile."""
    return {
        "name": profile.name,
        "url": profile.texts.get("url"),
        "production": profile.production,
        "chosen": profile.name == chosen,
    }


PROFILES = listing(
    "",
    Column("", lambda each: "*" if each["chosen"] else "", ""),
    Column("name", text=_text, folds=True),
    Column("url", text=_text, plain=_plain_value, folds=True),
    Column("production", heading="", text=lambda production: "production" if production else ""),
    Column("current", "chosen", in_table=False),
    else_shown="no profiles",
)


app = noun("Settings: the effective configuration, where it comes from, and edits of profiles.")

Key = Annotated[str, argument("KEY", f"One of {', '.join(KEYS)}.")]
_DEFAULT = "default"


@command(app, "list", prints=EFFECTIVE)
def list_settings(
    session: Session, show_origin: bool = flag("--show-origin", "Show where each value comes from.")
) -> None:
    """List the effective value of every setting. Sends nothing.

    Of a secret or token it shows only whether it is set. Plain output is $columns,
    the last column only with --show-origin.

    \b
    Examples:
      extcli config list
      extcli config list --show-origin -p live
    """
    shown = ("key", "value", "origin") if show_origin else ("key", "value")
    found = [{name: each[name] for name in shown} for each in effective_configuration(session)]
    session.output.show_value(found, EFFECTIVE)


@command(app)
def get(session: Session, key: str = argument("KEY", "The setting's key, as `config list` shows it.")) -> None:
    """Print the effective value of one setting. Exits 7 if it is not set.

    Example: extcli config get url
    """
    by_key = {each["key"]: each for each in effective_configuration(session)}
    if key not in by_key:
        raise UsageError(f"unknown setting {key!r}", fix=f"one of {', '.join(by_key)}")
    session.output.show_value(by_key[key], SETTING)
    if by_key[key]["value"] is None:
        raise ExpectationFailed(f"{key} is not set")


@command(app, use_profile=False)
def path(session: Session) -> None:
    """Print the path of the profiles file, whether it exists or not.

    Example: extcli config path
    """
    session.output.show_value({"path": str(session.resolver.profiles_file)}, SOLE_VALUE)


@command(app, "set", use_profile=False)
def set_value(
    session: Session, key: Key, value: str = argument("VALUE", "The value; it is checked before it is written.")
) -> None:
    """Set a value of a profile: of the current one, or of -p NAME.

    Secrets are set by file: use the key secret_file. The rest of the profiles file stays
    as it is, comments included.

    \b
    Examples:
      extcli config set timeout 10s -p dev
      extcli config set secret_file live.secret -p live
    """
    from extcli.config import profile_editor

    name = _profile_to_edit(session, "set")
    file = session.resolver.profiles_file
    profile_editor.set_value(file, name, key, value)
    for warning in profile_editor.permission_warnings(file, {key: value}):
        session.output.report(warning)
    session.output.note(f"set {key} of profile {name} to {value}")


@command(app, use_profile=False)
def unset(session: Session, key: Key) -> None:
    """Remove a value from the current profile, or from -p NAME.

    Example: extcli config unset timeout -p dev
    """
    from extcli.config import profile_editor

    name = _profile_to_edit(session, "unset")
    profile_editor.unset_value(session.resolver.profiles_file, name, key)
    session.output.note(f"removed {key} from profile {name}")


def _profile_to_edit(session: Session, verb: str) -> str:
    """Return the name of the profile; of the file only that name is read, since the rest may be invalid.

    Raises `UsageError` for an option such as --url, which would seem to set a value of the profile.
    """
    from extcli.config import profile_editor

    flags = session.resolver.flags
    if given := next((each for each in SETTINGS.values() if each is not OUTPUT and each.option_value(flags)), None):
        raise UsageError(
            f"`extcli config {verb}` takes no {given.option}", fix=f"`extcli config set {given.key} VALUE` writes it"
        )
    chosen = session.resolver.named_profile
    name = chosen[0] if chosen else profile_editor.default_in(session.resolver.profiles_file)
    if name is None:
        raise UsageError("no profile is selected", fix="use -p NAME, or select one with `extcli profile use NAME`")
    return name


def effective_configuration(session: Session) -> list[dict[str, Any]]:
    """Return `key`, `value` and `origin` of every setting. `None` means not set, or chosen by each command."""
    return [{"key": key, "value": value, "origin": origin} for key, value, origin in _settings(session)]


def _settings(session: Session) -> Iterator[tuple[str, object, str]]:
    resolver = session.resolver
    url, socket, production = resolver.find(settings.URL), resolver.configured_ws_url(), resolver.production()
    yield "profile", resolver.profile.name if resolver.profile else None, _origin_of_profile(session)
    yield "url", resolver.url(), _origin_of_value(url)
    yield "ws_url", resolver.ws_url(), _origin_of_value(socket)
    yield "client_id", resolver.client_id(), _origin_of_value(resolver.find(settings.CLIENT_ID))
    identity, channel = resolver.find(settings.ACTS_AS), resolver.find(settings.CHANNEL)
    yield "as", str(identity.value) if identity else None, _origin_of_value(identity)
    yield "channel", channel.value if channel else None, _origin_of_value(channel)
    yield from _secret(session, "token", secret_lookup.find_token(resolver), settings.TOKEN_FILE)
    yield from _secret(session, "secret", secret_lookup.find_secret(resolver), settings.SECRET_FILE)
    yield "pin_path", resolver.pin_path(), _origin_of_value(resolver.find(settings.PIN_PATH))
    yield (
        "broadcast_method",
        resolver.broadcast_method(post=False),
        _origin_of_value(resolver.find(settings.BROADCAST_METHOD)),
    )
    yield "output", session.output.format.value, _origin_of_value(resolver.find(settings.OUTPUT))
    yield "timeout", f"{resolver.timeout():g}s", _origin_of_value(resolver.find(settings.TIMEOUT))
    yield "production", production is not None, str(production) if production else _DEFAULT
    yield "state_dir", str(session.link_store.directory), "EXTCLI_STATE_DIR" if resolver.state_dir() else _DEFAULT
    in_variable = resolver.variable("EXTCLI_CONFIG")
    yield "config", str(resolver.profiles_file), "EXTCLI_CONFIG" if in_variable else _DEFAULT


def _origin_of_profile(session: Session) -> str:
    resolver = session.resolver
    if resolver.named_profile:
        return resolver.named_profile[1]
    return str(resolver.profiles_file) if resolver.profile else _DEFAULT


def _origin_of_value(found: Found[Any] | None) -> str:
    return found.origin if found else _DEFAULT


def _secret(
    session: Session, key: str, found: Found[str | Path] | None, file: Setting[Path]
) -> Iterator[tuple[str, object, str]]:
    """Yield whether the secret is set, and the path of its file, which is not read."""
    ignored = None if found else session.resolver.find(file)
    origin = f"{_DEFAULT}, ignoring {ignored.origin}" if ignored else _origin_of_value(found)
    yield key, "set" if found else "not set", origin
    in_file = found if found and isinstance(found.value, Path) else None
    yield file.key, str(in_file.value) if in_file else None, _origin_of_value(in_file)
