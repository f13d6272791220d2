"""`extcli snapshot`: all data of the emulator as a file. `extcli seed`: files with the data that a test begins with."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from extcli import snapshots
from extcli.cli import argument, command, flag, noun, option
from extcli.errors import ExpectationFailed, count_text
from extcli.output import views
from extcli.reading import document_of
from extcli.seeds import apply as apply_seed
from extcli.seeds import read
from extcli.session import Session

app = noun("Snapshots: save all data of the emulator to a file, load it, and compare files.")

Source = Annotated[str, argument("FILE", "The snapshot to read; - is standard input. A .gz file is decompressed.")]


@command(app)
def save(
    session: Session,
    file: str = argument("FILE", "The file to write; - is standard output. A .gz file is compressed."),
    with_keys: bool = flag("--with-keys", "Include the signing key, links, PINs and PIN tokens."),
) -> None:
    """Save all data and the clock to a file.

    An existing file is replaced once the snapshot is complete. A snapshot is one JSON document with
    one record per line. Equal data give equal files. Without --with-keys, the only secrets in it
    are reward codes.

    \b
    Examples:
      extcli snapshot save before.json
      extcli snapshot save - | git hash-object --stdin
    """
    session.http.set_timeout(session.resolver.timeout(snapshots.TIMEOUT))
    with session.control().stream("snapshot", keys="true" if with_keys else None) as response:
        if file == snapshots.STDIO:
            session.output.body(snapshots.checked_snapshot(response))
            return
        header = snapshots.save_response(response, Path(file))
    session.output.report(f"saved {count_text(sum(header['counts'].values()), 'record')} to {file}")


@command(app, loses="all data is replaced", is_control=True, prints=snapshots.COUNTS)
def load(session: Session, file: Source) -> None:
    """Replace all data and the clock with a snapshot. Prints the number of records of each type.

    The service checks the whole snapshot first; if a line is invalid, nothing is changed.
    A snapshot without keys ends all links, and deletes the stored links to the service.
    Plain output is $columns.

    Example: extcli snapshot load before.json
    """
    from extcli.realtime import login

    session.http.set_timeout(session.resolver.timeout(snapshots.TIMEOUT))
    response = session.control().send("PUT", "snapshot", snapshots.request_body(file))
    session.output.show(response, snapshots.COUNTS)
    if not document_of(response, {"keys": bool})["keys"]:
        login.delete_links(session)


@command(app, prints=snapshots.FACTS)
def show(session: Session, file: Path = argument("FILE", "The file.")) -> None:
    """Describe a snapshot: its clock, version, size and number of records.

    Counts the records by type and kind. Needs no service. Plain output is $columns.

    Example: extcli snapshot show before.json
    """
    session.output.show_value(snapshots.describe_file(file), snapshots.FACTS)


@command(app, prints=snapshots.DIFFERENCE)
def diff(
    session: Session,
    before: Path = argument("BEFORE", "The older snapshot."),
    after: Path = argument("AFTER", "The newer snapshot."),
    limit: int = option("--limit N", "Print at most this many records.", 100, min=0),
) -> None:
    """Print which records differ between two snapshots. Exits 7 if any do.

    Lists added, removed and changed records. Needs no service. Prints keys and names of fields,
    never values. The version of extcli that saved a file is not compared. Plain output is $columns.

    Example: extcli snapshot diff before.json after.json
    """
    found = snapshots.compare_files(before, after, most=limit)
    session.output.show_value(found, snapshots.DIFFERENCE)
    if found["equal"]:
        return
    counts = {change: found[change] for change in sorted(snapshots.SIGNS) if found[change]}
    total, listed = sum(counts.values()), len(found["records"])
    raise ExpectationFailed(
        "the snapshots differ",
        why=f"records: {', '.join(f'{count:,} {change}' for change, count in counts.items())}" if counts else "",
        fix=f"{total - listed:,} more are not shown; --limit {total} shows all" if total > listed else "",
    )


seed_app = noun("Seeds: files with the data that a test begins with.")

File = Annotated[str, argument("FILE", "The seed: a TOML file, a .json file, or - for standard input.")]


TrustSeed = Annotated[
    bool, flag("--trust-seed", "Let the seed read any of your files and write tokens anywhere. For seeds you trust.")
]


@command(seed_app)
def check(session: Session, file: File, trust_seed: TrustSeed = False) -> None:
    """Check a seed and the files that it names. Sends nothing.

    The files must be in the seed's folder. Each error names the line, the column and the field, and
    says what is allowed. Limits that are options of `serve` are only checked by `seed apply`.

    Example: extcli seed check seed.toml
    """
    seed = read(file, os.environ, trusted=trust_seed)
    session.output.report(f"{seed.source.name} is valid")


@command(seed_app)
def example(session: Session) -> None:
    """Print an example of a seed with everything that it can contain.

    Example: extcli seed example > seed.toml
    """
    session.output.body([files("extcli").joinpath("example_seed.toml").read_bytes()])


@command(seed_app, loses="data is replaced, and the clock may move", is_control=True)
def apply(session: Session, file: File, trust_seed: TrustSeed = False) -> None:
    """Put the data of a seed into the service: all of it, or nothing.

    Replaces the service's data under the same ids; other data stays. Files that the seed names must
    be in the seed's folder. Where the seed writes a token to an existing file, that file must hold
    a token. To choose a namespace, pass its URL with --url. To start without other data, run
    `extcli reset` first.

    \b
    Examples:
      extcli seed apply seed.toml
      extcli seed apply seed.toml --url http://127.0.0.1:8282/_ns/blue
    """
    result = apply_seed(read(file, os.environ, trusted=trust_seed), session.control())
    session.output.show_value(result, views.SEEDED)
