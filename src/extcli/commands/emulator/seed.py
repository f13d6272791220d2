"""`extcli seed`: files with the data that a test begins with."""

from __future__ import annotations

import os
from importlib.resources import files
from typing import Annotated

from extcli.cli import argument, command, flag, noun
from extcli.output import views
from extcli.seeds import read
from extcli.seeds.reader import apply as apply_seed
from extcli.session import Session

app = noun("Seeds: files with the data that a test begins with.")

File = Annotated[str, argument("FILE", "The seed: TOML, or JSON if its name ends in .json; or -.")]


TrustSeed = Annotated[
    bool,
    flag(
        "--trust-seed", "Let the seed read any of your files and write tokens anywhere. Only for seeds that you trust."
    ),
]


@command(app)
def check(session: Session, file: File, trust_seed: TrustSeed = False) -> None:
    """Check a seed and the files that it names. Sends nothing.

    The files must be in the seed's folder. Each error has its line, column and field, and says what
    is allowed. Limits that the options of `serve` change are checked by `seed apply` only.

    Example: extcli seed check seed.toml
    """
    seed = read(file, os.environ, trusted=trust_seed)
    session.output.report(f"{seed.name} is valid")


@command(app)
def example(session: Session) -> None:
    """Print an example of a seed with everything that it can contain.

    Example: extcli seed example > seed.toml
    """
    session.output.body([files("extcli.seeds").joinpath("example.toml").read_bytes()])


@command(app, loses="data are replaced, and the clock may move", is_control=True)
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
