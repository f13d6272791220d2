"""Audit lines in the log: which permanent change an operator or backend made, and its size. Never a value or a secret.

Services call `audit` after the commit, so REST and the WebSocket share the line. A handler of the logger
`emulator.audit` gets all of them. With `--log-format json`, the facts are members of the line.
"""

from __future__ import annotations

import logging
import re
from contextlib import AbstractContextManager
from dataclasses import replace

from emulator.core.callers import Caller
from emulator.core.observability.request_context import current, in_context

_log = logging.getLogger("emulator.audit")
_NEEDS_NO_QUOTES = re.compile(r"[\w.:@-]+", re.ASCII)


def audit(what: str, caller: Caller | None = None, *, channel: str | None = None, **facts: str | int) -> None:
    """Log that `what` was done: a past participle such as `codes replaced`.

    Without a caller, the operator did it. `channel` is the channel acted on; without it, the caller's is logged. An
    integer is a count, named in the plural. A text is an id or a name; an empty one is left out.
    """
    context = current()
    if not _log.isEnabledFor(logging.INFO) or not context.is_audited:
        return
    is_operator = caller is None or context.is_inner
    who: dict[str, str] = {"by": "operator"} if is_operator else {}
    if caller is not None:
        who |= {"client_id": caller.client_id, "role": str(caller.role)}
        who |= {"channel": channel or caller.channel_id or "", "user": caller.opaque_id}
    shown = {name: fact for name, fact in facts.items() if fact != ""}
    known = {name: text for name, text in who.items() if text}
    text = ", ".join(_fact_text(name, fact) for name, fact in shown.items())
    _log.info("%s; %s", f"{what}: {text}" if text else what, _actor_text(who), extra={"what": what, **shown, **known})


def without_audit() -> AbstractContextManager[None]:
    """Log no audit lines in this block, and note no facts, because its changes are made to a scratch service."""
    return in_context(replace(current(), is_audited=False, facts={}))


def _actor_text(who: dict[str, str]) -> str:
    parts = []
    if client_id := who.get("client_id"):
        acting = "operator as client" if "by" in who else "client"
        parts = [f"{acting} {_quoted_if_needed(client_id)}", who["role"]]
        parts += [f"{name} {_quoted_if_needed(who[name])}" for name in ("channel", "user") if who[name]]
    return ", ".join(parts) or "operator"


def _fact_text(name: str, fact: str | int) -> str:
    if isinstance(fact, int):
        one = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
        return f"{fact:,} {one if fact == 1 else name}".replace("_", " ")
    return f"{name.replace('_', ' ')} {_quoted_if_needed(fact)}"


def _quoted_if_needed(text: str) -> str:
    """Return a text, in quotes if needed, so that no id can look like another fact of the line."""
    return text if _NEEDS_NO_QUOTES.fullmatch(text) else repr(text)
