"""`extcli extension`: the extensions file, and their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from emulator.contract.extensions_file import NOT_BEFORE
from extcli import clock, extensions
from extcli.cli import argument, command, flag, noun, option
from extcli.config.settings import permission_warning
from extcli.output import views
from extcli.output.columns import Column, listing
from extcli.output.sanitize import visible
from extcli.session import Session

app = noun("Registered extensions: the file that `serve --extensions` reads, and its secrets.")

File = Annotated[Path, argument("FILE", "The TOML file.", envvar="EXTCLI_SERVE_EXTENSIONS")]
Show = Annotated[bool, flag("--show", "Print the new secret as well.")]
_DEFAULT_FILE = Path("extensions.toml")


def _secret_sources(extension: dict[str, Any]) -> str:
    """Return the places of the secrets: `env OLD (unset), file new.secret`."""
    places = []
    for source in extension["sources"]:
        state = "" if source["state"] == "ok" else f"({source['state']})"
        places.append(" ".join(filter(None, (source["from"], source.get("name"), state))))
    return ", ".join(places)


_EXTENSIONS = listing(
    "",
    Column("CLIENT ID", "client_id", "client id"),
    Column("OWNER", lambda each: each["owner_user_id"] or "", "owner", lambda owner: visible(owner or "-")),
    Column("NUMBER OF SECRETS", "secrets", "secrets", str),
    Column("SOURCES", _secret_sources, "from, newest first"),
)


@command(app)
def init(
    session: Session,
    file: File = _DEFAULT_FILE,
    owner: str | None = option("--owner USER_ID", "The user id of the extension's owner."),
    inline: bool = flag("--inline", "Write the secret into the extensions file instead of a separate file."),
    show: Show = False,
) -> None:
    """Register an extension with a new secret of 32 bytes.

    Creates FILE, or adds the extension to it. The secret is written to a separate file in the same
    folder that only you can read; EXTCLI_SECRET_FILE can name that file.

    \b
    Examples:
      extcli extension init --client-id my-extension --owner 12345
      extcli extension init /etc/extcli/extensions.toml --client-id my-extension
    """
    written = extensions.register(file, session.resolver.client_id(), owner=owner, inline=inline)
    _print_new_secret(session, file, written, show)


@command(app, "list", prints=_EXTENSIONS)
def list_extensions(session: Session, file: File = _DEFAULT_FILE) -> None:
    """List the registered extensions, and where their secrets are.

    Fails if the service could not start with FILE. Plain output is $columns.

    Example: extcli extension list
    """
    session.output.show_value(extensions.list_extensions(file), _EXTENSIONS)


@command(app)
def rotate(
    session: Session,
    file: File = _DEFAULT_FILE,
    keep: int = option("--keep N", "The number of older secrets that stay valid.", 1, min=0, max=100),
    show: Show = False,
) -> None:
    """Add a new secret to an extension, and keep the previous secret valid.

    A running service reloads FILE at SIGHUP. Deploy the new secret, then run `retire` to drop the
    old one. After a leak use --keep 0: all older secrets, and all tokens and links made with them,
    end at once.

    \b
    Examples:
      extcli extension rotate --client-id my-extension
      extcli extension rotate --client-id my-extension --keep 0
    """
    written = extensions.rotate(file, session.resolver.client_id(), keep=keep)
    _print_new_secret(session, file, written, show)


@command(app)
def retire(session: Session, file: File = _DEFAULT_FILE) -> None:
    """Drop all secrets of an extension except the newest.

    This is the last step of a rotation. After SIGHUP, a running service refuses tokens signed with
    the dropped secrets, ends the links made with them, and closes the sockets of both. The files of
    the secrets are not deleted.

    Example: extcli extension retire --client-id my-extension
    """
    dropped = extensions.retire(file, session.resolver.client_id())
    _print_edit(session, file, {}, dropped)


@command(app, "revoke-all")
def revoke_all(session: Session, file: File = _DEFAULT_FILE) -> None:
    """End all links and issued tokens of an extension.

    Use it after a token has leaked. Writes the current time to FILE as tokens_not_before. After
    SIGHUP, a running service refuses all links, PINs and issued tokens from before that time, and
    closes their sockets. Broadcasters must link their games again. Tokens that your own servers
    sign stay valid; `rotate` and `retire` end those.

    Example: extcli extension revoke-all --client-id my-extension
    """
    instant = extensions.revoke_all(file, session.resolver.client_id(), now=clock.now())
    _print_edit(session, file, {NOT_BEFORE: instant})


def _print_new_secret(session: Session, file: Path, written: extensions.NewSecret, show: bool) -> None:
    facts = {"secret_file": str(written.file)} if written.file else {}
    _print_edit(session, file, facts | ({"secret": written.secret} if show else {}), written.dropped)
    if written.file is None and (warning := permission_warning(file)):
        session.output.report(warning)


def _print_edit(session: Session, file: Path, facts: dict[str, str], dropped: Sequence[str] = ()) -> None:
    """Print which extension was changed and in which file, what it lost, and when a service reads it."""
    session.output.show_value({"client_id": session.resolver.client_id(), "file": str(file), **facts}, views.RECORD)
    for each in dropped:
        session.output.report(f"dropped: {each}")
    session.output.report("a running service reloads the file at SIGHUP (kill -HUP PID); on Windows, within a second")
