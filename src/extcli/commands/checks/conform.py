"""`extcli conform`: probes whether a service keeps the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from extcli.cli.confirm import Yes
from extcli.cli.shared_options import shared
from extcli.errors import ExpectationFailed, Unreachable
from extcli.session import Session


@shared
def conform(
    session: Session,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="RULE", help="Only these rules: W3, W3.empty-list, 'W*'. Repeatable."),
    ] = None,
    writes: Annotated[
        bool, typer.Option("--writes", help="Also probe rules that change data, in ids of its own.")
    ] = False,
    whole_extension: Annotated[
        bool,
        typer.Option("--whole-extension", help="With --writes: also replace the extension's codes, config and state."),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="`unknown` fails, too.")] = False,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")] = None,
    yes: Yes = False,
) -> None:
    """Check that a service keeps the rules: `pass`, `fail`, `skipped` or `unknown` for each.

    Only reads, unless --writes. `unknown` means that the specification is silent, and the
    service differs from `extcli serve`. Exits 7 if a rule fails, and 3 if the service does
    not answer.

    Plain output is `status<TAB>rule<TAB>sentence<TAB>reason<TAB>what<TAB>expected<TAB>seen<TAB>request
    id<TAB>recorded`.

    \b
    Examples:
      extcli conform
      extcli conform --writes --only 'W*'
    """
    from extcli.cli.confirm import ask
    from extcli.conform import report
    from extcli.conform.catalog import chosen
    from extcli.conform.opening import is_production, target_of
    from extcli.conform.run import Status, results

    rules = chosen(only or [])
    target = target_of(session, writes=writes, whole_extension=whole_extension)
    if writes and not yes and is_production(session, target):
        ask(session, ["writes polls, stores, links and messages under ids that begin with conform-"], "Continue?")
    found = []
    try:
        for result in results(rules, target):
            found.append(result)
    except Unreachable as error:
        done = f"{len(found)} of {len(rules)} rules were done; {rules[len(found)].name} was not"
        raise Unreachable(error.what, why=f"{error.why}; {done}" if error.why else done, fix=error.fix) from None
    document = report.document_of(session.resolver.url(), target.environment, found)
    session.output.show_value(document, report.view())
    if junit:
        from extcli.atomic_file import replace

        replace(junit, report.junit(document).decode())
    bad = [each.rule.name for each in found if each.status is Status.FAIL or (strict and each.status is Status.UNKNOWN)]
    if bad:
        noun = "rule is" if len(bad) == 1 else "rules are"
        raise ExpectationFailed(f"{len(bad)} {noun} not kept: {', '.join(bad)}")
