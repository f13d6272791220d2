"""Why a request was refused: the rule, the caller's value, the required value, and the next step."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace as with_fields

from emulator.contract import rules
from emulator.contract.parity import outcome_of, rule_of
from emulator.core.errors import OF_INPUT, OF_ROLES, REFUSALS, Facts, NotFound, refusal
from emulator.core.journal import CLOSE, DELIVERY, Entry, Journal
from emulator.core.wire.url import parameters_of
from emulator.http.endpoint import Call, Parameter, control_endpoint

_RULE = "docs: Journal"


@refusal(NotFound, "Not Found", _RULE, "The journal has no such entry", "List the entries: `extcli logs`.")
def no_entry(*, place: str, id: str, hint: str) -> Facts:
    detail = f"{place} has no entry with the id {id!r}{hint}"
    return Facts(detail, f"id {id!r}", "an entry that the journal still keeps")


@refusal(NotFound, "Not Found", _RULE, "There is no such rule", "Name another rule, or a request id.")
def no_rule(*, rule: str, hint: str) -> Facts:
    return Facts(f"there is no rule {rule!r}{hint}", f"rule {rule!r}", "a rule such as A1 or spec: Limits")


MAX_SHOWN = 200
"""Characters that an explanation shows of a text."""


class Rule(Struct, frozen=True):
    """A ruling, a section of the specification or of the documentation, or a rule of production."""

    id: str
    text: str
    why: str = ""
    next_step: str = ""
    """For a rule of production: how to get the same response from production. Empty for other rules."""
    documented: str = ""
    """The document with the details."""


class Explanation(Struct, frozen=True):
    """Why a request was refused."""

    rule: str
    """The rule that decided: a ruling such as `A1`, or a section such as `spec: Authentication`."""
    title: str
    held: str
    """What the caller had or sent."""
    needed: str
    next_step: str
    text: str = ""
    """What the rule says."""


def shorten(text: str) -> str:
    """Return a text, cut if it is too long to be shown."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def find_rule(name: str) -> Rule | None:
    """Return the rule with this id, in any case, with or without `spec:`, `gaps:` or `docs:`; `None` if unknown."""
    id = rules.ids_by_name().get(rules.normalized_name(name))
    return Rule(**rules.rules()[id]) if id else None


def similar_rules(name: str) -> list[str]:
    """Return the ids of the rules that are most like a name, at most three; none if none is like it."""
    from difflib import get_close_matches

    found = get_close_matches(rules.normalized_name(name), rules.ids_by_name(), n=3, cutoff=0.6)
    return list(dict.fromkeys(rules.ids_by_name()[each] for each in found))


_RULES_BY_ENDPOINT = (
    (r"/_ns\b", "docs: Namespaces", "W5"),
    (r"_emulator/clock", "docs: Clock", "W5"),
    (r"_emulator/seed", "docs: Seeds", "W5"),
    (r"_emulator/snapshot", "docs: Snapshots", "W5"),
    (r"_emulator/faults", "docs: Faults", "W5"),
    (r"_emulator/wait", "docs: Waits", "W5"),
    (r"_emulator/", "docs: Control", "W5"),
    (r"codes/redeem|codes/elig", "C5", "C1"),
    (r"codes/mark", "C3", "C1"),
    (r"codes", "C2", "C1"),
    (r"json_store", "S5", "S5"),
    (r"broadcast|whisper", "W6", "B1"),
    (r"curated_poll|team_membership", "gaps: Trivia", "gaps: Trivia"),
    (r"transaction|twitchPurchaseBits", "gaps: Purchases", "gaps: Purchases"),
    (r"datastream", "X9", "spec: Authentication"),
    (r"vote_config|poll$", "P4", "P4"),
    (r"/polls$|/rankings$|/buffers$", "gaps: Polls and stores", "gaps: Polls and stores"),
    (r"vote", "P2", "spec: Authentication"),
    (r"rank", "R1", "spec: Authentication"),
    (r"(?i)get .*accumulate", "R2", "spec: Authentication"),
    (r"accumulate", "R3", "spec: Authentication"),
    (r"validate_pin|pin_token|/pin$|link/pin|authenticate", "T2", "spec: Authentication"),
    (r"user_ids|user_info|authtoken", "gaps: Clock and directory", "gaps: Clock and directory"),
    (r"state|config|channel|extension", "S2", "S1"),
)
"""The rule about the input of an endpoint or action that a pattern matches, and the one about its roles."""


_MAX_SHOWN_BODY = 60
"""Characters of a body that is shown as it is."""


def sent_value(detail: str, path: str, body: bytes) -> str:
    """Return the field that the detail of an error begins with and its value, or a short body; empty if unknown.

    `path` has the query. Path and body are as the journal has them: without secrets, and perhaps cut off.
    """
    field, colon, _ = detail.partition(": ")
    if not colon:
        text = body.decode(errors="replace")
        return f"the body {text}" if text and len(text) <= _MAX_SHOWN_BODY else ""
    value = _field_value(field, path, body)
    return f"{field} {value}" if value else ""


def _field_value(field: str, path: str, body: bytes) -> str:
    """Return the value of a field as it was sent, as JSON; empty if unknown."""
    query = parameters_of(path.partition("?")[2])
    if field in query:
        return msgspec.json.encode(query[field]).decode()
    try:
        value: Any = msgspec.json.decode(body) if body else None
        for member in re.findall(r"[\w$-]+", field) if value is not None else ():
            value = value[int(member)] if isinstance(value, list) else value[member]
    except (msgspec.MsgspecError, KeyError, IndexError, ValueError, TypeError, RecursionError):
        return ""
    return "" if value is None else msgspec.json.encode(value).decode()


