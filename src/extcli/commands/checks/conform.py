"""`extcli conform`: probes whether a service keeps the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli.cli import flag, option, shared
from extcli.cli.confirm import Yes
from extcli.config.urls import same_address, service_of
from extcli.errors import ExpectationFailed, Unreachable
from extcli.session import Session

if TYPE_CHECKING:
    from extcli.conform.run import Result
    from extcli.conform.target import Target


@shared
def conform(
    session: Session,
    only: list[str] | None = option("--only RULE", "Check only these rules: W3, W3.empty-list, 'W*'. Repeatable."),
    writes: bool = flag("--writes", "Also check rules that write data; they use ids that no one else uses."),
    whole_extension: bool = flag(
        "--whole-extension", "With --writes: also replace the extension's codes, config and state."
    ),
    record: Path | None = option("--record FILE", "Also write the service's responses to this file, as a recording."),
    against: Path | None = option(
        "--against FILE", "Also compare the service's responses with the recording in this file."
    ),
    junit: Path | None = option("--junit FILE", "Also write the results to this file, as JUnit XML."),
    strict: bool = flag("--strict", "Also exit 7 if the result of a rule is `unknown`."),
    yes: Yes = False,
) -> None:
    """Check that a service keeps the rules: pass, fail, skipped or unknown for each.

    Only reads, unless --writes. A rule is unknown if the specification is silent and the service
    differs from `extcli serve`. Exits 7 if a rule fails or a response differs from the recording,
    and 3 if the service does not respond. With --writes, production needs --yes.

    Plain output is `status<TAB>rule<TAB>sentence<TAB>reason<TAB>what<TAB>expected<TAB>
    seen<TAB>request id<TAB>recorded`.

    \b
    Examples:
      extcli conform
      extcli conform --writes --only 'W*'
    """
    from extcli.atomic_file import check_place, save
    from extcli.conform import report
    from extcli.conform.deployment import target_of
    from extcli.conform.run import chosen, results
    from extcli.output import progress

    rules = chosen(only or [])
    check_place(record, "--record")
    check_place(junit, "--junit")
    old = report.read(against) if against else None
    writes = writes and not session.dry_run
    target = target_of(session, writes=writes, whole_extension=whole_extension)
    if writes and not yes:
        _confirm(session, target)
    found: list[Result] = []
    try:
        with progress.progress_bar(session.output, "rules", len(rules), is_bytes=False) as report_done:
            for result in results(rules, target):
                if old is not None:
                    result.recorded = report.compare(result, old)
                found.append(result)
                report_done(len(found))
    except Unreachable as error:
        _report(session, target, found)
        done = f"{len(found)} of {len(rules)} rules were done; {rules[len(found)].name} was not"
        raise Unreachable(error.what, why=f"{error.why}; {done}" if error.why else done, fix=error.fix) from None
    finally:
        if target.left:
            session.output.report(f"not removed, and left to expire: {', '.join(target.left)}")
    document = _report(session, target, found)
    if record:
        report.write(record, target.environment, found)
    if junit:
        save(junit, report.junit(document).decode())
    _raise_if_failed(document, strict=strict)


def _report(session: Session, target: Target, found: Sequence[Result]) -> dict[str, Any]:
    """Print the results, and return them as JSON."""
    from extcli.conform import report

    document = report.document_of(session.resolver.url(), target.environment, found)
    session.output.show_value(document, report.view())
    return document


def _confirm(session: Session, target: Target) -> None:
    from extcli.cli.confirm import ask, guard

    loss = "--writes makes polls, stores, links and messages, in channels whose ids begin with conform-"
    url = session.resolver.url()
    if session.is_production(target.environment):
        ask(session, [f"{url} is production", loss], "Continue?")
    elif not same_address(service_of(target.ws_url), url):
        guard(session, loss, yes=False, over_socket=True)


def _raise_if_failed(document: Mapping[str, Any], *, strict: bool) -> None:
    """Raise `ExpectationFailed` if a rule is not kept, or a response differs from the recording."""
    from extcli.conform.report import is_failure

    bad = [each for each in document["rules"] if is_failure(each, strict=strict)]
    broken = [each["rule"] for each in bad if each["status"] != "pass"]
    different = [each["rule"] for each in bad if each["status"] == "pass"]
    found = []
    if broken:
        found.append(f"{_count(broken)} not kept: {', '.join(broken)}")
    if different:
        found.append(f"{_count(different)} kept, but the responses differ from the recording: {', '.join(different)}")
    if found:
        raise ExpectationFailed("; ".join(found))


def _count(rules: Sequence[str]) -> str:
    return "1 rule is" if len(rules) == 1 else f"{len(rules)} rules are"
