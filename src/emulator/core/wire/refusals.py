"""Refusals of values in any endpoint or action, because of their form, range or size.

The rule that explains them is the endpoint's. Their detail begins with the field, by which `extcli explain` finds the
sent value.
"""

from __future__ import annotations

import json

from emulator.core.errors import OF_INPUT, BadRequest, Facts, refusal

_PARAMETER = "Malformed {field} parameter"
_BODY = "Invalid body"
_LONGEST_SHOWN = 80


def _shown_value(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:_LONGEST_SHOWN])
    return json.dumps(value, default=str)[:_LONGEST_SHOWN]


def _value_facts(field: str, value: object, needed: str, problem: str) -> Facts:
    shown = _shown_value(value)
    return Facts(f"{field}: {problem or f'{shown} is not {needed}'}", f"{field} {shown}", needed)


def _absence_facts(field: str, needed: str) -> Facts:
    return Facts(f"{field}: is missing: {needed}" if needed else f"{field}: is missing", f"no {field}", needed or field)


@refusal(BadRequest, "Malformed json body", "W2", "The body is not valid JSON",
         "Send valid JSON, whatever the content type; check it with `python -m json.tool`.")  # fmt: skip
def malformed_json(problem: str, what: str = "the body") -> Facts:
    return Facts(f"{what} is not valid JSON: {problem}", problem, "JSON in UTF-8, without NaN and Infinity")


@refusal(BadRequest, "{reason}", "W2", "The body is nested too deeply", "Send JSON with fewer levels.")
def too_deep(*, reason: str, what: str = "the body") -> Facts:
    detail = f"{what} is nested too deeply"
    return Facts(detail, "more levels than the service reads", "fewer levels of objects and arrays")


@refusal(BadRequest, _BODY, OF_INPUT, "The body has the wrong shape",
         "Compare the body with the API viewer, at /schema/docs of the service.")  # fmt: skip
def wrong_shape(field: str = "", *, problem: str = "", held: str = "", needed: str) -> Facts:
    problem = problem or f"must be {needed}"
    return Facts(f"{field}: {problem}" if field else problem, held or "another value", needed)


@refusal(BadRequest, _BODY, OF_INPUT, "A member of the body is invalid", "Change {field}: it must be {needed}.")
def invalid_member(field: str, value: object, needed: str, problem: str = "") -> Facts:
    """A member of the body is invalid.

    `field` may be a path such as `options[2]`; `problem` replaces the default text.
    """
    return _value_facts(field, value, needed, problem)


@refusal(BadRequest, _BODY, OF_INPUT, "A member of the body is missing", "Add {field} to the body.")
def missing_member(field: str, needed: str = "") -> Facts:
    return _absence_facts(field, needed)


@refusal(BadRequest, _PARAMETER, OF_INPUT, "A query parameter is invalid", "Change {field}: it must be {needed}.")
def invalid_parameter(field: str, value: object, needed: str, problem: str = "") -> Facts:
    return _value_facts(field, value, needed, problem)


@refusal(BadRequest, 'Malformed "{field}" parameter', OF_INPUT, "A query parameter is invalid",
         "Change {field}: it must be {needed}.")  # fmt: skip
def invalid_word(field: str, value: object, needed: str) -> Facts:
    """The same for a parameter whose name is a word of the sentence, such as `for`."""
    return _value_facts(field, value, needed, "")


@refusal(BadRequest, _PARAMETER, OF_INPUT, "A query parameter is missing", "Add {field} to the query.")
def missing_parameter(field: str, needed: str) -> Facts:
    return _absence_facts(field, needed)


@refusal(BadRequest, "Malformed cursor parameter", "gaps: Polls and stores", "The cursor is not from this listing",
         "Start with cursor 0, then send `next` of the previous page.")  # fmt: skip
def invalid_cursor(cursor: str) -> Facts:
    detail = "cursor: use '0', or `next` of an earlier page"
    return Facts(detail, f"cursor {_shown_value(cursor)}", "0, or `next` of an earlier page")


@refusal(BadRequest, "{reason}", "W8", "A string has the wrong form",
         "Send {field} with 1 to {longest} printable characters.")  # fmt: skip
def invalid_text(*, reason: str, field: str, size: int, longest: int) -> Facts:
    needed = f"1 to {longest} printable characters"
    held = f"{field} of {size} {'character' if size == 1 else 'characters'}"
    return Facts(f"{field}: must be {needed}", held, needed)


@refusal(BadRequest, _BODY, OF_INPUT, "A value is too long", "Send at most {limit} {unit} in {field}.")
def too_long(field: str, *, size: int = 0, unit: str, limit: int) -> Facts:
    """A value is too long. `size` is 0 if it is unknown."""
    held = f"{size} {unit}" if size else f"more than {limit} {unit}"
    rest = f"; the limit is {limit}" if size else ""
    return Facts(f"{field}: has {held}{rest}", f"{field} of {held}", f"at most {limit} {unit}")


@refusal(BadRequest, "Malformed query", "W7", "The query has too many parameters", "Send at most {limit} parameters.")
def too_many_parameters(*, count: int, limit: int) -> Facts:
    detail = f"the query has {count} parameters; the limit is {limit}"
    return Facts(detail, f"{count} parameters", f"at most {limit}")


def checked_text(text: str, longest: int, *, reason: str, name: str) -> str:
    """Return a text of 1 to `longest` printable characters; raise `BadRequest` naming the field otherwise."""
    if not 1 <= len(text) <= longest or not text.isprintable():
        raise invalid_text(reason=reason, field=name, size=len(text), longest=longest)
    return text
