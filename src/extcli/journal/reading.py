"""Reads the journal of an emulator: pages of it, one entry, and a stream that is resumed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final

from extcli import bounded_json, clock
from extcli.api.call import SERVICE, encoded
from extcli.api.http import Response
from extcli.errors import CliError, ExitCode, Refused, TooLarge, UnexpectedResponse, Unreachable, UsageError
from extcli.output import times
from extcli.reading.shapes import document_of, expect_shape, problem_of
from extcli.reading.streams import lines
from extcli.session import Session

Json = dict[str, Any]

_BODY: Final = {"text": str, "encoding": str, "size": int, "is_cut": bool, "is_hidden": bool}
_CALLER: Final = {"client_id": str, "role": str, "channel_id": (str, None), "user_id": (str, None), "opaque_id": str}
ENTRY: Final = {
    "number": int,
    "kind": str,
    "at": int,
    "system_at": int,
    "id": str,
    "namespace": str,
    "caller": (_CALLER, None),
    "endpoint": str,
    "path": str,
    "status": int,
    "duration_ms": float,
    "request": _BODY,
    "response": _BODY,
    "recipients": [str],
    "delivered": int,
    "dropped": int,
    **dict.fromkeys(("reason", "detail", "rule", "production"), str),
    **dict.fromkeys(("code?", "next_step?", "fault?", "hint?"), (str, None)),
}
"""The shape of an entry."""
_PAGE: Final = {"entries": [ENTRY], "mark": int, "lost": int, "next": (int, None), "run": str}
_LINE: Final = {"mark": int, "lost?": int, "run?": str}
"""The shape of a line of the stream that is not an entry."""

LATEST: Final = "latest"
"""Instead of an id: the latest entry."""
PAGE: Final = 1_000
"""Entries in one response."""
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
        response = session.control().read_journal(query)
    except Refused as refused:
        raise _without_journal(session) if refused.status == 404 else refused from None
    found: Json = document_of(response, _PAGE)
    return found


def latest(session: Session, query: Mapping[str, Any], *, since: str | None, limit: int | None) -> Json:
    """Return the latest entries, oldest first, at most `limit`, after a mark or within a time such as `5m`.

    The result has `entries`, `mark`, `run`, `lost` (how many entries after the given mark are gone), and `more`
    (whether earlier entries match).
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
        if part["next"] >= query.get("before", inf):
            raise _without_end(session)
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
        if part["next"] is not None and part["next"] <= mark:
            raise _without_end(session)
        mark = part["next"]


def find(session: Session, id: str) -> Json:
    """Return the entry with a request id or a number, or the latest."""
    entry: Json = document_of(session.control().read_journal_entry(id), ENTRY)
    return entry


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
    """Return the latest request whose path contains this text. Raises `UsageError` if there is none."""
    entries = page(session, {"kind": "request", "limit": 1, "path": path})["entries"]
    if not entries:
        raise UsageError(f"the journal has no request below {path}", fix="`extcli logs` lists what it has")
    return dict(entries[0])


def _is_transient(error: CliError) -> bool:
    """Return whether reconnecting may help after this error. It does not if the stream has an unexpected form."""
    if isinstance(error, (TooLarge, UnexpectedResponse)):
        return False
    return error.exit_code in (ExitCode.UNREACHABLE, ExitCode.SERVICE_FAILED)


class _Restarted(Exception):
    """Raised if the service was restarted: its entries are numbered from 1 again, so the stream must begin again."""


