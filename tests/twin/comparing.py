"""Compares what two versions answered, and words each difference."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from twin.host import Host
from twin.names import Names, kinds
from twin.wire import Response

VOLATILE = [
    (re.compile(r'("duration_ms" ?: ?)[0-9.e-]+'), r"\g<1>0"),  # real time
    (re.compile(r"(?<![\w.-])[0-9]+(?:\.[0-9]+)? ?(?:ms|µs)\b(?![^<]*</code>)"), "<ms>"),  # the same, for readers
    (re.compile(r'("(?:time|wait)": )[0-9]+\.[0-9]+'), r"\g<1>0"),  # the same, in a HAR file
    (re.compile(r'("startedDateTime": ")[^"]*'), r"\g<1><start>"),  # the end less the same
    # Of the process.
    (re.compile(r"^(# \w+ )?(process_|python_|\w+_duration_seconds|\w+_lag_seconds|emulator_tasks).*\n", re.M), ""),
    (re.compile(r'("frames" ?: ?)[0-9]+'), r"\g<1>0"),  # of a socket: updates of polls are at most one a second
    (re.compile(r'("entry":\{"id":"[^"]*","kind":"[^"]*","at":)[0-9]+'), r"\g<1>0"),  # as below
    # Of the journal, which may be written after the response; and of an example of parity, which may be counted so.
    (re.compile(r'"at":[0-9]+,"system_at":[0-9]+'), '"at":0'),
    (re.compile(r'("endpoint":"[^"]*","at":)[0-9]+'), r"\g<1>0"),
    (re.compile(r'"size":[0-9]+(?=,"is_cut":true)'), '"size":0'),  # of a page in the journal, which keeps a part of it
    (re.compile(r"(?<=expire-)[0-9a-f]{16}"), "<hex16>"),  # of a PIN, in the dashboard
    (re.compile(r"(?<=/)[0-9A-Za-z]{22}(?=\\?\")"), "<id22>"),  # of a purchase, in its key
    # Of PINs that expire next, also in the journal, where the body is a text: several at one instant are in any order.
    (re.compile(r'(\\?"kind\\?":\\?"pin\\?",\\?"id\\?":\\?")[0-9a-f]{16}(?=\\?",\\?"at\\?":)'), r"\1<pin>"),
    (re.compile(r'(data-head="(?:Age|Idle|Last used)">)[^<]*'), r"\1<age>"),  # of a namespace
    # Of a namespace: housekeeping deletes expired records when it has the time.
    (re.compile(r'(data-head="Records" class="number">)[0-9]+'), r"\1<count>"),
    (re.compile(r'(\\?"records\\?":)[0-9]+(?=,\\?"age\\?")'), r"\g<1>0"),
    # Of entries of the journal, as commands print them: they count what the commands ask the service before, too.
    (re.compile(r'("(?:number|mark)": )[0-9]+'), r"\g<1>0"),
    (re.compile(r"\?v=[0-9a-f]+"), "?v=<hash>"),  # of the content of a file of the dashboard
    (re.compile(r"shown=[0-9a-f.]+"), "shown=<hash>"),  # of parts of a page, with ids and addresses that differ
    (re.compile(r'(\\?"(?:seconds|slowest|lag_ms|uptime_ms|idle_ms|age_ms|age|idle)\\?" ?: ?)[0-9.e-]+'), r"\g<1>0"),
]
"""What differs between two runs of one version, and what stands in its place: in JSON, what leaves it JSON."""
_SUBSCRIPTIONS = re.compile(r'(?<="subscriptions":\[)[^\]]+')
"""What a page listens to is a set: its order is by chance."""
UNCOMPARED = {"date", "x-emulator-mark"}
"""Headers that are not compared. A mark counts changes, and there are more kinds of them than before."""
LEARNED = 4_096
"""Bytes of equal bodies whose ids are remembered. A longer one has many ids, which other responses also show."""
SHOWN = 160
"""Characters that are shown of a value."""


def _steady(text: str) -> str:
    """Return a text without what differs between two runs of one version."""
    for pattern, shown in VOLATILE:
        text = pattern.sub(shown, text)
    return text


class Difference(NamedTuple):
    """Something that the versions do not do alike."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Side:
    """How one version's texts become comparable."""

    def __init__(self, host: Host | None, places: tuple[tuple[str, str], ...] = ()) -> None:
        self.names = Names()
        self._places = list(places)
        if host:
            self._places += [(str(host.port), "<port>"), (str(host.folder), "<folder>")]
            self._places.append((str(host.version.python.parent), "<environment>"))
            if host.redis:
                self._places.append((str(host.redis.port), "<redis port>"))

    def comparable(self, text: str, named: Callable[[str], str] | None = None) -> str:
        """Return a text without what differs between two runs of one version; `named` replaces ids."""
        for found, name in self._places:
            within = "[0-9A-Za-z]" if found.isdecimal() else "[0-9]"  # digits of an id are not a port
            alone = rf'(?<!{within})(?<!"request_id":){re.escape(found)}(?!{within})'
            text = re.sub(alone, name, text) if found in text else text
        text = _SUBSCRIPTIONS.sub(lambda found: ",".join(sorted(found[0].split(","))), _steady(text))
        return (named or self.names.replaced)(text)


