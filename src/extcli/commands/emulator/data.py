"""`extcli data`: the file in which `extcli serve` keeps its data. Uses the code of the service, without a service."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from extcli import clock
from extcli.cli.shared_options import command, noun
from extcli.errors import ExpectationFailed, UsageError
from extcli.session import Session

app = noun("The file with the emulator's data: back up, verify, restore, describe.")

Url = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="URL", envvar="EXTCLI_SERVE_DATA", help="The data, as for extcli serve: sqlite:///path."
    ),
]
Backup = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]
_VARIABLE = "EXTCLI_SERVE_DATA"


@command(app)
def backup(
    session: Session,
    file: Backup,
    data: Url = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Copy the data to a new file, also while the service runs.

    The copy has every write that was acknowledged before. It replaces a file only once it is
    complete, checked and on the disk. It holds the key that signs tokens: keep it secret.
    Plain output is `format<TAB>bytes`, then `kind<TAB>count`.

    Example: extcli data backup /backup/extension.db --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        from emulator.engines.sqlite.files.backup import back_up

        path = _file_of(data, "back up", "`extcli snapshot save FILE` saves the data of a running service")
        made = back_up(path, file, now=clock.now(), replace=force)
    from extcli.output.data_views import FACTS, facts_document

    session.output.show_value(facts_document(made.facts, str(file)), FACTS)
    session.output.report(f"saved {path} to {file}")


@command(app)
def verify(session: Session, file: Annotated[Path, typer.Argument(metavar="FILE", help="The file.")]) -> None:
    """Check a data file or a backup. Exits 7 if something is wrong.

    Changes nothing; the service may run. Reads all pages, compares the tables with the format,
    and the counts of polls, rankings and codes with their logs. Prints no values.
    Plain output is `table<TAB>key<TAB>what is wrong`.

    Example: extcli data verify /backup/extension.db
    """
    with _engine_errors():
        from emulator.engines.sqlite.files.verification import verify_file

        verified = verify_file(_path(file))
    from extcli.output.data_views import FINDINGS, findings_document

    session.output.show_value(findings_document(verified, str(file)), FINDINGS)
    if verified.findings:
        count = len(verified.findings)
        raise ExpectationFailed(
            f"{file} is damaged: {count:,} finding{'s' if count > 1 else ''}",
            fix="restore a backup: extcli data restore BACKUP --data URL",
        )
    session.output.report(f"{file} is complete: format {verified.format}")


@command(app)
def restore(session: Session, file: Backup, data: Url = None) -> None:
    """Replace the data by a backup. The service must not run.

    Verifies the backup first, and exits 7 if something is wrong with it. Keeps the former
    data beside the new, and prints its name. Plain output is that of `data backup`.

    Example: extcli data restore /backup/extension.db --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        from emulator.config.environment import PRODUCTION, SANDBOX
        from emulator.engines.sqlite.files.restore import restore as replace

        path = _file_of(data, "restore", "`extcli snapshot load FILE` loads a snapshot into a running service")
        names = (SANDBOX.name, PRODUCTION.name)
        restored = replace(_path(file), path, environments=names, now=clock.now())
    from extcli.output.data_views import FACTS, FINDINGS, facts_document, findings_document

    if restored.damage is not None:
        session.output.show_value(findings_document(restored.damage, str(file)), FINDINGS)
        raise ExpectationFailed(f"{file} is damaged; nothing was changed", fix="use an older backup")
    session.output.show_value(facts_document(restored.facts, path), FACTS)
    session.output.report(f"replaced {path} by {file}")
    if restored.former is not None:
        url = shlex.quote(str(data))
        session.output.report(f"the former data is {restored.former}; to undo, stop the service, then:")
        session.output.report(f"  extcli data restore {shlex.quote(str(restored.former))} --data {url}")


@command(app)
def info(
    session: Session,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A data file or a backup.")] = None,
    data: Url = None,
) -> None:
    """Describe a data file: format, size, content, latest backup.

    The service may run. Plain output is `name<TAB>value`, then `kind<TAB>count`.

    Example: extcli data info /backup/extension.db
    """
    with _engine_errors():
        from emulator.engines.sqlite.files.backup import latest_backup
        from emulator.engines.sqlite.files.facts import described

        path = _path(file) if file is not None else _file_of(data, "describe", "`extcli contents` lists what it holds")
        facts = described(path)
    from extcli.output.data_views import FACTS, facts_document

    session.output.show_value({**facts_document(facts, path), "backup": latest_backup(path)}, FACTS)


@command(app, "forget-key")
def forget_key(session: Session, data: Url = None) -> None:
    """Delete the key that signs tokens, after a leak. The service must not run.

    The next start makes a new one. All links and issued tokens of all namespaces end.

    Example: extcli data forget-key --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        from emulator.auth.signing_key import KIND
        from emulator.config.environment import PRODUCTION, SANDBOX
        from emulator.engines.sqlite.files.restore import forget

        path = _file_of(data, "change", "`extcli reset` deletes all data of a sandbox")
        count = forget(path, KIND, environments=(SANDBOX.name, PRODUCTION.name))
    session.output.report(f"deleted {count} signing keys from {path}" if count else f"{path} has no signing key")


def _path(file: Path) -> str:
    """Return the path of a file. Raises `UsageError` for a URL such as that of `--data`."""
    path = str(file)
    if path.startswith("sqlite:"):
        raise UsageError(f"{path} is not a path", fix="give the file alone, without sqlite://")
    return path


def _file_of(url: str | None, verb: str, instead: str) -> str:
    """Return the file of a data URL. Raises `UsageError` for any other data."""
    from emulator.engines import file_of

    if url is None:
        raise UsageError("no data is named", fix=f"give --data URL, or set {_VARIABLE}, as for extcli serve")
    try:
        path = file_of(url)
    except ValueError as error:
        raise UsageError(f"--data: {error}") from None
    if path is not None:
        return path
    if url.startswith("sqlite:"):
        raise UsageError(f"cannot {verb} data in memory", why="it is not in a file", fix=instead)
    raise UsageError(
        f"cannot {verb} data in Redis",
        why="extcli has no file of it",
        fix=f"use the tools of Redis, such as BGSAVE; {instead}",
    )


@contextmanager
def _engine_errors() -> Iterator[None]:
    from emulator.errors import EngineError

    try:
        yield
    except EngineError as error:
        raise UsageError(str(error)) from None
