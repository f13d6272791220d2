"""Explains entries of the journal, and rules."""

from __future__ import annotations

import re

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace as with_fields

from emulator.contract.parity import outcome_of, rule_of
from emulator.control.explanations import texts
from emulator.control.explanations.refusals import no_entry, no_rule
from emulator.control.explanations.texts import Explanation, Rule
from emulator.errors import OF_INPUT, OF_ROLES, REFUSALS
from emulator.journal import CLOSE, DELIVERY, Entry, Journal


class Summary(Struct):
    """An entry of the journal, in short."""

    id: str
    kind: str
    """`request`, `frame` or `delivery`."""
    at: int
    """Unix ms by the service's clock."""
    name: str
    path: str
    status: int
    role: str
    """The caller's role; empty without a credential."""
    client_id: str
    channel_id: str
    reason: str
    detail: str


class Verdict(Struct):
    """Production's verdict, and how to fix the request."""

    verdict: str
    """`refuse`, `differ` or `unknown`."""
    rule: str
    text: str
    why: str
    next_step: str


class Explained(Struct):
    """An entry with its explanations, or a rule."""

    rule: Rule | UnsetType = UNSET
    """The rule that was asked for, or that decided."""
    entry: Summary | UnsetType = UNSET
    explanation: Explanation | UnsetType = UNSET
    """Why the entry was refused; absent if it was not."""
    hint: str | UnsetType = UNSET
    """What the caller probably meant; absent if nothing is known."""
    production: Verdict | UnsetType = UNSET
    """Absent if production would have responded in the same way, or if that is not known."""


class Explanations:
    """Explains the entries of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def explain(self, entry: Entry) -> Explanation | None:
        """Return why a journal entry was refused or got no response; `None` if it succeeded or cannot be explained."""
        if entry.status < 400 and not entry.reason:
            return None
        if entry.refused and entry.refused.rule not in (OF_INPUT, OF_ROLES):
            return _with_text(Explanation(*map(texts.shortened, entry.refused[1:])))
        if not entry.refused:
            return None
        from emulator.control.explanations.rules import rules_about, what_was_sent

        of_input, of_roles = rules_about(entry.name or entry.path)
        refused = entry.refused._replace(rule=of_roles)
        if entry.refused.rule == OF_INPUT:
            sent = what_was_sent(entry.detail, entry.path, entry.request)
            refused = refused._replace(rule=of_input, held=sent or refused.held)
        return _with_text(Explanation(*map(texts.shortened, refused[1:])))

    def explain_request(self, id: str) -> Explained:
        """Explain the entry of a request id, the latest refused one first, or of a number, or a closed socket's reason.

        Raises `NotFound` with the names of similar rules.
        """
        entries = [entry for entry in self._journal.newest() if id in _names_of(entry)]
        refused = [entry for entry in entries if entry.status >= 400 or entry.reason]
        if not entries and id.isdecimal() and len(id) < 16:
            entries = self._journal.since(int(id) - 1, 1, before=int(id) + 1)
        if entries:
            return self._explain_entry((refused or entries)[0])
        if closed := _with_text(_explained_detail(id)):
            return Explained(texts.find(closed.rule) or UNSET, explanation=closed)
        if re.fullmatch("[A-Za-z]{1,2}[0-9]{1,3}", id):
            raise no_rule(rule=id, hint=_hint(id))
        place = "the journal" if self._journal.is_on else "a service with --journal 0, or with --workers over 1,"
        raise no_entry(place=place, id=id[:64], hint=_hint(id))

    def explain_latest(self) -> Explained:
        """Explain the latest refusal, except of requests that extcli made for itself. Empty if the journal has none."""
        refused = (
            entry for entry in self._journal.newest() if (entry.status >= 400 or entry.reason) and not entry.is_probe
        )
        latest = next(refused, None)
        return self._explain_entry(latest) if latest else Explained()

    def explain_rule(self, name: str) -> Explained:
        """Return a rule; raises `NotFound` with the names of similar ones."""
        rule = texts.find(name)
        if rule is None:
            raise no_rule(rule=name[:64], hint=_hint(name))
        return Explained(rule=rule)

    def _explain_entry(self, entry: Entry) -> Explained:
        explanation, caller = self.explain(entry), entry.caller
        rule = texts.find(explanation.rule) if explanation else None
        return Explained(
            rule or UNSET,
            Summary(
                entry.id,
                entry.kind,
                entry.at,
                entry.name,
                entry.path,
                entry.status,
                str(caller.role) if caller else "",
                caller.client_id if caller else "",
                (caller.channel_id or "") if caller else "",
                entry.reason,
                entry.detail,
            ),
            explanation or UNSET,
            entry.hint or UNSET,
            explained_verdict(entry.production) or UNSET,
        )


def explained_verdict(header: str) -> Verdict | None:
    """Explain the header `X-Emulator-Production`; `None` if it is empty."""
    name = rule_of(header)
    if not name:
        return None
    rule = texts.find(name) or Rule(name, "")
    return Verdict(outcome_of(header), rule.id, rule.text, rule.why, rule.next_step)


def _with_text(found: Explanation | None) -> Explanation | None:
    rule = texts.find(found.rule) if found else None
    return with_fields(found, text=rule.text) if found and rule else found


def _names_of(entry: Entry) -> tuple[str, ...]:
    """Return the identifiers of an entry: its request id and, if a socket was closed, the reason in the close frame."""
    if entry.kind == DELIVERY:
        return ()
    return (entry.id, entry.detail) if entry.name == CLOSE else (entry.id,)


def _explained_detail(detail: str) -> Explanation | None:
    """Explain the refusal whose constant text is this one, even if the journal has no such entry.

    Returns `None` if there is no such refusal.
    """
    for each in REFUSALS.values():
        code = each.facts.__code__
        if not code.co_argcount + code.co_kwonlyargcount and (found := each.facts()).detail == detail:
            return Explanation(each.rule, each.title, found.held, found.needed, each.next_step)
    return None


def _hint(name: str) -> str:
    found = texts.nearest(name)
    return f"; the nearest rules are {', '.join(found)}" if found else ""
