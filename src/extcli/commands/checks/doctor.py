"""`extcli doctor`: finds what is wrong with a service, the configuration or this machine."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from extcli.cli import argument, shared
from extcli.doctor.service import FINDINGS, Status
from extcli.errors import ExpectationFailed
from extcli.session import Session

_SECONDS = 5.0


@partial(shared, prints=FINDINGS)
def doctor(
    session: Session,
    poll: str | None = argument("POLL", "Check only this poll for old votes, instead of all polls.", None),
) -> None:
    """Check the service, the credentials and this machine: what is wrong, and what to do.

    Prints a line per check: ok, note, fail or skipped. Exits 7 if a check fails. Changes nothing,
    and waits up to --timeout (default 5s) for each response. If POLL has votes over an hour old,
    the check fails; in other polls they are a note.

    Plain output is $columns.

    \b
    Examples:
      extcli doctor
      extcli doctor lunch -o json
    """
    from extcli.doctor.checks import findings

    session.http.set_timeout(session.resolver.timeout(_SECONDS))
    found = list(findings(session, poll))
    document = {"url": session.resolver.url(), "checks": [asdict(each) for each in found]}
    session.output.show_value(document, FINDINGS)
    bad = [each.check for each in found if each.status is Status.FAIL]
    if bad:
        noun = "check" if len(bad) == 1 else "checks"
        raise ExpectationFailed(f"{len(bad)} {noun} failed: {', '.join(bad)}")
