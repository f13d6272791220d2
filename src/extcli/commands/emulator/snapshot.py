"""`extcli snapshot`: all data of the emulator as a file. `extcli seed`: files with the data that a test begins with."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from extcli.cli import argument, command, flag, noun, option
from extcli.output import views
from extcli.reading.shapes import document_of
from extcli.seeds import read
from extcli.seeds.reader import apply as apply_seed
from extcli.session import Session
from extcli.snapshots import comparison

app = noun("Snapshots: save all data of the emulator to a file, load it, and compare files.")

Source = Annotated[str, argument("FILE", "The snapshot to read; - is standard input. A name in .gz is decompressed.")]
Target = Annotated[str, argument("FILE", "The file to write; - is standard output. A name in .gz is compressed.")]


@command(app)
def save(
    session: Session,
    file: Target,
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
    from extcli.codes.streamed_body import counted
    from extcli.snapshots import content

    session.http.set_timeout(session.resolver.timeout(content.TIMEOUT))
    with session.control().save_snapshot(keys=with_keys) as response:
        if file == content.STANDARD:
            session.output.body(content.checked_body(response))
            return
        header = content.receive(response, Path(file))
    session.output.report(f"saved {counted(sum(header.counts.values()), 'record')} to {file}")


@command(app, loses="all data is replaced", is_control=True, prints=comparison.COUNTS)
def load(session: Session, file: Source) -> None:
    """Replace all data and the clock with a snapshot.

    Then prints how many records of each type the service has.

    The service checks the whole snapshot first; if a line is invalid, nothing is changed.
    A snapshot without keys ends all links, and deletes the stored links to the service.
    Plain output is $columns.

    Example: extcli snapshot load before.json
    """
    from extcli.realtime import login
    from extcli.snapshots import content

    session.http.set_timeout(session.resolver.timeout(content.TIMEOUT))
    with content.body_of(file) as body:
        response = session.control().load_snapshot(body)
    session.output.show(response, comparison.COUNTS)
    if not document_of(response, {"keys": bool})["keys"]:
        login.delete_links(session)


@command(app, prints=comparison.FACTS)
def show(session: Session, file: Path = argument("FILE", "The file.")) -> None:
    """Describe a snapshot: its clock, version, size and number of records.

    The records are counted by type and kind.

    Needs no service. Plain output is $columns.

    Example: extcli snapshot show before.json
    """
    session.output.show_value(comparison.facts_of(file), comparison.FACTS)


@command(app, prints=comparison.DIFFERENCE)
def diff(
    session: Session,
    before: Path = argument("BEFORE", "The snapshot to compare with."),
    after: Path = argument("AFTER", "The newer snapshot."),
    limit: int = option("--limit N", "Print at most this many records.", 100, min=0),
) -> None:
    """Print which records differ between two snapshots. Exits 7 if any do.

    Lists added, removed and changed records. Needs no service. Prints keys and names of fields,
    never values. The version of extcli that saved a file is not compared. Plain output is $columns.

    Example: extcli snapshot diff before.json after.json
    """
    from extcli.errors import ExpectationFailed

    found = comparison.compare(before, after, most=limit)
    session.output.show_value(found, comparison.DIFFERENCE)
    if found["equal"]:
        return
    counts = {change: found[change] for change in sorted(comparison.SIGNS) if found[change]}
    total, listed = sum(counts.values()), len(found["records"])
    raise ExpectationFailed(
        "the snapshots differ",
        why=f"records: {', '.join(f'{count:,} {change}' for change, count in counts.items())}" if counts else "",
        fix=f"{total - listed:,} more are not shown; --limit {total} shows all" if total > listed else "",
    )


seed_app = noun("Seeds: files with the data that a test begins with.")

File = Annotated[str, argument("FILE", "The seed: TOML, or JSON if its name ends in .json; or -.")]


TrustSeed = Annotated[
    bool,
    flag(
        "--trust-seed", "Let the seed read any of your files and write tokens anywhere. Only for seeds that you trust."
    ),
]


@command(seed_app)
def check(session: Session, file: File, trust_seed: TrustSeed = False) -> None:
    """Check a seed and the files that it names. Sends nothing.

    The files must be in the seed's folder. Each error has its line, column and field, and says what
    is allowed. Limits that the options of `serve` change are checked by `seed apply` only.

    Example: extcli seed check seed.toml
    """
    seed = read(file, os.environ, trusted=trust_seed)
    session.output.report(f"{seed.name} is valid")


@command(seed_app)
def example(session: Session) -> None:
    """Print an example of a seed with everything that it can contain.

    Example: extcli seed example > seed.toml
    """
    session.output.body([files("extcli.seeds").joinpath("example.toml").read_bytes()])


@command(seed_app, loses="data are replaced, and the clock may move", is_control=True)
def apply(session: Session, file: File, trust_seed: TrustSeed = False) -> None:
    """Put the data of a seed into the service: all of it, or nothing.

    Replaces the service's data under the same ids; everything else stays. Files that the seed names
    must be in the seed's folder, and an existing file is replaced only if it holds a token. To
    choose a namespace, pass its URL. To begin with nothing else, run `extcli reset` first.

    \b
    Examples:
      extcli seed apply seed.toml
      extcli seed apply seed.toml --url http://127.0.0.1:8282/_ns/blue
    """
    result = apply_seed(read(file, os.environ, trusted=trust_seed), session.control())
    session.output.show_value(result, views.SEEDED)
