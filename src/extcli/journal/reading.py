"""Reads the journal of an emulator: pages of it, one entry, and a stream that is resumed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from extcli import bounded_json, clock
from extcli.api.call import SERVICE, Outage, encoded
from extcli.errors import CliError, TooLarge, UnexpectedResponse, Unreachable, UsageError
from extcli.output import times
from extcli.reading import Json, document_of, expect_shape, shape_problem, stream_lines
from extcli.session import Session

_BODY_SHAPE = {"text": str, "encoding": str, "size": int, "is_cut": bool, "is_hidden": bool}
_CALLER_SHAPE = {"client_id": str, "role": str, "channel_id": (str, None), "user_id": (str, None), "opaque_id": str}
ENTRY_SHAPE = {
    **dict.fromkeys(("number", "at", "system_at", "status", "delivered", "dropped"), int),
    **dict.fromkeys(("kind", "id", "namespace", "endpoint", "path", "reason", "detail", "rule", "production"), str),
    **dict.fromkeys(("code?", "next_step?", "fault?", "hint?"), (str, None)),
    "caller": (_CALLER_SHAPE, None),
    "duration_ms": float,
    "request": _BODY_SHAPE,
    "response": _BODY_SHAPE,
    "recipients": [str],
}
"""The shape of an entry."""
_PAGE_SHAPE = {"entries": [ENTRY_SHAPE], "mark": int, "lost": int, "next": (int, None), "run": str}
_MARK_SHAPE = {"mark": int, "lost?": int, "run?": str}
"""The shape of a line of the stream that is not an entry."""

LATEST = "latest"
"""Instead of an id: the latest entry."""
PAGE_SIZE = 1_000
"""Entries in one response."""
_LONGEST_SILENCE = 45.0
"""Seconds without a line after which a stream counts as lost. The service sends a line every 15."""
_END_MARGIN = 0.1
"""Seconds before the deadline in which the service may end the stream."""


def parse_mark(text: str) -> int | None:
    """Return the mark that `--since` names, or `None` if it names a time."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def read_page(session: Session, query: Json) -> Json:
    """Return one part of the journal."""
    return dict(document_of(session.control().get("journal", **query), _PAGE_SHAPE))


def latest_entries(session: Session, query: Json, *, since: str | None, limit: int | None) -> Json:
    """Return the latest entries, oldest first, at most `limit`, after a mark or within a time such as `5m`.

    The result has `entries`, `mark`, `run`, `lost` (how many entries after the given mark are gone), and `more`
    (whether earlier entries match).
    """
    mark = parse_mark(since) if since else None
    earliest = times.parse_instant(since, clock.now, ago=True) if since and mark is None else 0
    query = {**query, "order": "newest", "since": mark}
    wanted = inf if limit is None else limit
    found: list[Json] = []
    first: Json = {}
    more = True
    while more and len(found) < wanted:
        part = read_page(session, {**query, "limit": min(PAGE_SIZE, wanted - len(found))})
        first = first or part
        newer = [entry for entry in part["entries"] if entry["system_at"] >= earliest]
        found += newer
        more = part["next"] is not None and len(newer) == len(part["entries"])
        query["before"] = part["next"]
    position = {name: first[name] for name in ("mark", "lost", "run")}
    return {"entries": found[::-1], **position, "more": more}


def find_entry(session: Session, id: str) -> Json:
    """Return the entry with a request id or a number, or the latest."""
    return dict(document_of(session.control().get("journal/entry", id=id), ENTRY_SHAPE))


def with_deliveries(session: Session, entry: Json) -> Json:
    """Return a request or a frame with the deliveries that it caused, as `deliveries` if there are any."""
    if entry["kind"] == "delivery":
        return entry
    query = {"kind": "delivery", "id": entry["id"], "probes": "true"}
    found = latest_entries(session, query, since=None, limit=PAGE_SIZE)["entries"]
    caused = [each for each in found if each["id"] == entry["id"]]
    return {**entry, "deliveries": caused} if caused else entry


def latest_request(session: Session, path: str) -> Json:
    """Return the latest request whose path contains this text. Raises `UsageError` if there is none."""
    entries = read_page(session, {"kind": "request", "limit": 1, "path": path})["entries"]
    if not entries:
        raise UsageError(f"the journal has no request with {path} in its path", fix="`extcli logs` lists its requests")
    return dict(entries[0])


class _Restarted(Exception):
    """Raised if the service was restarted: its entries are numbered from 1 again, so the stream must begin again."""


