"""`extcli data`: the file in which `extcli serve` keeps its data. Uses the code of the service, without a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from emulator.auth import signing_key
from emulator.contract.shell import quote_word
from emulator.core.errors import EngineError
from emulator.storage.opening import open_medium
from emulator.storage.sqlite import backup as backup_files
from emulator.storage.sqlite import verification
from extcli import clock
from extcli.cli import argument, command, flag, noun, option
from extcli.errors import ExpectationFailed, UsageError, count_text
from extcli.output import times
from extcli.output.columns import Column, listing
from extcli.output.printer import View
from extcli.output.views import RECORD
from extcli.reading import Json
from extcli.session import Session

app = noun("The file with the emulator's data: back up, verify, restore, describe.")

_DATA_VARIABLE = "EXTCLI_SERVE_DATA"
DataUrl = Annotated[
    str | None,
    option("--data URL", "The service's data, as passed to `extcli serve`: sqlite:///path.", envvar=_DATA_VARIABLE),
]
Backup = Annotated[Path, argument("FILE", "The path of the backup.")]
_FACT_NAMES = ("format", "version", "bytes", "free_bytes", "namespaces", "oldest", "newest")
"""The facts of a data file, besides its counts."""


def _facts_document(facts: Any, file: str) -> Json:
    """Return the JSON that describes a data file; `facts` come from the engine."""
    return {
        "file": file,
        **{name: getattr(facts, name) for name in _FACT_NAMES},
        "environments": [{"name": name, "counts": dict(counts)} for name, counts in facts.environments.items()],
    }


def _named_facts(facts: Json) -> Json:
    """Return the facts for `name<TAB>value`."""
    named = {name: facts[name] for name in _FACT_NAMES}
    if "backup" in facts:
        named["backup"] = facts["backup"] and facts["backup"]["file"]
    for each in facts["environments"]:
        for kind, count in each["counts"].items():
            named[f"{each['name']} {kind}"] = count
    return {name: "" if value is None else value for name, value in named.items()}


def _for_people(facts: Json) -> Json:
    return _named_facts(facts) | {name: times.utc_text(facts[name]) for name in ("oldest", "newest") if facts[name]}


FACTS = View(table=lambda facts: RECORD.table(_for_people(facts)), rows=lambda facts: RECORD.rows(_named_facts(facts)))
"""What a data file holds."""
FINDINGS = listing("findings", Column("what is wrong", "what"), else_shown="nothing is wrong")
"""What is wrong with a data file."""


@command(app)
def backup(
    session: Session, file: Backup, data: DataUrl = None, force: bool = flag("--force", "Replace an existing file.")
) -> None:
    """Copy the data to a new file, even while the service runs.

    The copy contains every write that was acknowledged before the command started. An existing file
    is replaced only once the copy is complete, checked and on the disk. The copy contains the key
    that signs tokens: keep it secret. Plain output is `name<TAB>value`.

    Example: extcli data backup /backup/extension.db --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        path = _path_from_url(data)
        facts = backup_files.back_up(path, file, now=clock.now(), replace=force)
    session.output.show_value(_facts_document(facts, str(file)), FACTS)
    session.output.report(f"saved {path} to {file}")


@command(app, prints=FINDINGS)
def verify(session: Session, file: Path = argument("FILE", "The file.")) -> None:
    """Check a data file or a backup. Exits 7 if something is wrong.

    Changes nothing; the service may run. Checks the format and all pages, as SQLite's
    `integrity_check` does. Prints no stored values. Plain output is $columns.

    Example: extcli data verify /backup/extension.db
    """
    with _engine_errors():
        findings = verification.verify_file(str(file))
    _show_findings(session, findings, file)
    if findings:
        raise ExpectationFailed(f"{file} is damaged", fix="restore a backup: extcli data restore BACKUP --data URL")
    session.output.report(f"{file} is complete")


@command(app)
def restore(session: Session, file: Backup, data: DataUrl = None) -> None:
    """Replace the data with a backup. The service must not run.

    Verifies the backup first, and exits 7 if the backup is damaged. Keeps the old data in a file
    next to the new one, and prints that file's name. Plain output has the same fields as `data
    backup`.

    Example: extcli data restore /backup/extension.db --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        path = _path_from_url(data)
        restored = backup_files.restore(str(file), path, now=clock.now())
    if restored.findings:
        _show_findings(session, restored.findings, file)
        raise ExpectationFailed(f"{file} is damaged; nothing was changed", fix="use an older backup")
    session.output.show_value(_facts_document(restored.facts, path), FACTS)
    session.output.report(f"replaced {path} with {file}")
    if restored.former is not None:
        session.output.report(f"the old data is in {restored.former}; to undo, stop the service and run:")
        session.output.report(
            f"  extcli data restore {quote_word(str(restored.former))} --data {quote_word(str(data))}"
        )


@command(app)
def info(
    session: Session, file: Path | None = argument("FILE", "A data file or a backup.", None), data: DataUrl = None
) -> None:
    """Describe a data file: format, size, content, latest backup.

    The service may run. Plain output is `name<TAB>value`.

    Example: extcli data info /backup/extension.db
    """
    with _engine_errors():
        path = _path_from_url(data) if file is None else str(file)
        facts = verification.describe_file(path)
    session.output.show_value({**_facts_document(facts, path), "backup": backup_files.latest_backup(path)}, FACTS)


@command(app, "forget-key")
def forget_key(session: Session, data: DataUrl = None) -> None:
    """Delete the key that signs tokens, after a leak. The service must not run.

    The next start makes a new key. All links and issued tokens of all namespaces become invalid.

    Example: extcli data forget-key --data sqlite:///srv/extension.db
    """
    with _engine_errors():
        path = _path_from_url(data)
        count = backup_files.delete_documents(path, signing_key.KIND)
    session.output.report(
        f"deleted {count_text(count, 'signing key')} from {path}" if count else f"{path} has no signing key"
    )


def _show_findings(session: Session, findings: Sequence[str], file: Path) -> None:
    session.output.show_value({"file": str(file), "findings": [{"what": each} for each in findings]}, FINDINGS)


def _path_from_url(url: str | None) -> str:
    """Return the file of a data URL. Raises `UsageError` for any other data."""
    if url is None:
        raise UsageError("no data file was given", fix=f"give --data URL, or set {_DATA_VARIABLE}, as for extcli serve")
    try:
        path = open_medium(url).path
    except ValueError as error:
        raise UsageError(f"--data: {error}") from None
    if path is None:
        fix = "use `extcli snapshot save` and `snapshot load`; for Redis, also its own tools, such as BGSAVE"
        raise UsageError("--data: data in memory or on Redis has no file", fix=fix)
    return path


@contextmanager
def _engine_errors() -> Iterator[None]:
    try:
        yield
    except EngineError as error:
        raise UsageError(str(error)) from None
