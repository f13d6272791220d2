"""`extcli data`: the file in which `extcli serve` keeps its data. Uses the code of the service, without a service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from emulator.contract.shell import quoted
from extcli import clock
from extcli.cli import argument, command, flag, noun, option
from extcli.errors import ExpectationFailed, UsageError
from extcli.output import times
from extcli.output.columns import Column, grouped, listing, table
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import stacked
from extcli.session import Session

if TYPE_CHECKING:
    from rich.console import RenderableType

app = noun("The file with the emulator's data: back up, verify, restore, describe.")

Url = Annotated[
    str | None,
    option(
        "--data URL", "The service's data, as passed to `extcli serve`: sqlite:///path.", envvar="EXTCLI_SERVE_DATA"
    ),
]
Backup = Annotated[Path, argument("FILE", "The path of the backup.")]
_VARIABLE = "EXTCLI_SERVE_DATA"
_NAMES = ("format", "version", "bytes", "free_bytes", "namespaces", "oldest", "newest")
"""The facts of a data file, besides its counts."""

_COUNTS = (
    Column("environment", itemgetter(0)),
    Column("kind", itemgetter(1)),
    Column("count", itemgetter(2), "", grouped, right=True),
)


def facts_document(facts: Any, file: str) -> dict[str, Any]:
    """Return the JSON that describes a data file; `facts` come from the engine."""
    return {
        "file": file,
        **{name: getattr(facts, name) for name in _NAMES},
        "environments": [{"name": name, "counts": dict(counts)} for name, counts in facts.environments.items()],
    }


def findings_document(findings: Sequence[str], file: str) -> dict[str, Any]:
    """Return the JSON of a verification."""
    return {"file": file, "findings": [{"what": each} for each in findings]}


def _facts_table(facts: Mapping[str, Any]) -> RenderableType:
    lines = [
        f"format   {facts['format']}, written by extcli {visible(facts['version'] or 'of an unknown version')}",
        f"size     {facts['bytes']:,} bytes, {facts['free_bytes']:,} of them free",
    ]
    if facts["newest"] is not None:
        lines.append(f"entries  {times.shown(facts['oldest'])} to {times.shown(facts['newest'])}")
    if facts["namespaces"]:
        lines.append(f"namespaces  {facts['namespaces']:,}")
    if "backup" in facts:
        made = facts["backup"]
        lines.append(f"backup   {times.shown(made['at'])}, {visible(made['file'])}" if made else "backup   none known")
    counts = table(_COUNTS, _counts(facts))
    return stacked("\n".join(lines), counts if counts.row_count else "empty")


def _counts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for environment in facts["environments"]:
        for kind, count in environment["counts"].items():
            yield environment["name"], kind, count


def _rows(facts: Mapping[str, Any]) -> Iterator[Iterable[str]]:
    for name in _NAMES:
        yield name, "" if facts[name] is None else field(facts[name])
    if "backup" in facts:
        made = facts["backup"]
        yield ("backup", field(made["at"]), field(made["file"])) if made else ("backup", "", "")
    yield from (map(field, count) for count in _counts(facts))


FACTS = View(table=_facts_table, rows=_rows)
"""What a data file holds."""


FINDINGS = listing(
    "findings",
    Column("what is wrong", "what", folds=True),
    else_shown="nothing is wrong",
)
"""What is wrong with a data file."""


@command(app)
def backup(
    session: Session, file: Backup, data: Url = None, force: bool = flag("--force", "Replace an existing file.")
) -> None:
    """Copy the data to a new file, even while the service runs.

    The copy contains every write that was acknowledged before the command started. An existing file
    is replaced only once the copy is complete, checked and on the disk. The copy contains the key
    that signs tokens: keep it secret. Plain output is `format<TAB>bytes`, then `kind<TAB>count`.

    Example: extcli data backup /backup/extension.db --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        from emulator.storage.sqlite.files.backup import back_up

        path = _file_of(data, "back up", "`extcli snapshot save FILE` saves the data of a running service")
        facts = back_up(path, file, now=clock.now(), replace=force)
    session.output.show_value(facts_document(facts, str(file)), FACTS)
    session.output.report(f"saved {path} to {file}")


