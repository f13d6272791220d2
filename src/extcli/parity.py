"""The verdicts of the sandbox: the rules by which production differs, and which of them are failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from emulator.contract.parity import DIFFER, REFUSE, RULES, UNKNOWN
from extcli.errors import UsageError

EXCLUDES: Final = "!"
"""Before the name of a rule: leaves it out."""
RULE_GROUPS: Final = {"rate": ("caller-rate", "client-rate")}
_VERDICT_TEXTS: Final = {REFUSE: "would refuse", UNKNOWN: "may refuse", DIFFER: "would differ"}

RuleVerdicts = Mapping[str, Any]
"""A rule, its verdict, how often it was given, and examples, as `GET /_emulator/parity` returns them."""


VERDICTS_SHAPE: Final = {
    "rules": [
        {"rule": str, "verdict": str, "count": int, "examples": [{"request_id": str, "endpoint": str, "at": int}]}
    ]
}
"""The shape of the response of `GET /_emulator/parity`."""


class RuleSelection:
    """The rules whose verdicts count as failures: all but `unknown`, or the rules in a list.

    A name after `!` is left out: `!stage` is every rule but this one.
    """

    def __init__(self, names: str = "") -> None:
        """`names` is separated by commas. Raises `UsageError` for an unknown name, and if no rule is left."""
        given = [name.strip() for name in names.split(",") if name.strip()]
        for name in given:
            if name.removeprefix(EXCLUDES) not in (*RULES, *RULE_GROUPS, UNKNOWN):
                known = ", ".join((*RULES, *RULE_GROUPS, UNKNOWN))
                raise UsageError(f"there is no rule {name[:40]!r}", fix=f"the rules are {known}; !RULE leaves one out")
        named = _rules_of(name for name in given if not name.startswith(EXCLUDES)) or set(RULES)
        self._rules = named - _rules_of(name.removeprefix(EXCLUDES) for name in given if name.startswith(EXCLUDES))
        if not self._rules:
            raise UsageError(f"{names[:40]!r} excludes every rule")

    def failures(self, document: Mapping[str, Any]) -> list[RuleVerdicts]:
        """Return the selected verdicts of a response of `GET /_emulator/parity`."""
        return [
            each
            for each in document["rules"]
            if (UNKNOWN if each["verdict"] == UNKNOWN else each["rule"]) in self._rules
        ]


def verdict_lines(failures: Iterable[RuleVerdicts]) -> list[str]:
    """Return for each rule how often production would act differently, why, and the first and the latest request."""
    lines: list[str] = []
    for seen in failures:
        did, count = _VERDICT_TEXTS.get(seen["verdict"], seen["verdict"]), seen["count"]
        lines += [f"{seen['rule']}: {did} {count} request{'s' if count > 1 else ''}", f"  {_meaning_of_rule(seen)}"]
        names = ("first", "latest") if len(seen["examples"]) > 1 else ("request",)
        for name, each in zip(names, seen["examples"], strict=False):
            lines.append(f"  {name} {each['request_id']} {each['endpoint']}")
    return lines


def _rules_of(names: Iterable[str]) -> set[str]:
    return {rule for name in names for rule in RULE_GROUPS.get(name, (name,))}


def _meaning_of_rule(seen: RuleVerdicts) -> str:
    if seen["verdict"] == UNKNOWN:
        return "the service knows no secret: start it with --extensions"
    rule = RULES.get(seen["rule"])
    return rule.meaning if rule else "a rule that this version of extcli does not know"
