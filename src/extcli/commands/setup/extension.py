"""`extcli extension`: the extensions file, and their secrets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from emulator.contract.limits import MIN_SECRET_BYTES
from extcli.cli import argument, command, flag, noun, option
from extcli.output import views
from extcli.output.columns import Column, listing
from extcli.output.sanitize import visible
from extcli.session import Session

if TYPE_CHECKING:
    from extcli.extensions.editor import Dropped, Written

app = noun("Registered extensions: the file that `serve --extensions` reads, and its secrets.")

File = Annotated[str, argument("FILE", "The TOML file.", envvar="EXTCLI_SERVE_EXTENSIONS")]
Show = Annotated[bool, flag("--show", "Print the new secret as well.")]
_DEFAULT = "extensions.toml"
_OTHERS = 0o077


def _in_words(source: dict[str, str]) -> str:
    place = source["from"] + (f" {source['name']}" if "name" in source else "")
    return place if source["state"] == "ok" else f"{place} ({source['state']})"


def _places_of_secrets(extension: dict[str, Any]) -> list[str]:
    return [_in_words(source) for source in extension["sources"]]


_LIST = listing(
    "",
    Column("CLIENT ID", "client_id", "client id", folds=True),
    Column("OWNER", lambda each: each["owner_user_id"] or "", "owner", lambda owner: visible(owner or "-"), folds=True),
    Column("NUMBER OF SECRETS", "secrets", "secrets", str, folds=True),
    Column("", lambda each: "\n".join(map(visible, _places_of_secrets(each))), "from, newest first", str, folds=True),
    Column("SOURCES", lambda each: ", ".join(_places_of_secrets(each)), in_table=False),
)


@command(app)
def init(
    session: Session,
    file: File = _DEFAULT,
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
    from extcli.extensions.editor import register

    path, client_id = Path(file), session.resolver.client_id()
    existed = path.exists()
    written = register(path, client_id, owner=owner, inline=inline)
    _print_written(session, path, written, show)
    if existed:
        _suggest_reload(session)


@command(app, "list", prints=_LIST)
def list_extensions(session: Session, file: File = _DEFAULT) -> None:
    """List the registered extensions, and where their secrets are.

    Fails if the service could not start with FILE. Plain output is $columns.

    Example: extcli extension list
    """
    from extcli.extensions.registry import registrations

    found = registrations(Path(file))
    session.output.show_value(found, _LIST)
    for each in found:
        if any(source["state"] == "short" for source in each["sources"]):
            session.output.report(
                f"{each['client_id']}: a secret is shorter than the {MIN_SECRET_BYTES} bytes that HS256 requires"
            )


@command(app)
def rotate(
    session: Session,
    file: File = _DEFAULT,
    keep: int = option("--keep N", "The number of older secrets that stay valid.", 1, min=0, max=100),
    show: Show = False,
) -> None:
    """Add a new secret to an extension, and keep the previous valid.

    A running service reloads FILE at SIGHUP. Deploy the new secret, then run `retire` to drop the
    old one. After a leak use --keep 0: all older secrets, and all tokens and links made with them,
    end at once.

    \b
    Examples:
      extcli extension rotate --client-id my-extension
      extcli extension rotate --client-id my-extension --keep 0
    """
    from extcli.extensions.editor import rotate

    path = Path(file)
    written = rotate(path, session.resolver.client_id(), keep=keep)
    _print_written(session, path, written, show)
    _report_dropped(session, written.dropped)
    _suggest_reload(session)


@command(app)
def retire(session: Session, file: File = _DEFAULT) -> None:
    """Drop all secrets of an extension but the newest.

    This is the last step of a rotation. After SIGHUP, a running service refuses their
    tokens, ends the links that they admitted, and closes their sockets. The files of dropped
    secrets are not deleted.

    Example: extcli extension retire --client-id my-extension
    """
    from extcli.extensions.editor import retire

    path, client_id = Path(file), session.resolver.client_id()
    dropped = retire(path, client_id)
    session.output.show_value({"client_id": client_id, "file": str(path)}, views.RECORD)
    _report_dropped(session, dropped)
    if dropped:
        _suggest_reload(session)
    else:
        session.output.report("nothing to drop: the extension has only one secret")


@command(app, "revoke-all")
def revoke_all(session: Session, file: File = _DEFAULT) -> None:
    """End all links and issued tokens of an extension.

    Use it after a token has leaked. Writes the present time to FILE as tokens_not_before. After
    SIGHUP, a running service refuses every link made before it, with its PINs and tokens, and
    closes their sockets; broadcasters link their games again. Tokens that your own servers sign
    stay valid: `rotate` and `retire` end those.

    Example: extcli extension revoke-all --client-id my-extension
    """
    from emulator.contract.extensions_file import NOT_BEFORE
    from extcli import clock
    from extcli.extensions.editor import revoke_all

    path, client_id = Path(file), session.resolver.client_id()
    instant = revoke_all(path, client_id, now=clock.now())
    session.output.show_value({"client_id": client_id, "file": str(path), NOT_BEFORE: instant}, views.RECORD)
    _suggest_reload(session)


def _print_written(session: Session, path: Path, written: Written, show: bool) -> None:
    facts = {"client_id": session.resolver.client_id(), "file": str(path)}
    if written.file:
        facts["secret_file"] = str(written.file)
    if show:
        facts["secret"] = written.secret
    session.output.show_value(facts, views.RECORD)
    if written.file is None and path.stat().st_mode & _OTHERS:
        session.output.report(f"{path} contains secrets, and other users can read it")


def _report_dropped(session: Session, dropped: list[Dropped]) -> None:
    for each in dropped:
        file_stays = "; its file was not deleted" if each.key == "secret_files" else ""
        session.output.report(f"dropped: {each}{file_stays}")


def _suggest_reload(session: Session) -> None:
    if sys.platform == "win32":
        session.output.report("a running service reloads the file within a second")
    else:
        session.output.report("to reload a running service: kill -HUP <pid>")
