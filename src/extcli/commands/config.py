"""`extcli config`: the effective configuration of extcli. `extcli profile`: named sets of settings, one per deployment.

Both edit the profiles file. Nothing shows a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from extcli.cli import argument, command, flag, noun, option
from extcli.config import profiles, settings
from extcli.config.resolver import Found
from extcli.config.settings import KEYS, OUTPUT, SERVICE_SETTINGS, SETTINGS, Setting
from extcli.errors import ExpectationFailed, UsageError
from extcli.output.columns import Column, listing
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import RECORD, SOLE_VALUE
from extcli.session import Session

app = noun("Settings: show the effective values and their origin, and edit profiles.")
profile_app = noun("Profiles: named sets of settings, one per deployment.")

Key = Annotated[str, argument("KEY", f"One of {', '.join(KEYS)}.")]
Name = Annotated[str, argument("NAME", "The profile's name.")]
_DEFAULT = "default"
_ROW_MEMBERS = ("key", "value", "origin")
Row = tuple[str, object, str]
"""The key, value and origin of a setting. `None` means not set, or chosen by each command."""


def _table_text(value: object) -> str:
    return "-" if value is None else visible(value if isinstance(value, str) else str(value).lower())


def _plain_value(value: object) -> str:
    return field("" if value is None else value)


ALL_SETTINGS = listing(
    "",
    Column("key", text=_table_text),
    Column("value", text=_table_text, plain=_plain_value),
    Column("origin", text=_table_text, optional=True),
)
"""Settings by key, with their origin if requested."""
SETTING_VALUE = View(
    table=lambda setting: "" if setting["value"] is None else _table_text(setting["value"]),
    rows=lambda setting: [] if setting["value"] is None else [[field(setting["value"])]],
)
"""The value of one setting; empty if it has none."""
PROFILES = listing(
    "",
    Column("", lambda each: "*" if each["chosen"] else "", ""),
    Column("name", text=_table_text),
    Column("url", text=_table_text, plain=_plain_value),
    Column("production", heading="", text=lambda production: "production" if production else ""),
    Column("current", "chosen", in_table=False),
    else_shown="no profiles",
)


@command(app, "list", prints=ALL_SETTINGS)
def list_settings(session: Session, show_origin: bool = flag("--show-origin", "Show each value's origin.")) -> None:
    """List the effective value of every setting. Sends nothing.

    For a secret or token, it shows only whether it is set. Plain output is $columns,
    the last column only with --show-origin.

    \b
    Examples:
      extcli config list
      extcli config list --show-origin -p live
    """
    shown = _ROW_MEMBERS if show_origin else _ROW_MEMBERS[:2]
    session.output.show_value([dict(zip(shown, row, strict=False)) for row in _setting_rows(session)], ALL_SETTINGS)


@command(app)
def get(session: Session, key: str = argument("KEY", "The setting's key, as `config list` shows it.")) -> None:
    """Print the effective value of one setting. Exits 7 if it is not set.

    Example: extcli config get url
    """
    by_key = {row[0]: row for row in _setting_rows(session)}
    if key not in by_key:
        raise UsageError(f"unknown setting {key!r}", fix=f"one of {', '.join(by_key)}")
    session.output.show_value(dict(zip(_ROW_MEMBERS, by_key[key], strict=True)), SETTING_VALUE)
    if by_key[key][1] is None:
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

    For a secret, set the key secret_file to the path of its file. The rest of the profiles
    file stays as it is, comments included.

    \b
    Examples:
      extcli config set timeout 10s -p dev
      extcli config set secret_file live.secret -p live
    """
    name = _profile_to_edit(session, "set")
    profiles.set_value(session.resolver.profiles_file, name, key, value)
    session.output.note(f"set {key} of profile {name} to {value}")


@command(app, use_profile=False)
def unset(session: Session, key: Key) -> None:
    """Remove a value from the current profile, or from -p NAME.

    Example: extcli config unset timeout -p dev
    """
    name = _profile_to_edit(session, "unset")
    profiles.unset_value(session.resolver.profiles_file, name, key)
    session.output.note(f"removed {key} from profile {name}")


def _profile_to_edit(session: Session, verb: str) -> str:
    """Return the name of the profile; of the file only that name is read, since the rest may be invalid.

    Raises `UsageError` for an option such as --url, which would seem to set a value of the profile.
    """
    flags = session.resolver.flags
    for each in SETTINGS.values():
        if each is not OUTPUT and each.option_value(flags):
            fix = f"to change the profile, use `extcli config set {each.key} VALUE`"
            raise UsageError(f"`extcli config {verb}` takes no {each.option}", fix=fix)
    chosen = session.resolver.named_profile
    name = chosen[0] if chosen else profiles.default_profile_name(session.resolver.profiles_file)
    if name is None:
        raise UsageError("no profile is selected", fix="use -p NAME, or select one with `extcli profile use NAME`")
    return name


