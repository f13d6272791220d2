"""Identity over REST: `authtoken`, `user_info`, `user_ids`."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.callers import ANYONE, EXTENSION_WRITERS
from emulator.features.identity.rules import HELPER, AuthtokenBody
from emulator.features.identity.service import Identities, UserIds, UserInfo
from emulator.http.endpoint import CURSOR, Audience, Call, Parameter, endpoint


class Issued(Struct):
    """`token` for one user; `tokens` if the body has `user_ids`."""

    token: str | UnsetType = UNSET
    tokens: list[str] | UnsetType = UNSET


@endpoint(
    "POST",
    "/v1/e/authtoken",
    audience=Audience.PUBLIC,
    body=AuthtokenBody,
    answer=Issued,
    query=(
        Parameter(HELPER, "Any text: for a helper of the emulator, in place of a token that the platform would issue."),
    ),
    secrets=frozenset({"token", "tokens"}),
)
async def issue_sandbox_token(identities: Identities, call: Call) -> Issued:
    """Issue tokens for simulated users; sandbox only."""
    body = call.body(AuthtokenBody)
    tokens = await identities.issue(body, for_helper=bool(call.text(HELPER)))
    return Issued(
        token=tokens[0] if len(tokens) == 1 else UNSET,
        tokens=tokens if body.user_ids is not None or len(tokens) > 1 else UNSET,
    )


@endpoint("GET", "/v1/e/user_info", roles=ANYONE, answer=UserInfo)
async def read_user_info(identities: Identities, call: Call) -> UserInfo:
    """Read the caller's identity and the service's time; 200 only for a valid token."""
    return identities.describe(call.caller, call.peer)


@endpoint(
    "GET",
    "/v1/e/user_ids",
    roles=EXTENSION_WRITERS,
    answer=UserIds,
    query=(CURSOR,),
)
async def list_user_ids(identities: Identities, call: Call) -> UserIds:
    """List the ids of the users who shared them and sent at least one write, 1,000 at a time."""
    return await identities.list_user_ids(call.caller, call.text("cursor"))


endpoints: Final = (read_user_info, list_user_ids)