class EntrySummary(Struct):
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


class ExplainResult(Struct):
    """An entry with its explanations, or a rule."""

    rule: Rule | UnsetType = UNSET
    """The rule that was asked for, or that decided."""
    entry: EntrySummary | UnsetType = UNSET
    explanation: Explanation | UnsetType = UNSET
    """Why the entry was refused; absent if it was not."""
    hint: str | UnsetType = UNSET
    """What the caller probably meant; absent if nothing is known."""
    production: Verdict | UnsetType = UNSET
    """Absent if production would have responded in the same way, or if that is not known."""


def explanation_of(entry: Entry) -> Explanation | None:
    """Return why a journal entry was refused or got no response; `None` if it succeeded or cannot be explained."""
    refused = entry.refused
    if refused is None or (entry.status < 400 and not entry.reason):
        return None
    of_input, of_roles = "W2", "A4"
    for pattern, *rules_about in _RULES_BY_ENDPOINT:
        if re.search(pattern, entry.name or entry.path):
            of_input, of_roles = rules_about
            break
    if refused.rule == OF_ROLES:
        refused = refused._replace(rule=of_roles)
    elif refused.rule == OF_INPUT:
        sent = sent_value(entry.detail, entry.path, entry.request)
        refused = refused._replace(rule=of_input, held=sent or refused.held)
    return _with_rule_text(Explanation(*map(shorten, refused[1:])))


def _explain_request(journal: Journal, id: str) -> ExplainResult:
    """Explain the entry of a request id, the latest refused one first, or of a number, or a closed socket's reason.

    Raises `NotFound` with the names of similar rules.
    """
    entries = [entry for entry in journal.newest() if id in _entry_ids(entry)] or journal.find_number(id)
    if entries:
        return _explain_entry(next(filter(_is_refused, entries), entries[0]))
    if closed := _explain_detail(id):
        return ExplainResult(find_rule(closed.rule) or UNSET, explanation=closed)
    if re.fullmatch("[A-Za-z]{1,2}[0-9]{1,3}", id):
        raise no_rule(rule=id, hint=_similar_rules_hint(id))
    place = "the journal" if journal.is_on else "the journal, which is off (--journal 0),"
    raise no_entry(place=place, id=id[:64], hint=_similar_rules_hint(id))


def _is_refused(entry: Entry) -> bool:
    return entry.status >= 400 or bool(entry.reason)


def _explain_entry(entry: Entry) -> ExplainResult:
    explanation, caller = explanation_of(entry), entry.caller
    who = ("", "", "")
    if caller:
        who = (str(caller.role), caller.client_id, caller.channel_id or "")
    of_entry = (entry.id, entry.kind, entry.at, entry.name, entry.path, entry.status)
    return ExplainResult(
        (explanation and find_rule(explanation.rule)) or UNSET,
        EntrySummary(*of_entry, *who, entry.reason, entry.detail),
        explanation or UNSET,
        entry.hint or UNSET,
        explain_verdict(entry.production) or UNSET,
    )


def explain_verdict(header: str) -> Verdict | None:
    """Explain the header `X-Emulator-Production`; `None` if it is empty."""
    name = rule_of(header)
    if not name:
        return None
    rule = find_rule(name) or Rule(name, "")
    return Verdict(outcome_of(header), rule.id, rule.text, rule.why, rule.next_step)


def _with_rule_text(found: Explanation) -> Explanation:
    rule = find_rule(found.rule)
    return with_fields(found, text=rule.text) if rule else found


def _entry_ids(entry: Entry) -> tuple[str, ...]:
    """Return the identifiers of an entry: its request id and, if a socket was closed, the reason in the close frame."""
    if entry.kind == DELIVERY:
        return ()
    return (entry.id, entry.detail) if entry.name == CLOSE else (entry.id,)


def _explain_detail(detail: str) -> Explanation | None:
    """Explain the refusal whose constant text is this one, even if the journal has no such entry.

    Returns `None` if there is no such refusal.
    """
    for each in REFUSALS.values():
        code = each.facts.__code__
        if not code.co_argcount + code.co_kwonlyargcount and (found := each.facts()).detail == detail:
            return _with_rule_text(Explanation(each.rule, each.title, found.held, found.needed, each.next_step))
    return None


def _similar_rules_hint(name: str) -> str:
    found = similar_rules(name)
    return f"; rules with similar names: {', '.join(found)}" if found else ""


_EXPLAIN_PARAMETERS = (
    Parameter("id", "A request id, an entry's number, or a socket's close reason. Default: the latest refusal."),
    Parameter(
        "rule", "A ruling such as `A1`, a section such as `spec: Limits`, or a rule of production such as `exp`."
    ),
)


@control_endpoint("GET", "/_emulator/explain", query=_EXPLAIN_PARAMETERS, answer=ExplainResult, is_recorded=False)
async def explain(journal: Journal, call: Call) -> ExplainResult:
    """Explain a request: why it was refused, and production's verdict. Or read a rule."""
    if name := call.text("rule"):
        rule = find_rule(name)
        if rule is None:
            raise no_rule(rule=name[:64], hint=_similar_rules_hint(name))
        return ExplainResult(rule=rule)
    if id := call.text("id"):
        return _explain_request(journal, id)
    latest = next((entry for entry in journal.newest() if _is_refused(entry) and not entry.is_probe), None)
    return _explain_entry(latest) if latest else ExplainResult()
