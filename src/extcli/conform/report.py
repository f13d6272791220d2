"""Reports of a `conform` run, and recordings of a deployment's responses, to compare other deployments with.

Ids, tokens, PINs and times differ from run to run. A recording has names in their place, and in place of what the
extension itself stores, such as its hidden state. So it holds no secret. Texts of errors are kept, but not compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from emulator.contract import user_files
from emulator.contract.kinds import are_equal_json
from extcli import bounded_json
from extcli.atomic_file import replace_text
from extcli.conform.calls import PREFIX, Exchange
from extcli.conform.rule import shown
from extcli.conform.run import Result, Status
from extcli.errors import UsageError, shortened
from extcli.output.columns import Column, build_table
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import field, pretty_json, visible
from extcli.output.views import stack
from extcli.reading import Json, shape_problem

VERSION = 1
SAME = "same"
NOT_RECORDED = "not recorded"
_FORMAT_MEMBER = "extcli_conform"
_RECORD_AGAIN = "make it again with `extcli conform --record`"
_TOKEN = re.compile(r"eyJ[\w+/=-]{5,}\.[\w+/=-]{5,}\.[\w+/=-]*")
_RANDOM_ID = re.compile(rf"{PREFIX}\w+", re.IGNORECASE)
_TIME = re.compile(r"\b[12]\d{12}\b|\b[12]\d{9}\b")
"""A time from 2001 to 2065 in Unix ms or s."""
_ERROR_TEXTS = ("info", "detail")
"""Members of errors with texts, which may change."""
_OPAQUE_ID = re.compile(r"\bA\d{8,}\b")
"""An opaque id that a sandbox makes up."""
_PIN_MEMBERS = ("pin", "token")
_PIN_LENGTH = 6
_GENERATED_MEMBERS = ("muxy_id", "retry-after")
"""Members whose value the service makes up, an id or a time."""
_EXTENSION_READS = (
    "extension_config",
    "config/extension",
    "extension_state",
    "extension_hidden_state",
    "codes",
    "curated_poll_leaderboard",
)
"""These reads cover the whole extension, so they may include data from before the run."""
_EXTENSION_DATA = "<extension>"


def as_recorded(result: Result) -> Json:
    """Return the responses of a probe, with names in place of ids, tokens, PINs and times."""
    return {
        "status": result.status.value,
        "answers": [_exchange_as_json(each, result.names) for each in result.exchanges],
    }


def write_recording(path: Path, environment: str, found: Sequence[Result]) -> None:
    """Write the recording of all rules that were probed. Raises `UsageError`."""
    rules = {each.rule.name: as_recorded(each) for each in found if each.status is not Status.SKIPPED}
    replace_text(path, pretty_json({_FORMAT_MEMBER: VERSION, "environment": environment, "rules": rules}) + "\n")


def read_recording(path: Path) -> Json:
    """Return the rules of a recording by name. Raises `UsageError`."""
    try:
        document = bounded_json.decoded(user_files.content(path, user_files.MAX_DOCUMENT_BYTES, pipes=True))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        document = None
    if shape_problem(document, {_FORMAT_MEMBER: object, "rules": dict}):
        raise UsageError(f"{path} is not a recording", fix="`extcli conform --record FILE` makes one")
    if document[_FORMAT_MEMBER] != VERSION:
        version = shortened(str(document[_FORMAT_MEMBER]))
        raise UsageError(f"{path} has version {version} of the format; this extcli reads {VERSION}", fix=_RECORD_AGAIN)
    rules: Json = document["rules"]
    for name, rule in rules.items():
        if problem := shape_problem(rule, {"answers": [dict]}):
            raise UsageError(f"{path}: rule {shortened(name)}: {problem}", fix=_RECORD_AGAIN)
    return rules


def compare(result: Result, rules: Json) -> str:
    """Return how the responses to a rule differ from the recording, or `same`; empty if the rule was skipped."""
    if result.status is Status.SKIPPED:
        return ""
    old = rules.get(result.rule.name)
    if old is None:
        return NOT_RECORDED
    return next(_differences(old["answers"], as_recorded(result)["answers"]), SAME)


def _differences(old: Sequence[Any], new: Sequence[Any]) -> Iterator[str]:
    for before, after in zip(old, new, strict=False):
        if before.get("request") != after["request"]:
            yield f"the recording has {before.get('request')} where this run made {after['request']}"
            return
        for part in ("status", "headers", "answer"):
            if difference := next(_unequal_places(before.get(part), after[part], part), None):
                yield f"{after['request']} as {after['as']}: {difference}"
    if len(old) != len(new):
        yield f"the recording has {len(old)} requests, this run made {len(new)}"


def _unequal_places(old: Any, new: Any, place: str) -> Iterator[str]:
    """Yield the places where two recorded responses differ, each with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old | new:
            if name not in old or name not in new:
                yield f"{place}.{name} is {'gone' if name in old else 'new'}"
            elif not (name in _ERROR_TEXTS and isinstance(old[name], str) and isinstance(new[name], str)):
                yield from _unequal_places(old[name], new[name], f"{place}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _unequal_places(before, after, f"{place}[{index}]")
    elif not are_equal_json(old, new):
        yield f"{place} was {shortened(shown(old), 100)}, is {shortened(shown(new), 100)}"


def _exchange_as_json(each: Exchange, names: Mapping[str, str]) -> Json:
    found = {
        "as": each.caller,
        "request": each.request,
        "body": each.body,
        "status": each.status,
        "headers": dict(each.headers),
        "answer": _without_extension_data(each, names),
    }
    return {name: _normalize(value, names, name) for name, value in found.items()}


def _without_extension_data(each: Exchange, names: Mapping[str, str]) -> Any:
    """Return a response without the data that belongs to the whole extension."""
    answer = each.answer
    if each.status != 200 or not each.request.startswith("GET "):
        return answer
    if each.request.removeprefix("GET ").partition("?")[0] in _EXTENSION_READS:
        return _EXTENSION_DATA
    if not isinstance(answer, dict):
        return answer
    own: Json = {"extension": _EXTENSION_DATA} if isinstance(answer.get("extension"), dict) else {}
    if isinstance(questions := answer.get("questions"), list):
        own["questions"] = [each for each in questions if isinstance(each, dict) and each.get("id") in names]
    return answer | own


def _normalize(value: Any, names: Mapping[str, str], member: str) -> Any:
    """Return a value in which names replace ids, tokens, PINs and times. `member` is the name of the value's field."""
    if isinstance(value, dict):
        return {_normalize_text(name, names): _normalize(each, names, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_normalize(each, names, member) for each in value]
    if isinstance(value, str):
        if member in _PIN_MEMBERS and len(value) == _PIN_LENGTH:
            return "<pin>"
        return f"<{member}>" if member in _GENERATED_MEMBERS else _normalize_text(value, names)
    return "<time>" if type(value) is int and _TIME.fullmatch(str(value)) else value


def _normalize_text(text: str, names: Mapping[str, str]) -> str:
    text = text.encode(errors="backslashreplace").decode()  # a lone surrogate cannot be written
    text = _TOKEN.sub("<token>", text)
    for known, name in names.items():
        text = text.replace(known, name)
    return _TIME.sub("<time>", _OPAQUE_ID.sub("<opaque>", _RANDOM_ID.sub("<id>", text)))


_STYLES = {"pass": "good", "fail": "bad", "skipped": "quiet", "unknown": "warning"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COLUMNS = ("status", "rule", "sentence", "reason", "what", "expected", "seen", "request_id", "recorded")
_MOST_SKIPPED = 5
"""A table lists up to this many rules that are skipped for the same reason."""


def results_document(url: str, environment: str, found: Sequence[Result]) -> Json:
    """Return all results as JSON."""
    counts = Counter(each.status for each in found)
    return {
        "url": url,
        "environment": environment,
        "counts": {status.value: counts[status] for status in Status},
        "rules": [
            {
                "rule": each.rule.name,
                "source": each.rule.source,
                "sentence": each.rule.sentence,
                "status": each.status.value,
                **each.facts,
            }
            for each in found
        ],
    }


def _results_table(document: Json) -> RenderableType:
    from rich.text import Text

    reasons = Counter(each["reason"] for each in document["rules"] if "reason" in each)
    listed = [each for each in document["rules"] if reasons[each.get("reason", "")] <= _MOST_SKIPPED]
    columns = (
        Column("", "status", text=lambda status: Text(status, _STYLES[status])),
        Column("rule"),
        Column("what must hold", lambda each: "\n".join(map(visible, _result_lines(each))), text=str),
        Column("recorded", lambda each: each.get("recorded", ""), in_table=any("recorded" in each for each in listed)),
    )
    skipped = [f"{number} skipped: {why}" for why, number in reasons.items() if number > _MOST_SKIPPED]
    counts = ", ".join(f"{number} {status}" for status, number in document["counts"].items() if number)
    return stack(build_table(columns, listed), "\n".join([*skipped, f"{counts} ({document['environment']})"]))


def _result_lines(each: Json) -> list[str]:
    """Return the lines that describe a result."""
    lines = [each["sentence"]]
    if each["status"] == "skipped":
        lines.append(f"→ {each['reason']}")
    elif "what" in each:
        lines += [each["what"], f"  expected  {each['expected']}", f"  seen      {each['seen']}"]
        lines += [f"  request   {each['request_id']}"] if "request_id" in each else []
    return lines


RESULTS = View(
    table=_results_table,
    rows=lambda document: [[field(each.get(name, "")) for name in _COLUMNS] for each in document["rules"]],
    items=lambda document: document["rules"],
)
"""The results of all rules."""


def junit_xml(document: Json) -> str:
    """Return the results as JUnit XML: one test case per rule. `unknown` counts as skipped."""
    suites = Xml.Element("testsuites")
    suite = Xml.SubElement(suites, "testsuite", name="extcli conform", errors="0")
    for each in document["rules"]:
        case = Xml.SubElement(suite, "testcase", classname=f"conform.{each['source']}", name=each["rule"])
        if is_failure(each):
            result = Xml.SubElement(case, "failure", message=each.get("what") or each["recorded"])
        elif each["status"] in ("skipped", "unknown"):
            reason = each.get("reason") or "the specification is silent; this service differs from extcli serve"
            result = Xml.SubElement(case, "skipped", message=reason)
        else:
            continue
        result.text = "\n".join(_result_lines(each))
    for name, path in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
        suite.set(name, str(len(suite.findall(path))))
    Xml.indent(suites)
    text = _NOT_XML.sub("\ufffd", Xml.tostring(suites, "unicode"))
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text}\n"


def is_failure(each: Json, *, strict: bool = False) -> bool:
    """Return whether a rule is not kept, or answers differ from the recording. With `strict`, also for `unknown`."""
    statuses = ("fail", "unknown") if strict else ("fail",)
    return each["status"] in statuses or each.get("recorded", SAME) not in (SAME, NOT_RECORDED)
