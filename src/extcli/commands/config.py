"""`extcli config`: the settings of this program, and the file of profiles they may come from."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.shared_options import command, noun
from extcli.config import views as profile_views
from extcli.config.settings import KEYS, OUTPUT, SETTINGS
from extcli.errors import ExpectationFailed, UsageError
from extcli.output.views import SOLE_VALUE
from extcli.session import Session

app = noun("Settings: what is in force, where it comes from, and what profiles say.")

Key = Annotated[str, typer.Argument(metavar="KEY", help=f"One of {', '.join(KEYS)}.", show_default=False)]


@command(app, "list")
def list_settings(
    session: Session,
    show_origin: Annotated[bool, typer.Option("--show-origin", help="Say where each comes from.")] = False,
) -> None:
    """List every setting with the value in force.

    Of secrets and tokens only whether they are set. Asks no service. Plain output is
    `key<TAB>value`, and with --show-origin `key<TAB>value<TAB>origin`.

    \b
    Examples:
      extcli config list
      extcli config list --show-origin -p live
    """
    from extcli.commands.in_force import settings_in_force

    shown = ("key", "value", "origin") if show_origin else ("key", "value")
    found = [{name: each[name] for name in shown} for each in settings_in_force(session)]
    session.output.show_value(found, profile_views.SETTINGS)


@command(app)
def get(
    session: Session, key: Annotated[str, typer.Argument(metavar="KEY", help="As `config list` names it.")]
) -> None:
    """Print the value of a setting that is in force. If there is none, the exit code is 7.

    Example: extcli config get url
    """
    from extcli.commands.in_force import setting_in_force

    found = setting_in_force(session, key)
    session.output.show_value(found, profile_views.SETTING)
    if found["value"] is None:
        raise ExpectationFailed(f"{key} is not set")


@command(app, by_profile=False)
def path(session: Session) -> None:
    """Print where the file of profiles is, or would be.

    Example: extcli config path
    """
    session.output.show_value({"path": str(session.resolver.file_of_profiles)}, SOLE_VALUE)


@command(app, "set", by_profile=False)
def set_value(
    session: Session,
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its value, which is checked first.")],
) -> None:
    """Set a value of a profile.

    It is that of -p NAME, else the one in use. A secret is named by its file:
    secret_file. What else stands in the file of profiles stays as it is, comments
    included.

    \b
    Examples:
      extcli config set timeout 10s -p dev
      extcli config set secret_file live.secret -p live
    """
    from extcli.config import profile_editor

    _take_no_values(session, "set")
    name = _name(session)
    file = session.resolver.file_of_profiles
    profile_editor.set_value(file, name, key, value)
    for remark in profile_editor.remarks_on(file, {key: value}):
        session.output.report(remark)
    session.output.note(f"{key} of profile {name} is {value}")


@command(app, by_profile=False)
def unset(session: Session, key: Key) -> None:
    """Take a value out of a profile: of -p NAME, or the one in use.

    Example: extcli config unset timeout -p dev
    """
    from extcli.config import profile_editor

    _take_no_values(session, "unset")
    name = _name(session)
    profile_editor.unset_value(session.resolver.file_of_profiles, name, key)
    session.output.note(f"{key} of profile {name} is not set")


def _take_no_values(session: Session, verb: str) -> None:
    """An option that gives a setting to one command would pass here for one that goes into the profile."""
    given = next(
        (each for each in SETTINGS.values() if each is not OUTPUT and each.given_in(session.resolver.flags)), None
    )
    if given:
        raise UsageError(
            f"`extcli config {verb}` takes no {given.option}", fix=f"`extcli config set {given.key} VALUE` writes it"
        )


def _name(session: Session) -> str:
    """The profile to edit; nothing but its name is asked of the file, which may need mending."""
    from extcli.config import profile_editor

    asked = session.resolver.asked_profile
    name = asked[0] if asked else profile_editor.chosen_in(session.resolver.file_of_profiles)
    if name is None:
        raise UsageError("of which profile?", fix="say -p NAME, or choose one by `extcli profile use NAME`")
    return name
