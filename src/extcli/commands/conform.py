"""`extcli doctor`: finds what is wrong with a service, the configuration or this machine. `extcli conform`: probes
whether a service keeps the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli.cli import argument, confirm, flag, option, shared
from extcli.cli.confirm import Yes
from extcli.config.urls import same_address, service_of
from extcli.doctor.service import FINDINGS, Status
from extcli.errors import ExpectationFailed, Unreachable
from extcli.session import Session

if TYPE_CHECKING:
    from extcli.conform.calls import Target
    from extcli.conform.run import Result


@shared
def conform(
    session: Session,
    only: list[str] | None = option("--only RULE", "Check only this rule: W3, W3.empty-list, 'W*'. Repeatable."),
    writes: bool = flag("--writes", "Also check rules that write data. The data has new ids."),
    whole_extension: bool = flag("--whole-extension", "With --writes: allow it to replace codes, config and state."),
    record: Path | None = option("--record FILE", "Also record the service's responses in this file."),
    against: Path | None = option("--against FILE", "Also compare the responses with the recording in this file."),
    junit: Path | None = option("--junit FILE", "Also write the results to this file, as JUnit XML."),
    strict: bool = flag("--strict", "Also exit 7 if the result of a rule is `unknown`."),
    yes: Yes = False,
) -> None:
    """Check that a service keeps the rules, and print for each: pass, fail, skipped or unknown.

    Writes data only with --writes. A rule is unknown if the specification is silent and the service
    differs from `extcli serve`. Exits 7 if a rule fails or a response differs from the recording,
    and 3 if the service does not respond. With --writes, production needs confirmation or --yes.

    Plain output is `status<TAB>rule<TAB>sentence<TAB>reason<TAB>what<TAB>expected<TAB>
    seen<TAB>request id<TAB>recorded`.

    \b
    Examples:
      extcli conform
      extcli conform --writes --only 'W*'
    """
    from extcli.atomic_file import check_writable, replace_text
    from extcli.conform import report
    from extcli.conform.deployment import make_target
    from extcli.conform.run import probe_rules, select_rules
    from extcli.output.terminal import progress_bar

    rules = select_rules(only or [])
    check_writable(record, "--record")
    check_writable(junit, "--junit")
    old = report.read_recording(against) if against else None
    writes = writes and not session.dry_run
    target = make_target(session, writes=writes, whole_extension=whole_extension)
    if writes and not yes:
        _confirm_writes(session, target)
    found: list[Result] = []
    try:
        with progress_bar(len(rules), quiet=session.output.quiet) as report_done:
            for result in probe_rules(rules, target):
                if old is not None and (recorded := report.compare(result, old)):
                    result.facts["recorded"] = recorded
                found.append(result)
                report_done(len(found))
    except Unreachable as error:
        _print_results(session, target, found)
        done = f"{len(found)} of {len(rules)} rules ran; stopped at {rules[len(found)].name}"
        raise Unreachable(error.what, why=f"{error.why}; {done}" if error.why else done, fix=error.fix) from None
    finally:
        if target.unremoved:
            session.output.report(f"could not remove this data, which expires later: {', '.join(target.unremoved)}")
    document = _print_results(session, target, found)
    if record:
        report.write_recording(record, target.environment, found)
    if junit:
        replace_text(junit, report.junit_xml(document))
    if bad := [each["rule"] for each in document["rules"] if report.is_failure(each, strict=strict)]:
        count = "1 rule" if len(bad) == 1 else f"{len(bad)} rules"
        raise ExpectationFailed(f"{count} failed, or differ from the recording: {', '.join(bad)}")


def _print_results(session: Session, target: Target, found: Sequence[Result]) -> dict[str, Any]:
    """Print the results, and return them as JSON."""
    from extcli.conform import report

    document = report.results_document(session.resolver.url(), target.environment, found)
    session.output.show_value(document, report.RESULTS)
    return document


def _confirm_writes(session: Session, target: Target) -> None:
    loss = "--writes creates polls, stores, links and messages, in channels whose ids begin with conform-"
    if session.why_production(target.environment):
        confirm.ask_about_loss(session, [loss], "Continue?")
    elif not same_address(service_of(target.ws_url), session.resolver.url()):
        confirm.ask_in_production(session, loss, yes=False, over_socket=True)


# Doctor

_DOCTOR_TIMEOUT = 5.0


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
    from extcli.doctor.checks import run_checks

    session.http.set_timeout(session.resolver.timeout(_DOCTOR_TIMEOUT))
    found = list(run_checks(session, poll))
    document = {"url": session.resolver.url(), "checks": [asdict(each) for each in found]}
    session.output.show_value(document, FINDINGS)
    bad = [each.check for each in found if each.status is Status.FAIL]
    if bad:
        noun = "check" if len(bad) == 1 else "checks"
        raise ExpectationFailed(f"{len(bad)} {noun} failed: {', '.join(bad)}")
