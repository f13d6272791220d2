"""`extcli profile`: named sets of settings, one per deployment."""

from __future__ import annotations

from typing import Annotated

from extcli.cli import argument, command, flag, noun, option
from extcli.commands.setup import config as profile_views
from extcli.errors import UsageError
from extcli.output import views
from extcli.session import Session

app = noun("Profiles: named sets of settings, one per deployment.")

Name = Annotated[str, argument("NAME", "The profile's name.")]


@command(app, "list", use_profile=False, prints=profile_views.PROFILES)
def list_profiles(session: Session) -> None:
    """List the profiles; a star marks the current one.

    Plain output is $columns, the last two `true` or `false`.

    Example: extcli profile list
    """
    current = _current(session)
    found = [profile_views.facts_of(each, current) for each in session.resolver.profiles.by_name.values()]
    session.output.show_value(found, profile_views.PROFILES)


@command(app, use_profile=False)
def show(
    session: Session,
    name: str | None = argument("NAME", "The name of the profile. Default: the current profile.", None),
) -> None:
    """Print the settings in a profile. (`extcli config list` prints the effective ones.)

    Example: extcli profile show live
    """
    name = name or _current(session)
    if name is None:
        raise UsageError("no profile is selected", fix="name one; `extcli profile list` lists them")
    found = session.resolver.profiles.named(name, "asked for")
    production = {"production": True} if found.production else {}
    session.output.show_value({"name": found.name, **found.texts, **production}, views.RECORD)


@command(app, use_profile=False)
def use(session: Session, name: Name) -> None:
    """Make a profile the default.

    Example: extcli profile use dev
    """
    from extcli.config import profile_editor

    profile_editor.use(session.resolver.profiles_file, name)
    session.output.note(f"the default profile is {name}")
    other = session.resolver.variable("EXTCLI_PROFILE")
    if other and other != name:
        session.output.report(f"EXTCLI_PROFILE still selects {other}")


@command(app, use_profile=False)
def add(
    session: Session,
    name: Name,
    production: bool = flag(
        "--production",
        "Mark the deployment as production: ask for confirmation before data is deleted, replaced or reset.",
    ),
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
    from extcli.config import profile_editor

    flags = session.resolver.flags
    if not flags.url:
        raise UsageError("--url is missing", fix=f"extcli profile add {name} --url https://…")
    values = {
        "url": flags.url,
        "ws_url": ws_url,
        "client_id": flags.client_id,
        "secret_file": secret_file,
        "token_file": str(flags.token_file) if flags.token_file else None,
        "as": flags.acts_as,
        "channel": flags.channel,
        "production": "true" if production else None,
    }
    file = session.resolver.profiles_file
    given = {key: value for key, value in values.items() if value is not None}
    profile_editor.add(file, name, given)
    for warning in profile_editor.permission_warnings(file, given):
        session.output.report(warning)
    session.output.note(f"added profile {name} to {file}; `extcli profile use {name}` makes it the default")


@command(app, use_profile=False)
def rm(session: Session, name: Name) -> None:
    """Delete a profile, but not the secret and token files it names.

    Example: extcli profile rm dev
    """
    from extcli.config import profile_editor

    was_default = profile_editor.remove(session.resolver.profiles_file, name)
    session.output.note(f"deleted profile {name}")
    if was_default:
        session.output.report("it was the default; there is no default profile now")


def _current(session: Session) -> str | None:
    chosen = session.resolver.named_profile
    return chosen[0] if chosen else session.resolver.profiles.default
