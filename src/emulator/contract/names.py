"""Names that both packages use: roles, headers, a variable, and the patterns of ids."""

from __future__ import annotations

import re
from enum import StrEnum

from emulator.contract.limits import MAX_CLIENT_ID_LENGTH


class Role(StrEnum):
    """The role in a token. Any other role counts as viewer."""

    VIEWER = "viewer"
    BROADCASTER = "broadcaster"
    ADMIN = "admin"
    BACKEND = "backend"


MARK_HEADER = "x-emulator-mark"
"""The header by which an emulator in sandbox is known. Its value counts the changes so far."""
PRODUCTION_HEADER = "x-emulator-production"
"""The header with the verdict of production."""
FAULT_HEADER = "x-emulator-fault"
"""The header with the id of the fault that acted."""
HINT_HEADER = "x-emulator-hint"
"""The header in which an emulator says what the caller probably meant."""
CODE_HEADER = "x-emulator-code"
"""The header in which an emulator in sandbox names a refusal, such as `votes.poll_closed`."""
TOKEN_HEADER = "x-emulator-token"
"""The header of a request to the control API that has the control token."""
CONTROL_TOKEN = "EXTCLI_SERVE_CONTROL_TOKEN"
"""The service's variable with the control token. There is no option: other users of the machine can read those."""

NAME_PATTERN = "[A-Za-z0-9_-]{1,64}"
"""The pattern of the name of a namespace and of the id of a fault."""
NAME_RULE = "1 to 64 letters, digits, '-' and '_'"
GLOBAL = "global-"
"""The start of the ids of records that all channels of an extension share."""
POLL_ID = f"(?!{GLOBAL}$)[A-Za-z0-9$_-]{{1,64}}"
POLL_ID_RULE = f"1 to 64 letters, digits, '$', '-' and '_', and not just '{GLOBAL}'"
CLIENT_ID = rf"(?!(?i:bearer)$|eyJ)[!#-~\xa1-\xac\xae-\xff]{{1,{MAX_CLIENT_ID_LENGTH}}}"
"""What `Authorization: <client id> <JWT>` can carry: headers are Latin-1, and a scheme or a JWT mean something else."""
_IS_CLIENT_ID = re.compile(CLIENT_ID).fullmatch
"""Compiled once: each new token is checked."""
CLIENT_ID_RULE = (
    f"1 to {MAX_CLIENT_ID_LENGTH} printable characters of Latin-1, without spaces and double quotes, "
    "not 'Bearer', and not beginning with 'eyJ'"
)
ALIASES = {
    "config": "all_config",
    "config/extension": "extension_config",
    "config/channel": "channel_config",
    "broadcast_extension": "extension_broadcast",
    "codes/eligible": "codes/eligibility",
    "unauthed/pin": "pin",
    "gamelink/pin": "link/pin",
    "gamelink/token": "link/pin",
    "vote/vote_logs": "vote_logs",
    "user-info": "user_info",
    "trivia": "curated_poll",
}
"""Other paths below `/v1/e/` of the service API, and the specified ones."""
SECRET_NAMES = ("pin", "auth", "authorization")
SECRET_ENDS = ("token", "secret", "password", "passwd", "pwd", "passphrase", "credential", "apikey", "privatekey")
"""Ends of the names of other secret members, in lower case, without `_` and `-`, and in the singular."""
SECRET_TOKEN = r"eyJ[\w-]{8,}(?:\.[\w-]*)*|ZXlK[\w+/-]{8,}"
"""A JWT, or a truncated one: base64 that starts with `{"`. Or the base64 of that."""
SECRET_TEXT = re.compile(
    SECRET_TOKEN
    + r"|(?i:\bbasic +(?=(?-i:[a-z]*[0-9A-Z+/=]))[a-z0-9+/_-]{8,}={0,2}|(?<=://)[^\s/:@\"']*:[^\s/@\"']+(?=@))"
)
"""A token, `Basic …`, or user and password in a URL."""
VIEWER_STORES = ("viewer_state", "extension_viewer_state")
"""The stores that belong to a user."""


def is_client_id(text: str) -> bool:
    """Whether a text can be the client id of an extension."""
    return _IS_CLIENT_ID(text) is not None


def is_secret(name: str) -> bool:
    """Whether a member of this name is secret at any depth: `pin`, `access_token`, `clientSecret`."""
    plain = name.lower().replace("_", "").replace("-", "")
    return plain in SECRET_NAMES or plain.removesuffix("s").endswith(SECRET_ENDS)
