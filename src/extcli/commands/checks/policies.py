"""`extcli policies`: the choices where the specification is silent, and what a service was seen to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from extcli.cli import argument, shared
from extcli.errors import CliError, UsageError
from extcli.output import views
from extcli.output.columns import Column, listing, table_of
from extcli.output.sanitize import visible
from extcli.rulings import rulings
from extcli.session import Session

_SECONDS = 5.0


def _summary(ruling: dict[str, Any]) -> str:
    """Return the worst result of a ruling's rules; empty if none was probed."""
    statuses = {each["status"] for each in ruling.get("rules", [])}
    return next((each for each in ("fail", "unknown", "pass") if each in statuses), "")


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text, without its full stop."""
    return text.partition("\n")[0].partition(". ")[0].rstrip(".")


_VIEW = listing(
    "rulings",
    Column("id", heading="ruling", text=str),
    Column("seen", _summary, text=str),
    Column("text", heading="choice", text=lambda text: visible(_first_sentence(text)), folds=True),
    Column("why", lambda each: each.get("why", ""), in_table=False),
)


@partial(shared, prints=_VIEW)
def policies(
    session: Session, id: str | None = argument("ID", "Show only this ruling, with its full text.", None)
) -> None:
    """List the rulings: what `extcli serve` does where the specification is silent.

    If a service answers at the URL, the rules of `extcli conform` that only read are probed
    there, and each ruling has what was seen: pass, fail, unknown, or nothing.

    Plain output is $columns.

    \b
    Examples:
      extcli policies
      extcli policies W3 -o json
    """
    found = [each for each in rulings() if id is None or each["id"].casefold() == id.casefold()]
    if not found:
        raise UsageError(f"no ruling has the id {id!r}", fix="`extcli policies` lists them")
    document: dict[str, Any] = {"url": None, "rulings": found}
    session.http.set_timeout(session.resolver.timeout(_SECONDS))
    try:
        seen = _probe_rulings(session, [each["id"] for each in found])
        document["url"] = session.resolver.url()
        document["rulings"] = [{**each, "rules": seen[each["id"]]} for each in found]
    except CliError as error:
        session.output.note(f"what a service does is not shown: {error.what}")
    session.output.show_value(document, _VIEW if id is None else replace(_VIEW, table=_one))


def _probe_rulings(session: Session, ids: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Probe the rules of these rulings that only read. Raises `CliError` if no service answers."""
    from extcli.conform.deployment import target_of
    from extcli.conform.report import as_json
    from extcli.conform.run import all_rules, results

    target = target_of(session, writes=False, whole_extension=False)
    rules = [each for each in all_rules() if each.source in ids]
    found = [as_json(each) for each in results(rules, target)]
    return {id: [each for each in found if each["source"] == id] for id in ids}


def _one(document: dict[str, Any]) -> Any:
    return views.stacked(*map(visible, _paragraphs(document["rulings"][0])), *_rule_tables(document["rulings"][0]))


def _paragraphs(ruling: dict[str, Any]) -> Iterator[str]:
    yield f"{ruling['id']} ({ruling['documented']})"
    yield ruling["text"]
    if why := ruling.get("why"):
        yield f"Why: {why}"


def _rule_tables(ruling: dict[str, Any]) -> Iterator[Any]:
    if not ruling.get("rules"):
        return
    made = table_of("", "rule", "what must hold", folded=(2,))
    for each in ruling["rules"]:
        lines = [each["sentence"]]
        lines += [f"→ {each['reason']}"] if "reason" in each else []
        lines += [f"expected {each['expected']}, seen {each['seen']}"] if "seen" in each else []
        made.add_row(each["status"], each["rule"], "\n".join(map(visible, lines)))
    yield made