def _setting_rows(session: Session) -> Iterator[Row]:
    resolver = session.resolver
    in_file = str(resolver.profiles_file) if resolver.profile else _DEFAULT
    origin = resolver.named_profile[1] if resolver.named_profile else in_file
    yield "profile", resolver.profile.name if resolver.profile else None, origin
    yield _setting_row(session, settings.URL)
    yield "ws_url", resolver.ws_url(), _origin_of_value(resolver.configured_ws_url())
    yield _setting_row(session, settings.CLIENT_ID)
    yield _setting_row(session, settings.ACTS_AS)
    yield _setting_row(session, settings.CHANNEL)
    yield from _secret_rows(session, "token", resolver.find_token(), settings.TOKEN_FILE)
    yield from _secret_rows(session, "secret", resolver.find_secret(), settings.SECRET_FILE)
    yield _setting_row(session, settings.PIN_PATH)
    yield _setting_row(session, settings.BROADCAST_METHOD)
    yield "output", session.output.format.value, _setting_row(session, OUTPUT)[2]
    yield "timeout", f"{resolver.timeout():g}s", _setting_row(session, settings.TIMEOUT)[2]
    production = resolver.production()
    yield "production", production is not None, str(production or _DEFAULT)
    for key, place, variable in (
        ("state_dir", session.link_store.directory, "EXTCLI_STATE_DIR"),
        ("config", resolver.profiles_file, "EXTCLI_CONFIG"),
    ):
        yield key, str(place), variable if resolver.variable(variable) else _DEFAULT


def _setting_row(session: Session, setting: Setting[object]) -> Row:
    found = session.resolver.find(setting)
    value = found.value if found else setting.default
    return setting.key, None if value is None else str(value), _origin_of_value(found)


def _origin_of_value(found: Found[Any] | None) -> str:
    return found.origin if found else _DEFAULT


def _secret_rows(session: Session, key: str, found: Found[str | Path] | None, file: Setting[Path]) -> Iterator[Row]:
    """Yield whether the secret is set, and the path of its file, which is not read."""
    ignored = None if found else session.resolver.find(file)
    origin = f"{_DEFAULT}, ignoring {ignored.origin}" if ignored else _origin_of_value(found)
    yield key, "set" if found else "not set", origin
    in_file = found if found and isinstance(found.value, Path) else None
    yield file.key, str(in_file.value) if in_file else None, _origin_of_value(in_file)


# `extcli profile`


@command(profile_app, "list", use_profile=False, prints=PROFILES)
def list_profiles(session: Session) -> None:
    """List the profiles; a star marks the current one.

    Plain output is $columns, the last two `true` or `false`.

    Example: extcli profile list
    """
    current = _current_profile(session)
    found = [
        {"name": each.name, "url": each.texts.get("url"), "production": each.production, "chosen": each.name == current}
        for each in session.resolver.profiles.by_name.values()
    ]
    session.output.show_value(found, PROFILES)


@command(profile_app, use_profile=False)
def show(
    session: Session,
    name: str | None = argument("NAME", "The name of the profile. Default: the current profile.", None),
) -> None:
    """Print the settings in a profile. (`extcli config list` prints the effective ones.)

    Example: extcli profile show live
    """
    name = name or _current_profile(session)
    if name is None:
        raise UsageError("no profile is selected", fix="name a profile; `extcli profile list` lists them")
    found = session.resolver.profiles.named(name, "asked for")
    production = {"production": True} if found.production else {}
    session.output.show_value({"name": found.name, **found.texts, **production}, RECORD)


@command(profile_app, use_profile=False)
def use(session: Session, name: Name) -> None:
    """Make a profile the default.

    Example: extcli profile use dev
    """
    profiles.use(session.resolver.profiles_file, name)
    session.output.note(f"the default profile is {name}, unless EXTCLI_PROFILE selects another")


@command(profile_app, use_profile=False)
def add(
    session: Session,
    name: Name,
    production: bool = flag("--production", "For production: ask before data is deleted, replaced or reset."),
    secret_file: str | None = option("--secret-file FILE", "The file with the extension's secret."),
    ws_url: str | None = option("--ws-url URL", "The WebSocket's address. Default: derived from --url."),
) -> None:
    """Add a profile for the deployment at --url.

    --client-id, --channel, --as and --token-file become settings of the profile; `extcli config
    set` adds other settings. Everything is checked before it is written.

    \b
    Examples:
      extcli profile add dev --url http://127.0.0.1:8282
      extcli profile add live --url https://ext.example --production
    """
    flags = session.resolver.flags
    if not flags.url:
        raise UsageError("--url is missing", fix=f"extcli profile add {name} --url https://…")
    own = {"ws_url": ws_url, "secret_file": secret_file, "production": "true" if production else None}
    values = {each.key: each.option_value(flags) for each in SERVICE_SETTINGS} | own
    file = session.resolver.profiles_file
    given = {key: value for key, value in values.items() if value is not None}
    profiles.add(file, name, given)
    session.output.note(f"added profile {name} to {file}; `extcli profile use {name}` makes it the default")


@command(profile_app, use_profile=False)
def rm(session: Session, name: Name) -> None:
    """Delete a profile, but not the secret and token files it names.

    Example: extcli profile rm dev
    """
    profiles.remove(session.resolver.profiles_file, name)
    session.output.note(f"deleted profile {name}")


def _current_profile(session: Session) -> str | None:
    chosen = session.resolver.named_profile
    return chosen[0] if chosen else session.resolver.profiles.default
