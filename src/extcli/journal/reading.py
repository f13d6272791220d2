"""Reads the journal of an emulator: pages of it, one entry, and a stream that is resumed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final

from extcli import clock
from extcli.errors import CliError, ExitCode, Refused, Unreachable, UsageError
from extcli.output import times
from extcli.session import Session

Json = dict[str, Any]

LATEST: Final = "latest"
"""Instead of an id: the latest entry."""
PAGE: Final = 1_000
"""Entries in one answer."""
_SILENCE: Final = 45.0
"""Seconds without a line after which a stream counts as lost. The service sends a line every 15."""
_GIVE_UP_AFTER: Final = 120.0
"""Seconds of outage after which following ends."""
_WAIT: Final = 0.2
"""Seconds before the first attempt to reconnect."""
_LONGEST_WAIT: Final = 5.0
_MARGIN: Final = 0.1
"""Seconds before the deadline in which the service may end the stream."""


def mark_of(text: str) -> int | None:
    """Return the mark that `--since` names, or `None` if it names a time."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def page(session: Session, query: Mapping[str, Any]) -> Json:
    """Return one part of the journal. Raises `UsageError` if the service has none."""
    try:
        return dict(json.loads(session.control().read_journal(query).content))
    except Refused as refused:
        raise _without_journal(session) if refused.status == 404 else refused from None


def latest(session: Session, query: Mapping[str, Any], *, since: str | None, limit: int | None) -> Json:
    """Return the latest entries, oldest first, at most `limit`, after a mark or within a time such as `5m`.

    As `entries`, `mark`, `lost` (how many after the given mark are gone), `run`, and `more` (whether earlier ones
    match).
    """
    mark = mark_of(since) if since else None
    earliest = times.instant(since, clock.now, ago=True) if since and mark is None else 0
    query = {**query, "order": "newest", **({} if mark is None else {"since": mark})}
    found: list[Json] = []
    first: Json = {}
    while True:
        wanted = PAGE if limit is None else min(PAGE, limit - len(found))
        if wanted <= 0 and first:
            break
        part = page(session, {**query, "limit": max(wanted, 1)})
        first = first or part
        newer = [entry for entry in part["entries"] if entry["system_at"] >= earliest][: max(wanted, 0)]
        found += newer
        if part["next"] is None or len(newer) < len(part["entries"]):
            break
        query["before"] = part["next"]
    more = part["next"] is not None and len(newer) == len(part["entries"])
    return {"entries": found[::-1], "mark": first["mark"], "lost": first["lost"], "run": first["run"], "more": more}


def everything(session: Session, query: Mapping[str, Any], *, since: str | None) -> Iterator[Json]:
    """Yield all kept entries that a query selects, oldest first, without holding them."""
    mark = mark_of(since) if since else None
    earliest = times.instant(since, clock.now, ago=True) if since and mark is None else 0
    mark = mark or 0
    while mark is not None:
        part = page(session, {**query, "order": "oldest", "since": mark, "limit": PAGE})
        yield from (entry for entry in part["entries"] if entry["system_at"] >= earliest)
        mark = part["next"]


def find(session: Session, id: str) -> Json:
    """Return the entry with a request id or a number, or the latest."""
    return dict(json.loads(session.control().read_journal_entry(id).content))


def with_deliveries(session: Session, entry: Json) -> Json:
    """Return a request or a frame with the deliveries that it caused, as `deliveries` if there are any."""
    if entry["kind"] == "delivery":
        return entry
    caused = latest(session, {"kind": "delivery", "id": entry["id"], "probes": "true"}, since=None, limit=PAGE)[
        "entries"
    ]
    caused = [each for each in caused if each["id"] == entry["id"]]
    return {**entry, "deliveries": caused} if caused else entry


def latest_request(session: Session, path: str) -> Json:
    """Return the latest request with this part in its path. Raises `UsageError` if there is none."""
    entries = page(session, {"kind": "request", "limit": 1, "path": path})["entries"]
    if not entries:
        raise UsageError(f"the journal has no request below {path}", fix="`extcli logs` lists what it has")
    return dict(entries[0])


class _Restarted(Exception):
    """The marks of the service began anew, so the stream has to."""


class Follower:
    """Follows the journal over as many connections as it takes, and reports gaps."""

    def __init__(self, session: Session, query: Mapping[str, Any], mark: int, run: str = "") -> None:
        """Begin after a mark, of this run of the service if that is known."""
        self._session = session
        self._query = query
        self._mark = mark
        self._run = run
        self._heard_at: int | None = None
        """When the latest entry happened, in Unix ms of the service's machine."""

    def items(self, deadline: float) -> Iterator[Json]:
        """Yield entries, and `{"lost": 12}` for a gap, until the deadline by `clock.elapsed`.

        Raises the error of an outage that lasts until then, or two minutes.
        """
        waited, lost_at = _WAIT, inf
        while (left := deadline - clock.elapsed()) > 0:
            self._session.http.set_timeout(_SILENCE)
            try:
                for item in self._connection(left):
                    if lost_at < inf:
                        self._session.output.report(f"connected again after {clock.elapsed() - lost_at:.1f} s")
                        waited, lost_at = _WAIT, inf
                    yield from self._seen(item)
                    if clock.elapsed() >= deadline:
                        return
                error: CliError = Unreachable(f"{self._session.http.url} ended the stream")
            except _Restarted:
                continue
            except CliError as failure:
                error = failure
            if clock.elapsed() >= deadline - _MARGIN:
                return
            if error.exit_code not in (ExitCode.UNREACHABLE, ExitCode.SERVICE_FAILED):
                raise error
            if lost_at == inf:
                lost_at = clock.elapsed()
                self._session.output.report(f"lost: {error.what}; trying again")
            if clock.elapsed() + waited > min(deadline, lost_at + _GIVE_UP_AFTER):
                raise error
            clock.sleep(waited)
            waited = min(2 * waited, _LONGEST_WAIT)

    def _connection(self, seconds: float) -> Iterator[Json]:
        query = {**self._query, "since": self._mark, **({} if seconds == inf else {"timeout": round(seconds * 1000)})}
        try:
            with self._session.control().follow_journal(query) as answer:
                for line in answer.iter_lines():
                    yield json.loads(line)
        except Refused as refused:
            raise _without_journal(self._session) if refused.status == 404 else refused from None

    def _seen(self, item: Json) -> Iterator[Json]:
        """Keep the mark of a line, and yield it if it is an entry or a gap."""
        if "number" in item:
            self._mark, self._heard_at = item["number"], item["system_at"]
            yield item
            return
        before, self._run = self._run, item.get("run", self._run)
        if before not in ("", self._run):
            self._session.output.report("gap: the service was restarted; entries that it had not sent are lost")
            self._mark = 0
            raise _Restarted
        self._mark = item["mark"]
        if "lost" in item:
            earlier = "before" if self._heard_at is None else f"between {times.shown(self._heard_at)} and"
            count = f"{item['lost']:,} {'entry was' if item['lost'] == 1 else 'entries were'}"
            self._session.output.report(f"gap: {count} lost {earlier} {times.shown(clock.now())}")
            yield {"lost": item["lost"]}


def _without_journal(session: Session) -> UsageError:
    return UsageError(
        f"{session.http.url} has no journal",
        why="only an emulator in sandbox keeps one",
        fix="check --url (EXTCLI_URL)",
    )
