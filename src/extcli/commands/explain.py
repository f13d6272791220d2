"""`extcli explain`: why a request was refused, and what a rule says."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.contract import rules
from emulator.contract.parity import verdict_of
from extcli.cli import argument, flag, shared
from extcli.errors import UsageError, status_line
from extcli.output import times, views
from extcli.output.columns import Column, listing
from extcli.output.printer import View
from extcli.output.sanitize import field, visible, visible_lines
from extcli.reading import Json
from extcli.session import Session


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text, without its full stop."""
    return visible(text.partition("\n")[0].partition(". ")[0].rstrip("."))


_RULINGS = listing(
    "rulings",
    Column("id", heading="ruling"),
    Column("text", heading="choice", text=_first_sentence),
    Column("why", lambda each: each.get("why", ""), in_table=False),
)


@shared
def explain(
    session: Session,
    subject: str | None = argument("ID|RULE", "A request id, rule or close reason [the latest refusal].", None),
    all_rulings: bool = flag("--rulings", "List the rulings: what the service does where the specification is silent."),
) -> None:
    """Explain a refusal: the rule, what the request had, what was expected, and what to do.

    Also says what production would have done differently. A request can be explained only by an
    emulator in sandbox. A rule needs no service: a ruling such as A1, a section such as
    "spec: Authentication", or a rule of production such as stage.

    Plain output is `name<TAB>text`, one fact per line; with --rulings `id<TAB>text<TAB>why`.

    \b
    Examples:
      extcli explain
      extcli explain A1
      extcli explain --rulings
    """
    if all_rulings:
        if subject:
            raise UsageError("give either a subject or --rulings")
        session.output.show_value({"rulings": list(rules.rulings().values())}, _RULINGS)
        return
    id = rules.ids_by_name().get(rules.normalized_name(subject)) if subject else None
    if id:
        session.output.show_value({"rule": rules.rules()[id]}, _EXPLANATION)
    else:
        session.output.show(session.control().get("explain", id=subject), _EXPLANATION)


def _paragraphs(document: Json) -> Iterator[str]:
    entry, found, rule = document.get("entry"), document.get("explanation"), document.get("rule")
    if entry is None and found is None:
        yield from _rule_paragraphs(rule) if rule else ["the journal has no refused request"]
        return
    if entry:
        yield _what_happened(entry)
    if found:
        why = f"Why: {found['title']} (rule {found['rule']})."
        yield _join_lines(why, f"  got       {found['held']}", f"  expected  {found['needed']}", found.get("text"))
        yield f"What to do: {found['next_step']}"
    elif entry and entry["status"] < 400:
        yield "The request was not refused."
    if hint := document.get("hint"):
        yield f"Hint: {hint}"
    if verdict := document.get("production"):
        production = f"Production: {verdict['verdict']} (rule {verdict['rule']})."
        yield _join_lines(production, verdict["text"], verdict.get("next_step"))


def _what_happened(entry: Json) -> str:
    caller = " ".join(filter(None, (entry["role"], entry["client_id"], entry["channel_id"])))
    status = status_line(entry["status"]) if entry["status"] else "no response"
    return _join_lines(
        f"{entry['name'] or entry['path']}: {status}",
        f"{entry['reason']}: {entry['detail']}" if entry["reason"] else "",
        f"{times.utc_text(entry['at'])}, request {entry['id']}, {caller or 'no credential'}",
    )


def _join_lines(*lines: str | None) -> str:
    return "\n".join(filter(None, lines))


def _rule_paragraphs(rule: dict[str, str]) -> Iterator[str]:
    yield f"{rule['id']} ({rule['documented']})"
    for name in ("text", "why"):
        if rule.get(name):
            yield rule[name]
    if rule.get("next_step"):
        yield f"What to do: {rule['next_step']}"


def _plain_rows(document: Json) -> Iterator[list[str]]:
    entry, found = document.get("entry") or {}, document.get("explanation")
    facts = {name: entry.get(name) for name in ("id", "name", "status", "role", "reason", "detail")}
    if found:
        facts |= found
    elif not entry:
        facts |= document.get("rule") or {}
    facts["hint"] = document.get("hint")
    if verdict := document.get("production"):
        facts["production"] = verdict_of(verdict["verdict"], verdict["rule"])
    for name, value in facts.items():
        if value not in (None, ""):
            yield [name, field(value)]


_EXPLANATION = View(table=lambda document: views.stack(*map(visible_lines, _paragraphs(document))), rows=_plain_rows)
