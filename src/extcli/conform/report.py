"""Results as JSON, as a table, as lines and as JUnit XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Xml

from extcli.atomic_file import cannot_be_written, replace
from extcli.conform.recording import NOT_RECORDED, SAME
from extcli.conform.rule import shown
from extcli.conform.run import Result, Status
from extcli.output.columns import table_of
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import stacked

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"pass": "green", "fail": "bold red", "skipped": "dim", "unknown": "yellow"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 300
_MOST_SKIPPED = 5
"""A table lists up to this many rules that are skipped for the same reason."""


def document_of(url: str, environment: str, found: Sequence[Result]) -> dict[str, Any]:
    """Return all results as JSON."""
    return {
        "url": url,
        "environment": environment,
        "counts": counts(found),
        "rules": [as_json(each) for each in found],
    }


def counts(found: Iterable[Result]) -> dict[str, int]:
    """Return how many rules have each status."""
    seen = Counter(each.status for each in found)
    return {status.value: seen[status] for status in Status}


def as_json(result: Result) -> dict[str, Any]:
    """Return one result as JSON."""
    rule = result.rule
    facts: dict[str, Any] = {
        "rule": rule.name,
        "source": rule.source,
        "sentence": rule.sentence,
        "status": result.status.value,
    }
    if result.status is Status.SKIPPED:
        facts["reason"] = result.reason
    if result.status in (Status.FAIL, Status.UNKNOWN):
        facts |= {"what": result.what, "expected": text_of(result.expected), "seen": text_of(result.seen)}
        facts |= {"request_id": result.request_id} if result.request_id else {}
    facts |= {"recorded": result.recorded} if result.recorded else {}
    return facts


def text_of(value: object) -> str:
    """Return a value as one line of JSON, or a text as it is, cut to 300 characters."""
    text = value if isinstance(value, str) else shown(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def view() -> View:
    """Return how to print the document."""
    return View(
        table=_table,
        rows=lambda document: map(_row, document["rules"]),
        items=lambda document: document["rules"],
    )


def _table(document: dict[str, Any]) -> RenderableType:
    from rich.text import Text

    is_compared = any("recorded" in each for each in document["rules"])
    table = table_of("", "rule", "what must hold", *(["recorded"] if is_compared else []), folded=(2, 3))
    reasons = Counter(each["reason"] for each in document["rules"] if "reason" in each)
    for each in document["rules"]:
        if reasons[each.get("reason", "")] > _MOST_SKIPPED:
            continue
        status = Text(each["status"], _STYLES[each["status"]])
        recorded = [visible(each.get("recorded", ""))] if is_compared else []
        table.add_row(status, each["rule"], "\n".join(map(visible, _details(each))), *recorded)
    skipped = [f"{number} skipped: {why}" for why, number in reasons.items() if number > _MOST_SKIPPED]
    counts = ", ".join(f"{number} {status}" for status, number in document["counts"].items() if number)
    return stacked(table, "\n".join([*skipped, f"{counts} ({document['environment']})"]))


def _details(each: dict[str, Any]) -> list[str]:
    """Return the lines that describe a result."""
    lines = [each["sentence"]]
    if each["status"] == "skipped":
        lines.append(f"→ {each['reason']}")
    elif "what" in each:
        lines += [each["what"], f"  expected  {each['expected']}", f"  seen      {each['seen']}"]
        lines += [f"  request   {each['request_id']}"] if "request_id" in each else []
    return lines


def _row(each: dict[str, Any]) -> list[str]:
    names = ("status", "rule", "sentence", "reason", "what", "expected", "seen", "request_id", "recorded")
    return [field(each.get(name, "")) for name in names]


def write_junit(path: Path, document: dict[str, Any]) -> None:
    """Write the results as JUnit XML. Raises `UsageError`."""
    try:
        replace(path, junit(document).decode())
    except OSError as error:
        raise cannot_be_written(path, error) from None


def junit(document: dict[str, Any]) -> bytes:
    """Return the results as JUnit XML: one test case per rule. `unknown` counts as skipped."""
    counts, rules = document["counts"], document["rules"]
    suite = Xml.Element(
        "testsuite",
        name="extcli conform",
        tests=str(len(rules)),
        failures=str(sum(is_failure(each) for each in rules)),
        errors="0",
        skipped=str(counts["skipped"] + counts["unknown"]),
    )
    for each in rules:
        case = Xml.SubElement(suite, "testcase", classname=f"conform.{each['source']}", name=each["rule"])
        details = _xml_text("\n".join(_details(each)))
        if is_failure(each):
            message = each.get("what") or each["recorded"]
            Xml.SubElement(case, "failure", message=_xml_text(message)).text = details
        elif each["status"] in ("skipped", "unknown"):
            reason = each.get("reason") or "the specification is silent, and this service differs"
            Xml.SubElement(case, "skipped", message=_xml_text(reason)).text = details
    suites = Xml.Element("testsuites")
    suites.append(suite)
    Xml.indent(suites)
    return bytes(Xml.tostring(suites, "utf-8", xml_declaration=True)) + b"\n"


def is_failure(each: Mapping[str, Any], *, strict: bool = False) -> bool:
    """Return whether a rule is not kept, or answers differ from the recording. With `strict`, `unknown` counts, too."""
    statuses = ("fail", "unknown") if strict else ("fail",)
    return each["status"] in statuses or each.get("recorded", SAME) not in (SAME, NOT_RECORDED)


def _xml_text(text: str) -> str:
    """Return the text without characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