@command(app, prints=FINDINGS)
def verify(session: Session, file: Path = argument("FILE", "The file.")) -> None:
    """Check a data file or a backup. Exits 7 if something is wrong.

    Changes nothing; the service may run. Checks the format and all pages, as SQLite's
    `integrity_check` does. Prints no stored values. Plain output is $columns.

    Example: extcli data verify /backup/extension.db
    """
    with _engine_errors():
        from emulator.storage.sqlite.files.verification import verify_file

        findings = verify_file(_path(file))
    session.output.show_value(findings_document(findings, str(file)), FINDINGS)
    if findings:
        count = len(findings)
        raise ExpectationFailed(
            f"{file} is damaged: {count:,} finding{'s' if count > 1 else ''}",
            fix="restore a backup: extcli data restore BACKUP --data URL",
        )
    session.output.report(f"{file} is complete")


@command(app)
def restore(session: Session, file: Backup, data: Url = None) -> None:
    """Replace the data with a backup. The service must not run.

    Verifies the backup first, and exits 7 if the backup is damaged. Keeps the old data in a file
    next to the new one, and prints that file's name. Plain output has the same fields as `data
    backup`.

    Example: extcli data restore /backup/extension.db --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        from emulator.storage.sqlite.files.backup import restore as replace

        path = _file_of(data, "restore", "`extcli snapshot load FILE` loads a snapshot into a running service")
        restored = replace(_path(file), path, now=clock.now())
    if restored.findings:
        session.output.show_value(findings_document(restored.findings, str(file)), FINDINGS)
        raise ExpectationFailed(f"{file} is damaged; nothing was changed", fix="use an older backup")
    session.output.show_value(facts_document(restored.facts, path), FACTS)
    session.output.report(f"replaced {path} by {file}")
    if restored.former is not None:
        url = quoted(str(data))
        session.output.report(f"the former data is {restored.former}; to undo, stop the service, then:")
        session.output.report(f"  extcli data restore {quoted(str(restored.former))} --data {url}")


@command(app)
def info(
    session: Session, file: Path | None = argument("FILE", "A data file or a backup.", None), data: Url = None
) -> None:
    """Describe a data file: format, size, content, latest backup.

    The service may run. Plain output is `name<TAB>value`, then `kind<TAB>count`.

    Example: extcli data info /backup/extension.db
    """
    with _engine_errors():
        from emulator.storage.sqlite.files.backup import latest_backup
        from emulator.storage.sqlite.files.verification import facts_of_file

        path = _path(file) if file is not None else _file_of(data, "describe", "`extcli contents` lists what it holds")
        facts = facts_of_file(path)
    session.output.show_value({**facts_document(facts, path), "backup": latest_backup(path)}, FACTS)


@command(app, "forget-key")
def forget_key(session: Session, data: Url = None) -> None:
    """Delete the key that signs tokens, after a leak. The service must not run.

    The next start makes a new one. All links and issued tokens of all namespaces end.

    Example: extcli data forget-key --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        from emulator.auth.signing_key import KIND
        from emulator.storage.sqlite.files.backup import forget

        path = _file_of(data, "change", "`extcli reset` deletes all data of a sandbox")
        count = forget(path, KIND)
    session.output.report(f"deleted {count} signing keys from {path}" if count else f"{path} has no signing key")


def _path(file: Path) -> str:
    """Return the path as text. Raises `UsageError` for a `sqlite:` URL."""
    path = str(file)
    if path.startswith("sqlite:"):
        raise UsageError(f"{path} is not a path", fix="give the file alone, without sqlite://")
    return path


def _file_of(url: str | None, verb: str, instead: str) -> str:
    """Return the file of a data URL. Raises `UsageError` for any other data."""
    from emulator.storage.opening import open_medium

    if url is None:
        raise UsageError("no data is named", fix=f"give --data URL, or set {_VARIABLE}, as for extcli serve")
    try:
        path = open_medium(url).path
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
    from emulator.core.errors import EngineError

    try:
        yield
    except EngineError as error:
        raise UsageError(str(error)) from None