class Follower:
    """Follows the journal, reconnects when the connection is lost, and reports gaps."""

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
                    yield from self._note_position(item)
                    if clock.elapsed() >= deadline:
                        return
                error: CliError = Unreachable(f"{self._session.http.url} ended the stream")
            except _Restarted:
                continue
            except CliError as failure:
                error = failure
            if not _is_transient(error):
                raise error
            if clock.elapsed() >= deadline - _MARGIN:
                return
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
            with self._session.control().follow_journal(query) as response:
                for line in lines(response.iter_bytes(), "the journal"):
                    yield _item(response, line)
        except Refused as refused:
            raise _without_journal(self._session) if refused.status == 404 else refused from None

    def _note_position(self, item: Json) -> Iterator[Json]:
        """Remember the position of a line, and yield the line if it is an entry or a gap."""
        if "number" in item:
            self._mark, self._heard_at = item["number"], item["system_at"]
            yield item
            return
        before, self._run = self._run, item.get("run", self._run)
        if before not in ("", self._run):
            self._session.output.report("gap: the service was restarted; entries that it had not sent yet are lost")
            self._mark = 0
            raise _Restarted
        self._mark = item["mark"]
        if "lost" in item:
            earlier = "before" if self._heard_at is None else f"between {times.shown(self._heard_at)} and"
            count = f"{item['lost']:,} {'entry was' if item['lost'] == 1 else 'entries were'}"
            self._session.output.report(f"gap: {count} lost {earlier} {times.shown(clock.now())}")
            yield {"lost": item["lost"]}


def _without_end(session: Session) -> CliError:
    what = f"the journal of {session.http.url} has no end"
    return Unreachable(what, why="a page leads to itself", fix="check that --url (EXTCLI_URL) is an extension service")


def _item(response: Response, line: bytes) -> Json:
    """Return a line of the stream: an entry, or the mark that was reached. Raises `UnexpectedResponse`."""
    with expect_shape(response):
        item = bounded_json.decoded(line)
    if problem := problem_of(item, ENTRY if isinstance(item, dict) and "number" in item else _LINE):
        raise UnexpectedResponse(response, problem)
    return dict(item)


def _without_journal(session: Session) -> UsageError:
    return UsageError(
        f"{session.http.url} has no journal",
        why="only an emulator in sandbox keeps one",
        fix="check --url (EXTCLI_URL)",
    )


def call_of(entry: Mapping[str, Any]) -> Json:
    """Return the body of `POST /_emulator/call` that repeats a request. Raises `UsageError` if that is impossible."""
    what = f"{entry['id']} cannot be repeated"
    body, caller = entry["request"], entry["caller"]
    if entry["kind"] != "request" or not entry["path"].startswith(SERVICE):
        raise UsageError(what, why=f"it is not a request below {SERVICE}")
    if caller is None:
        raise UsageError(what, why="its caller is unknown: it had no token, or a refused one")
    if body["is_cut"]:
        raise UsageError(what, why=f"the journal keeps only the beginning of its {body['size']:,} bytes")
    if body["is_hidden"] or "[hidden]" in entry["path"]:
        raise UsageError(what, why="it has a secret, which the journal does not keep")
    if body["encoding"] != "text":
        raise UsageError(what, why="its body is not UTF-8")
    return {
        "method": entry["endpoint"].partition(" ")[0],
        "path": entry["path"],
        "body": body["text"] if body["size"] else None,
        "client_id": caller["client_id"],
        "role": caller["role"],
        "user_id": caller["user_id"] or "",
        "channel_id": caller["channel_id"] or "",
        "opaque_user_id": _opaque_id(caller),
    }


def _opaque_id(caller: Mapping[str, Any]) -> str:
    """Return the opaque id that a token has to name; empty if the service derives it."""
    user, opaque = caller["user_id"], str(caller["opaque_id"])
    derived = (user if user.startswith("U") else f"U{user}") if user else f"A-{caller['role']}"
    return "" if opaque == derived else opaque


_RESPONSE = {"status": int, "request_id": str}


def replay(session: Session, entry: Mapping[str, Any], times: int) -> Json:
    """Repeat a request this many times, and compare each response with the first one. Raises `UsageError`."""
    call = encoded(call_of(entry))
    control = session.control()
    replays = []
    for _ in range(times):
        response = document_of(control.call_as(call), _RESPONSE)
        replays.append(
            {
                "before": entry["status"],
                "status": response["status"],
                "same_body": _is_same(session, entry, response["request_id"]),
                "request_id": response["request_id"],
            }
        )
    return {"id": entry["id"], "replays": replays}


def _is_same(session: Session, entry: Mapping[str, Any], id: str) -> bool | None:
    """Compare the responses as the journal has them, both without secrets; `None` if it lacks one of them."""
    if not entry["response"]["size"]:
        return None
    try:
        again = find(session, id)
    except CliError:
        return None
    return bool(again["response"] == entry["response"])
