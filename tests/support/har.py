"""A checker of HTTP Archives, by the specification of HAR 1.2."""

from __future__ import annotations

from typing import Any, Final

from jsonschema import Draft202012Validator

_TEXT: Final = {"type": "string"}
_SIZE: Final = {"type": "integer", "minimum": -1}
_DURATION: Final = {"type": "number", "minimum": 0}
_PAIRS: Final = {
    "type": "array",
    "items": {"type": "object", "required": ["name", "value"], "properties": {"name": _TEXT, "value": _TEXT}},
}
_STARTED: Final = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d)$"}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """An object that may have further members only if their names begin with an underscore."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **optional, "comment": _TEXT},
        "patternProperties": {"^_": {}},
        "additionalProperties": False,
    }


_MESSAGE: Final = {
    "httpVersion": _TEXT,
    "cookies": {"type": "array", "maxItems": 0},
    "headers": _PAIRS,
    "headersSize": _SIZE,
    "bodySize": _SIZE,
}
_REQUEST: Final = _object(
    {"method": _TEXT, "url": {"type": "string", "pattern": "^https?://"}, "queryString": _PAIRS, **_MESSAGE},
    postData=_object({"mimeType": _TEXT, "text": _TEXT}),  # or `params`, of a form
)
_RESPONSE: Final = _object(
    {
        "status": {"type": "integer"},
        "statusText": _TEXT,
        "content": _object(
            {"size": {"type": "integer", "minimum": 0}, "mimeType": _TEXT},
            text=_TEXT,
            encoding=_TEXT,
            compression={"type": "integer"},
        ),
        "redirectURL": _TEXT,
        **_MESSAGE,
    }
)
_ENTRY: Final = _object(
    {
        "startedDateTime": _STARTED,
        "time": _DURATION,
        "request": _REQUEST,
        "response": _RESPONSE,
        "cache": {"type": "object", "maxProperties": 0},
        "timings": _object({"send": _DURATION, "wait": _DURATION, "receive": _DURATION}),
    }
)
_ARCHIVE: Final = {
    "type": "object",
    "required": ["log"],
    "properties": {
        "log": _object(
            {
                "version": {"const": "1.2"},
                "creator": _object({"name": _TEXT, "version": _TEXT}),
                "entries": {"type": "array", "items": _ENTRY},
            },
            pages={"type": "array", "maxItems": 0},
        )
    },
}


def har_errors(archive: Any) -> list[str]:
    """Return what is wrong with an archive, empty if it is valid."""
    found = [f"{error.json_path}: {error.message}" for error in Draft202012Validator(_ARCHIVE).iter_errors(archive)]
    if found:
        return found
    times = [entry["startedDateTime"] for entry in archive["log"]["entries"]]
    return [] if all("+00:00" in time for time in times) else ["a time has no zone"]