@dataclass
class JournalFollower:
    """Follows the journal, reconnects when the connection is lost, and reports gaps."""

    session: Session
    query: Json
    mark: int
    """The number of the last entry that was read."""
    run: str = ""
    """The run of the service, if it is known."""
    heard_at: int | None = None
    """When the latest entry happened, in Unix ms of the service's machine."""

    def follow(self, deadline: float) -> Iterator[Json]:
        """Yield entries, and `{"lost": 12}` for a gap, until the deadline by `clock.elapsed`.

        Raises the error of an outage that lasts until then, or two minutes.
        """
        report = self.session.output.report
        outage = Outage(report, deadline)
        self.session.http.set_timeout(_LONGEST_SILENCE)
        while (left := deadline - clock.elapsed()) > 0:
            try:
                for item in self._lines_until(left):
                    if outage.since is not None:
                        report(f"connected again after {outage.end():.1f} s")
                    yield from self._note_position(item)
                    if clock.elapsed() >= deadline:
                        return
                if clock.elapsed() >= deadline - _END_MARGIN:
                    return
                raise Unreachable(f"{self.session.http.url} ended the stream")
            except _Restarted:
                continue
            except (TooLarge, UnexpectedResponse):
                raise
            except CliError as error:
                if not outage.wait(error):
                    raise

    def _lines_until(self, seconds: float) -> Iterator[Json]:
        """Yield the lines of one stream: entries, and marks. Raises `UnexpectedResponse`."""
        timeout = None if seconds == inf else round(seconds * 1000)
        query = {**self.query, "since": self.mark, "timeout": timeout}
        with self.session.control().stream("journal/stream", **query) as response:
            for line in stream_lines(response.iter_bytes()):
                with expect_shape(response):
                    item = bounded_json.decoded(line)
                if problem := shape_problem(
                    item, ENTRY_SHAPE if isinstance(item, dict) and "number" in item else _MARK_SHAPE
                ):
                    raise UnexpectedResponse(response, problem)
                yield item

    def _note_position(self, item: Json) -> Iterator[Json]:
        """Remember the position of a line, and yield the line if it is an entry or a gap."""
        if "number" in item:
            self.mark, self.heard_at = item["number"], item["system_at"]
            yield item
            return
        before, self.run = self.run, item.get("run", self.run)
        if before not in ("", self.run):
            self.session.output.report("gap: the service was restarted; entries that it had not sent yet are lost")
            self.mark = 0
            raise _Restarted
        self.mark = item["mark"]
        if "lost" in item:
            count = f"{item['lost']:,} {'entry was' if item['lost'] == 1 else 'entries were'}"
            earlier = "before" if self.heard_at is None else f"between {times.utc_text(self.heard_at)} and"
            self.session.output.report(f"gap: {count} lost {earlier} {times.utc_text(clock.now())}")
            yield {"lost": item["lost"]}


def repeated_call(entry: Json) -> Json:
    """Return the body of `POST /_emulator/call` that repeats a request. Raises `UsageError` if that is impossible."""
    body, caller = entry["request"], entry["caller"]
    is_service_call = entry["kind"] == "request" and entry["path"].startswith(SERVICE)
    problems = {
        f"only requests below {SERVICE} can be repeated": not is_service_call,
        "its caller is unknown: it had no token, or a refused one": caller is None,
        f"the journal keeps only the beginning of its {body['size']:,} bytes": body["is_cut"],
        "it contains a secret, which the journal hides": body["is_hidden"] or "[hidden]" in entry["path"],
        "its body is not UTF-8": body["encoding"] != "text",
    }
    for why, applies in problems.items():
        if applies:
            raise UsageError(f"{entry['id']} cannot be repeated", why=why)
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


def _opaque_id(caller: Json) -> str:
    """Return the opaque id that a token has to name; empty if the service derives it."""
    user, opaque = caller["user_id"], str(caller["opaque_id"])
    derived = (user if user.startswith("U") else f"U{user}") if user else f"A-{caller['role']}"
    return "" if opaque == derived else opaque


def replay_request(session: Session, entry: Json, times: int) -> Json:
    """Repeat a request this many times, and compare each response with the first one. Raises `UsageError`."""
    call = encoded(repeated_call(entry))
    replays = []
    for _ in range(times):
        response = document_of(session.control().send("POST", "call", call), {"status": int, "request_id": str})
        id, status = response["request_id"], response["status"]
        same = _has_same_response(session, entry, id)
        replays.append({"before": entry["status"], "status": status, "same_body": same, "request_id": id})
    return {"id": entry["id"], "replays": replays}


def _has_same_response(session: Session, entry: Json, id: str) -> bool | None:
    """Compare the responses as the journal has them, both without secrets; `None` if it lacks one of them."""
    if not entry["response"]["size"]:
        return None
    try:
        again = find_entry(session, id)
    except CliError:
        return None
    return bool(again["response"] == entry["response"])