class Comparison:
    """Compares the responses of one episode: the numbers of ids go on from one response to the next."""

    def __init__(self, old: Host | None = None, new: Host | None = None, *places: tuple[tuple[str, str], ...]) -> None:
        """`places` has texts of each version, such as folders, and what stands in their place."""
        olds, news = places or ((), ())
        self.sides = (Side(old, olds), Side(new, news))

    def responses(self, old: Response, new: Response, *, is_sorted: bool = True, is_page: bool = False) -> list[str]:
        """Return the differences between two responses; unless `is_sorted`, the order of rows does not count.

        Of the ids in a page of the dashboard, only their kinds are compared: another design shows others.
        """
        if old.status != new.status:  # then the rest differs, too
            return [f"status: {_code(old)} -> {_code(new)}{_reasons(old, new)}"]
        found = list(self._headers(old, new))
        found += self.bodies(old.body, new.body, is_sorted=is_sorted, is_page=is_page)
        if old.closed != new.closed:
            found.append(f"connection: {_ended(old)} -> {_ended(new)}")
        return found

    def _headers(self, old: Response, new: Response) -> Iterator[str]:
        olds, news = old.headers, new.headers
        if [name for name, _ in olds] == [name for name, _ in news]:  # then only some values can differ
            pairs = [(a, b) for a, b in zip(olds, news, strict=True) if a != b or a[0].lower() == "x-request-id"]
            olds, news = [a for a, _ in pairs], [b for _, b in pairs]
        fields = (self._fields(each, side) for each, side in zip((olds, news), self.sides, strict=True))
        one, other = fields
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) == other.get(name):
                continue
            if name.lower() == "content-length" and name in one and name in other and old.body != new.body:
                continue  # the difference is in the body
            yield f"header {name}: {_shown(one.get(name))} -> {_shown(other.get(name))}"

    def _fields(self, headers: list[tuple[str, str]], side: Side) -> dict[str, list[str]]:
        fields: dict[str, list[str]] = {}
        for name, value in headers:
            if name.lower() not in UNCOMPARED:
                fields.setdefault(name, []).append(side.comparable(value))
        return fields

    def bodies(
        self, old: bytes, new: bytes, name: str = "body", *, is_sorted: bool = True, is_page: bool = False
    ) -> list[str]:
        """Return the differences between two bodies. In snapshots, which random ids sort, order does not count."""
        if old == new and len(old) > LEARNED:
            return []
        olds, news = (each.decode("utf-8", "backslashreplace") for each in (old, new))
        is_sorted = is_sorted and not (old.startswith(_SNAPSHOT) and new.startswith(_SNAPSHOT))
        if is_page or not is_sorted:
            olds, news = (side.comparable(text, kinds) for text, side in zip((olds, news), self.sides, strict=True))
        if not is_sorted:
            olds, news = map(_sorted_lines, (olds, news))
        return self.texts(olds, news, name)

    def texts(self, old: str, new: str, name: str) -> list[str]:
        """Return the differences between two texts: of their values if both are JSON, and of their lines otherwise."""
        if old == new and len({side.names.replaced(old) for side in self.sides}) == 1:
            return []
        olds, news = (side.comparable(text) for text, side in zip((old, new), self.sides, strict=True))
        if olds == news:
            return []
        if values := _parsed(olds, news):
            return list(_values(*values, name)) or [f"{name} as text: {_around(olds, news)}"]
        pairs = list(zip(olds.strip("\n").split("\n"), news.strip("\n").split("\n"), strict=False))
        if olds.count("\n") == news.count("\n") and all(_parsed(*pair) for pair in pairs):
            found = (_values(*_parsed(*pair), f"{name} line {at}") for at, pair in enumerate(pairs, 1))
            return list(itertools.chain.from_iterable(found)) or [f"{name} as text: {_around(olds, news)}"]
        return list(_lines(olds, news, name))


