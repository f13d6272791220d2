"""`extcli extension`: the file of registered extensions, and their secrets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from extcli.cli.shared_options import command, noun
from extcli.output import views
from extcli.session import Session

if TYPE_CHECKING:
    from extcli.extensions.editor import Dropped, Written

app = noun("Registered extensions: the file that `serve --extensions` reads, and its secrets.")

File = Annotated[
    str, typer.Argument(metavar="FILE", envvar="EXTCLI_SERVE_EXTENSIONS", help="The TOML file.", show_default=False)
]
Show = Annotated[bool, typer.Option("--show", help="Print the secret as well; else it is only written.")]
_DEFAULT = "extensions.toml"
_OTHERS = 0o077


@command(app)
def init(
    session: Session,
    file: File = _DEFAULT,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="USER_ID", help="The user id of the extension's owner.")
    ] = None,
    inline: Annotated[
        bool, typer.Option("--inline", help="Write the secret into FILE, not into a file of its own beside it.")
    ] = False,
    show: Show = False,
) -> None:
    """Register an extension, with a fresh secret of 32 bytes.

    FILE is extensions.toml unless told; it is made if it is not there, and else keeps
    what it has. The secret is in a file of its own beside it, readable for you alone:
    EXTCLI_SECRET_FILE takes it.

    \b
    Examples:
      extcli extension init --client-id my-extension --owner 12345
      extcli extension init /etc/extcli/extensions.toml --client-id my-extension
    """
    from extcli.extensions.editor import register

    path, client_id = Path(file), session.resolver.client_id()
    existed = path.exists()
    written = register(path, client_id, owner=owner, inline=inline)
    _tell(session, path, written, show)
    if existed:
        _hint(session)


@command(app, "list")
def list_extensions(session: Session, file: File = _DEFAULT) -> None:
    """List what is registered, and where the secrets come from; never the secrets.

    Complains of what the service would not start with. Plain output is
    `CLIENT ID<TAB>OWNER<TAB>NUMBER OF SECRETS<TAB>SOURCES`.

    Example: extcli extension list
    """
    from extcli.extensions.registry import ENOUGH, registrations
    from extcli.extensions.views import REGISTRATIONS, facts_of

    found = registrations(Path(file))
    session.output.show_value([facts_of(each) for each in found], REGISTRATIONS)
    for each in found:
        if any(source.state == "short" for source in each.sources):
            session.output.report(f"{each.client_id}: a secret is shorter than the {ENOUGH} bytes that HS256 asks for")


@command(app)
def rotate(
    session: Session,
    file: File = _DEFAULT,
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=0, max=100, help="How many of the older secrets stay good.")
    ] = 1,
    show: Show = False,
) -> None:
    """Give an extension a fresh secret, and keep the previous one good for now.

    A service that runs takes it at SIGHUP. Hand the secret out to whoever signs
    tokens, and retire the old one once nobody uses it any more. --keep 0 is for a
    secret that has leaked: all older ones go at once, and their tokens with them.

    \b
    Examples:
      extcli extension rotate --client-id my-extension
      extcli extension rotate --client-id my-extension --keep 0
    """
    from extcli.extensions.editor import rotate

    path = Path(file)
    written = rotate(path, session.resolver.client_id(), keep=keep)
    _tell(session, path, written, show)
    _tell_dropped(session, written.dropped)
    _hint(session)


@command(app)
def retire(session: Session, file: File = _DEFAULT) -> None:
    """Drop all secrets of an extension but the newest: the last step of a rotation.

    A service that runs refuses their tokens from SIGHUP on. Files of dropped secrets
    stay where they are, for you to delete.

    Example: extcli extension retire --client-id my-extension
    """
    from extcli.extensions.editor import retire

    path, client_id = Path(file), session.resolver.client_id()
    dropped = retire(path, client_id)
    session.output.show_value({"client_id": client_id, "file": str(path)}, views.RECORD)
    _tell_dropped(session, dropped)
    if dropped:
        _hint(session)
    else:
        session.output.report("nothing was dropped: it has no other secret than the newest")


def _tell(session: Session, path: Path, written: Written, show: bool) -> None:
    facts = {"client_id": session.resolver.client_id(), "file": str(path)}
    if written.file:
        facts["secret_file"] = str(written.file)
    if show:
        facts["secret"] = written.secret
    session.output.show_value(facts, views.RECORD)
    if written.file is None and path.stat().st_mode & _OTHERS:
        session.output.report(f"{path} has secrets in it, and more people than its owner may open it")


def _tell_dropped(session: Session, dropped: list[Dropped]) -> None:
    for each in dropped:
        left = "; the file itself is still there" if each.key == "secret_files" else ""
        session.output.report(f"dropped: {each}{left}")


def _hint(session: Session) -> None:
    session.output.report("a service that runs takes it at: kill -HUP <pid>")
