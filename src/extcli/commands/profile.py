"""`extcli profile`: the deployments that `-p NAME` chooses from."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.shared_options import command, noun
from extcli.config import views as profile_views
from extcli.errors import UsageError
from extcli.output import views
from extcli.session import Session

app = noun("Profiles: several deployments by name, each with its settings.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name.", show_default=False)]


@command(app, "list", by_profile=False)
def list_profiles(session: Session) -> None:
    """List the profiles; a star marks the one in use.

    Plain output is `name<TAB>url<TAB>production<TAB>in use`, the latter two true or false.

    Example: extcli profile list
    """
    chosen = _chosen(session)
    found = [profile_views.facts_of(each, chosen) for each in session.resolver.profiles.by_name.values()]
    session.output.show_value(found, profile_views.PROFILES)


@command(app, by_profile=False)
def show(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The profile; else the one in use.", show_default=False)
    ] = None,
) -> None:
    """Show what a profile says, which `config list` may tell otherwise.

    Example: extcli profile show live
    """
    asked = name or _chosen(session)
    if asked is None:
        raise UsageError("of which profile?", fix="name it; `extcli profile list` shows which there are")
    found = session.resolver.profiles.named(asked, "asked for")
    production = {"production": True} if found.production else {}
    session.output.show_value({"name": found.name, **found.texts, **production}, views.RECORD)


@command(app, by_profile=False)
def use(session: Session, name: Name) -> None:
    """Make a profile the one in use when none is chosen.

    Example: extcli profile use dev
    """
    from extcli.config import profile_editor

    profile_editor.use(session.resolver.file_of_profiles, name)
    session.output.note(f"profile {name} is used where none is chosen")
    other = session.resolver.variable("EXTCLI_PROFILE")
    if other and other != name:
        session.output.report(f"EXTCLI_PROFILE still chooses {other}")


@command(app, by_profile=False)
def add(
    session: Session,
    name: Name,
    production: Annotated[
        bool, typer.Option("--production", help="Ask before anything there is deleted, replaced or reset.")
    ] = False,
    secret_file: Annotated[
        str | None,
        typer.Option("--secret-file", metavar="FILE", help="Where the extension's secret is.", show_default=False),
    ] = None,
    ws_url: Annotated[
        str | None,
        typer.Option("--ws-url", metavar="URL", help="Where the socket is, if not beside it.", show_default=False),
    ] = None,
) -> None:
    """Add a deployment, of which --url says where it is.

    --client-id, --channel, --as and --token-file become its settings as well; others
    are added by `extcli config set`. All are checked before anything is written.

    \b
    Examples:
      extcli profile add dev --url http://127.0.0.1:8282
      extcli profile add live --url https://ext.example --production
    """
    from extcli.config import profile_editor

    flags = session.resolver.flags
    if not flags.url:
        raise UsageError("where is it?", fix=f"extcli profile add {name} --url https://…")
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
    file = session.resolver.file_of_profiles
    given = {key: value for key, value in values.items() if value is not None}
    profile_editor.add(file, name, given)
    for remark in profile_editor.remarks_on(file, given):
        session.output.report(remark)
    session.output.note(f"profile {name} is in {file}; `extcli profile use {name}` makes it the one in use")


@command(app, by_profile=False)
def rm(session: Session, name: Name) -> None:
    """Forget a profile.

    Files of secrets and tokens that it names stay.

    Example: extcli profile rm dev
    """
    from extcli.config import profile_editor

    was_default = profile_editor.remove(session.resolver.file_of_profiles, name)
    session.output.note(f"profile {name} is forgotten")
    if was_default:
        session.output.report("it was the one in use where none is chosen; there is none now")


def _chosen(session: Session) -> str | None:
    asked = session.resolver.asked_profile
    return asked[0] if asked else session.resolver.profiles.default
