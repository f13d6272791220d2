"""Chooses rules, and runs them against a service, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from importlib import import_module
from pkgutil import iter_modules

from extcli.api.websocket import Closed
from extcli.conform import rules as rule_files
from extcli.conform.calls import Exchange, Target
from extcli.conform.deployment import Deployment
from extcli.conform.rule import Differs, Rule, Skipped, Unknown, Unspecified, shown
from extcli.errors import Refused, ServerError, UsageError

_MOST_CHARACTERS = 300
"""Characters of a value in a report."""


def all_rules() -> list[Rule]:
    """Return the rules of all files in `rules/`, by source."""
    files = [import_module(f"{rule_files.__name__}.{each.name}") for each in iter_modules(rule_files.__path__)]
    found = [each for file in files for each in vars(file).values() if isinstance(each, Rule)]
    return sorted(found, key=lambda each: _source_order(each.source))


def _source_order(source: str) -> tuple[int, str, int]:
    """Return the sort key of a rule's source: the specification first, then docs/gaps.md in its order."""
    if ":" in source:
        return 0 if source.startswith("spec:") else 10, source, 0
    return 1 + "WAPRSTXBC".index(source[0]), "", int(source[1:])


def select_rules(only: Sequence[str]) -> list[Rule]:
    """Return the rules that one of these texts names; without texts, all. Raises `UsageError` for an unknown one.

    A text is the name of a rule, its source (`W3`, `spec: Voting` or `voting`), or a pattern such as `W*`.
    """
    found = all_rules()
    if not only:
        return found
    for text in only:
        if not any(_is_named(each, text) for each in found):
            raise UsageError(f"no rule is named {text!r}", fix="`extcli conform` lists the rules")
    return [each for each in found if any(_is_named(each, text) for text in only)]


def _is_named(rule: Rule, text: str) -> bool:
    """Return whether a text names the rule. Case matters to patterns: `P*` is P1 to P5, and not `purchases`."""
    wanted = " ".join(text.split())
    names = (rule.name, rule.name.partition(".")[0], rule.source)
    return any(each.casefold() == wanted.casefold() or fnmatchcase(each, wanted) for each in names)


class Status(StrEnum):
    """The result of one rule."""

    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    """The specification is silent, and this service responds differently from `extcli serve`."""


@dataclass(slots=True)
class Result:
    """The result of one rule."""

    rule: Rule
    status: Status
    facts: dict[str, str] = field(default_factory=dict)
    """For reports: the `reason` why it was skipped; `what` differs, `expected` and `seen`, and the `request_id` of the
    last request; with a recording `recorded`, which is `same` or how the responses differ from it.
    """
    exchanges: list[Exchange] = field(default_factory=list, repr=False)
    names: dict[str, str] = field(default_factory=dict, repr=False)


def probe_rules(rules: Sequence[Rule], target: Target) -> Iterator[Result]:
    """Probe each rule. Raises `Unreachable` if the service does not respond, after removing the written data."""
    for rule in rules:
        if reason := target.reason_to_skip(rule):
            yield Result(rule, Status.SKIPPED, {"reason": reason})
            continue
        at = Deployment(target, rule)
        try:
            status, facts = _probe_result(at)
            result = Result(rule, status, facts, list(at.exchanges), at.names)
        finally:
            target.unremoved += at.close()
        yield result


def _probe_result(at: Deployment) -> tuple[Status, dict[str, str]]:
    """Probe the rule, and return its result.

    Where the specification is silent, another service's difference is `unknown`.
    """
    try:
        at.rule.probe(at)
    except Skipped as skipped:
        return Status.SKIPPED, {"reason": str(skipped)}
    except Differs as difference:
        found = difference
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        answer = at.exchanges[-1] if at.exchanges else None
        found = Differs(
            f"the response to {answer.request}" if answer else "the response",
            f"a member {shown(error.args[0])}" if isinstance(error, KeyError) else "the documented members and types",
            answer.answer if answer else None,
        )
    except (Closed, Refused, ServerError) as error:
        if isinstance(error, Closed) and error.code is None:
            raise
        found = Differs("the connection", "it stays open", "; ".join(filter(None, (error.what, error.why))))
    else:
        return Status.PASS, {}
    is_specified = at.rule.source.startswith("spec:") or "specified" in at.rule.traits
    may_differ = not at.target.is_emulator and (not is_specified or isinstance(found, Unspecified))
    facts = {"what": found.what, "expected": _text_of(found.expected), "seen": _text_of(found.seen)}
    if ids := [each.request_id for each in at.exchanges if each.request_id]:
        facts["request_id"] = ids[-1]
    return Status.UNKNOWN if may_differ or isinstance(found, Unknown) else Status.FAIL, facts


def _text_of(value: object) -> str:
    """Return a value as one line of JSON, or a string unchanged, cut to 300 characters."""
    text = value if isinstance(value, str) else shown(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