_SNAPSHOT = b'{"extcli_snapshot"'


def _sorted_lines(text: str) -> str:
    """Return records or rows, one on each line, in order, without empty lines."""
    lines = text.replace("},{", "}\n{").replace("[{", "[\n{").replace("}]", "}\n]").split("\n")
    return "\n".join(sorted(line.rstrip(",") for line in lines if line))


def _parsed(old: str, new: str) -> tuple[Any, ...]:
    """Return both texts as values, if both are JSON."""
    try:
        return json.loads(old), json.loads(new)
    except (ValueError, RecursionError):
        return ()


def _values(old: Any, new: Any, at: str) -> Iterator[str]:
    if type(old) is not type(new):
        yield f"{at}: {_json(old)} -> {_json(new)}"
    elif isinstance(old, dict):
        for name in old:
            if name in new:
                yield from _values(old[name], new[name], f"{at}.{name}")
            else:
                yield f"{at}.{name}: {_json(old[name])} -> absent"
        for name in new:
            if name not in old:
                yield f"{at}.{name}: absent -> {_json(new[name])}"
        if list(old) != list(new) and old.keys() == new.keys():
            yield f"{at} order: {_json(list(old))} -> {_json(list(new))}"
    elif isinstance(old, list):
        if len(old) != len(new):
            yield f"{at}: {len(old)} items -> {len(new)} items; {_around(json.dumps(old), json.dumps(new))}"
        elif sorted(map(json.dumps, old)) == sorted(map(json.dumps, new)) and old != new:
            yield f"{at} order: {_around(json.dumps(old), json.dumps(new))}"
        else:
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from _values(one, other, f"{at}[{index}]")
    elif old != new:
        if isinstance(old, str) and old.startswith(("{", "[")):  # a body in the journal, for example
            old, new = _steady(old), _steady(new)
            found = list(_values(*values, at)) if (values := _parsed(old, new)) else []
        else:
            found = []
        if old != new:
            yield from found or [f"{at}: {_json(old)} -> {_json(new)}"]


def _lines(old: str, new: str, name: str) -> Iterator[str]:
    olds, news = old.splitlines(), new.splitlines()
    if olds == news:
        yield f"{name} line ends: {_around(old, new)}"
    for kind, start, end, since, until in SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
        if kind != "equal":
            one, other = "\n".join(olds[start:end]), "\n".join(news[since:until])
            yield f"{name} line {start + 1}: {_around(one, other)}"


def _around(old: str, new: str) -> str:
    """Show two texts from shortly before their first difference."""
    same = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    start = max(0, (min(len(old), len(new)) if same is None else same) - 40)
    return f"{_shown(old[start:] if old else None)} -> {_shown(new[start:] if new else None)}"


def _shown(value: object) -> str:
    if value is None:
        return "absent"
    text = repr(value[0] if isinstance(value, list) and len(value) == 1 else value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _code(response: Response) -> str:
    """Return the number of a status, or what happened in its place."""
    return response.status[:3] if response.status[:3].isdecimal() else response.status


def _reasons(old: Response, new: Response) -> str:
    """Return the bodies of refusals, which say why one version refused."""
    shown = [each.body[:SHOWN].decode("utf-8", "replace") for each in (old, new) if not each.status.startswith("2")]
    return f" ({'; '.join(shown)})" if shown else ""


def _ended(response: Response) -> str:
    return "closed" if response.closed else "kept open"
