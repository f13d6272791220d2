"""Verifies `Authorization` headers, and issues tokens (rulings A1, A2, A5)."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from emulator.auth import hs256, jwts, refusals
from emulator.auth.claims import (
    SANDBOX_STAGE,
    caller_of,
    check_client_id,
    check_exp,
    check_lifetime,
    check_stage,
    grant_of,
    id_claim,
    role_of,
    split_header,
)
from emulator.auth.jwts import describe_wrong_key
from emulator.auth.signing_key import SigningKey
from emulator.core import parity
from emulator.core.bounded_cache import BoundedCache
from emulator.core.callers import Caller, Grant, Role
from emulator.core.clock import Clock
from emulator.core.errors import Forbidden, Unauthorized
from emulator.core.extensions import Extension, Extensions
from emulator.core.ids import token_id
from emulator.core.keys import Key
from emulator.core.observability.facts import CLIENT, NAMED, notice
from emulator.core.observability.request_context import give_hint
from emulator.core.settings import Settings

PIN_USE, REFRESH_USE = "pin", "refresh"
"""Values of the claim `use`: a token that is invalid until its PIN is validated, and one for refreshing only."""
HELPER_CLAIM = "helper"
"""The claim of a token that the sandbox issued to a helper of its own, in place of one of Twitch.

Twitch renews its tokens: so this one stays valid when the clock moves. Production refuses it like any token of
the sandbox.
"""
_log = logging.getLogger("emulator")
_MAX_CACHED = 25_000
"""Cached tokens. With ids of usual length, each takes some 630 bytes: 16 MB together (`benchmarks/memory.py`)."""
_MAX_CACHED_LENGTH = 1_024
"""The tokens of longer headers are not cached, so none takes over 1,400 bytes."""


class Credential(Struct, frozen=True, gc=False):  # one per new token: a tuple takes longer
    """A token that passed every check except the lifetime checks."""

    caller: Caller
    pin_token_id: str = ""
    """The `jti` of a PIN token, whose validity and channel are stored separately; empty for other tokens."""


class _VerificationKeys(NamedTuple):
    """The keys of one extension, by name."""

    all: Mapping[str, bytes]
    """The secrets in their order, then the service's own key, whose name is empty. The others are named by their
    fingerprints, which are keyed, so they do not help to guess."""
    fast: Mapping[str, hs256.PreparedKey]
    """The keys for `hs256`: all, or none if pyjwt refuses one of them, which `hs256` would not notice."""


class Tokens:
    """Verifies `Authorization` headers and signs tokens."""

    def __init__(self, settings: Settings, extensions: Extensions, clock: Clock, service_key: SigningKey) -> None:
        self._extensions = extensions
        self._leeway = settings.leeway
        self._environment = settings.environment
        self._clock = clock
        self._service_key = service_key
        service_key.on_change = self.forget
        self._cache = BoundedCache[str, Caller](_MAX_CACHED)
        self._cached_for = extensions.current
        self._keys_of: dict[str | None, _VerificationKeys] = {}
        """The keys of each extension that was needed so far, and the keys for unknown extensions."""
        self._warned_client_ids: set[str] = set()
        """The client ids that the log has warned about."""

    def forget(self) -> None:
        """Clear the cache of verified tokens. A change of secrets also clears it."""
        self._cache.clear()
        self._keys_of.clear()
        self._cached_for = self._extensions.current

    def cached_caller(self, header: str | None) -> Caller | None:
        """The caller of a cached header, or `None`. Raises `Unauthorized` if its token has expired."""
        if self._cached_for is not self._extensions.current:
            self.forget()
        caller = self._cache.get(header or "")
        if caller is not None:
            self._check_lifetime(caller)
        return caller

    def verify(self, header: str | None) -> Credential:
        """Verify `<client id> <JWT>`; raises `Unauthorized` or `Forbidden` with the reason."""
        client_id, token = split_header(header)
        self.check_registered(client_id)
        if self._environment.is_strict:
            claims, grant, production = *self._production_claims(client_id, token), ""
        else:
            try:
                claims, signer = self._verify_token(client_id, token)
            except Unauthorized:
                claims, signer = {}, None
            claims = claims or jwts.decode_unverified(token)
            grant, production = grant_of(claims), self._production_verdict(client_id, token, claims, signer)
            if grant.secret:
                grant = grant._replace(secret="")
            parity.set_verdict(production)
        use = claims.get("use")
        if use == REFRESH_USE:
            raise refusals.refresh_token_as_access()
        pin_token_id = (id_claim(claims, "jti") or "-") if use == PIN_USE else ""
        caller = caller_of(client_id, claims, grant, production)
        if claims.get(HELPER_CLAIM) is True and not self._environment.is_strict:
            caller = replace(caller, expires_at=None)
        if production == parity.UNDECODED_SECRET:
            caller = replace(caller, hint=self._hint_about_key(client_id, token))
        self._check_lifetime(caller)
        if header and len(header) <= _MAX_CACHED_LENGTH and not pin_token_id:
            self._cache[header] = caller
        return Credential(caller, pin_token_id)

    def refresh_claims(self, token: str) -> Mapping[str, Any] | None:
        """The claims of an unexpired refresh token that this service signed; otherwise `None`."""
        signer = None
        with suppress(Unauthorized):
            claims, signer = self._verify_token("", token)
        if signer is None:
            return None
        exp = claims.get("exp")
        alive = isinstance(exp, int) and self._clock.now() < exp * 1000
        return claims if alive and claims.get("use") == REFRESH_USE else None

    def check_receipt(self, client_id: str, receipt: str) -> None:
        """Raise `BadRequest` if a receipt has expired or has a bad signature. The sandbox accepts any receipt."""
        in_production = self._environment.is_strict
        if not in_production and not self._extensions.current:
            return
        with parity.ProductionCheck(parity.RECEIPT, raises=in_production):
            try:
                claims, secret = self._verify_signed(client_id, receipt)
                exp = check_exp(claims)
            except Unauthorized as error:
                raise refusals.unverified_receipt(problem=error.detail) from None
            if not secret:
                raise refusals.unverified_receipt(problem="not signed with a secret of this extension")
            if exp + self._leeway <= self._clock.now():
                raise refusals.expired_receipt()

    def is_admitted(self, client_id: str, grant: Grant) -> bool:
        """Whether a grant is still valid: its secret is registered, and its link has not ended."""
        if not self._environment.is_strict:
            return True
        extension = self._extensions.find(client_id)
        if extension is None or not grant.secret or grant.secret not in self._keys_for(extension).all:
            return False
        return not grant.link or grant.linked_at >= extension.tokens_not_before

    def issue(self, lifetime: int, *, signed_as: str = "", **claims: str | int | None) -> str:
        """Sign a token with a lifetime in ms and these claims; claims that are `None` are left out.

        Where the service verifies tokens, one `signed_as` an extension has that extension's secret: for a call of the
        control API.
        """
        now, key = self._clock.now(), self._service_key.value.encode()
        payload: dict[str, Any] = {name: value for name, value in claims.items() if value is not None}
        payload = {"jti": token_id(), **payload, "iat": now // 1000, "exp": (now + lifetime) // 1000}
        if not self._environment.is_strict:
            payload["allowed_stage"] = SANDBOX_STAGE
        elif extension := self._extensions.find(signed_as):
            key = extension.secrets[0]
        return jwts.sign(payload, key)

    def _check_lifetime(self, caller: Caller) -> None:
        now = self._clock.now()
        if caller.expires_at is not None and caller.expires_at + self._leeway <= now:
            exp, now = caller.expires_at // 1000, now // 1000
            if self._clock.disagrees_about(caller.expires_at + self._leeway):
                raise refusals.expired_by_moved_clock(exp=exp, now=now, lead=self._clock.lead_in_words)
            raise refusals.expired(exp=exp, now=now)
        if caller.not_before - self._leeway > now:
            nbf = caller.not_before // 1000
            if self._clock.disagrees_about(caller.not_before - self._leeway):
                raise refusals.not_valid_yet_by_moved_clock(nbf=nbf, lead=self._clock.lead_in_words)
            raise refusals.not_valid_yet(nbf=nbf)

    def _production_claims(self, client_id: str, token: str) -> tuple[Mapping[str, Any], Grant]:
        """Return the claims that production accepts, and the token's grant. Raises `Unauthorized` or `Forbidden`."""
        try:
            claims, secret = self._verify_signed(client_id, token)
        except Unauthorized:
            if self._environment.has_control:
                give_hint(self._hint_about_key(client_id, token))
            raise
        check_stage(claims)
        if check_lifetime(claims) and client_id not in self._warned_client_ids:
            self._warned_client_ids.add(client_id)
            role = role_of(claims.get("role"))
            _log.warning("%s: a %s token has no exp and never expires; sign tokens with exp", client_id, role)
        check_client_id(claims, client_id)
        return claims, _grant_of_secret(secret) if secret else self._grant_of_own_token(client_id, claims)

    def _production_verdict(self, client_id: str, token: str, claims: Mapping[str, Any], signer: str | None) -> str:
        """Return why production would refuse a token, by the checks that production makes.

        Empty if it would accept the token.
        """
        is_known = bool(self._extensions.current)
        if is_known and self._extensions.find(client_id) is None:
            return parity.REGISTRATION
        if is_known and signer is None:
            return parity.UNDECODED_SECRET if self._hint_about_key(client_id, token) else parity.SIGNATURE
        is_helpers = is_known and signer == "" and claims.get(HELPER_CLAIM) is True
        rule = parity.CLAIMS
        try:
            check_stage(claims, admits_sandbox=is_helpers)
            rule = parity.EXP
            check_lifetime(claims)
            rule = parity.CLAIMS
            check_client_id(claims, client_id)
        except Forbidden:
            return parity.STAGE if is_known else parity.SANDBOX_TOKEN
        except Unauthorized:
            return rule
        return parity.UNVERIFIED if signer is None else ""

    def _hint_about_key(self, client_id: str, token: str) -> str:
        """Say which text of a secret signed a token: a common mistake, as secrets are handed out as base64."""
        extension = self._extensions.find(client_id)
        words = describe_wrong_key(token, extension.secrets) if extension else ""
        return words and f"the token is signed with {words}"

    def _grant_of_own_token(self, client_id: str, claims: Mapping[str, Any]) -> Grant:
        """Check a token that the service signed itself: only the forms that it issues in production are accepted."""
        grant = grant_of(claims)
        if claims.get("extension_id") != client_id or not (
            claims.get("use") in (PIN_USE, REFRESH_USE)
            or (claims.get("role") == Role.BROADCASTER and claims.get("channel_id") and grant.link)
        ):
            raise refusals.never_issued()
        if grant.link and not self.is_admitted(client_id, grant):
            raise refusals.ended_link()
        return grant

    def _verify_signed(self, client_id: str, token: str) -> tuple[Mapping[str, Any], str]:
        """Return the claims, and the fingerprint of the secret; empty if the service signed the token itself."""
        claims, signer = self._verify_token(client_id, token)
        if signer is None:
            raise refusals.bad_signature()
        return claims, signer

    def _verify_token(self, client_id: str, token: str) -> tuple[Mapping[str, Any], str | None]:
        """As `_signed`, but if no key signed the token, has `None` as signer, or raises."""
        keys = self._keys_for(self._extensions.find(client_id))
        return hs256.verify(token, keys.fast) or jwts.verify(token, keys.all)

    def _keys_for(self, extension: Extension | None) -> _VerificationKeys:
        """Return the keys that may have signed an extension's token. `None` stands for an unknown extension."""
        if self._cached_for is not self._extensions.current:
            self.forget()
        client_id = extension.client_id if extension else None
        keys = self._keys_of.get(client_id)
        if keys is None:
            own = self._service_key.value.encode()
            every = {
                hmac.digest(own, b"secret\n" + secret, hashlib.sha256).hex()[:16]: secret
                for secret in (extension.secrets if extension else ())
            }
            every[""] = own
            fast: dict[str, hs256.PreparedKey] = {}
            if all(map(jwts.is_usable_key, every.values())):
                fast = {name: hs256.PreparedKey(key) for name, key in every.items()}
            keys = self._keys_of[client_id] = _VerificationKeys(every, fast)
        return keys

    def check_registered(self, client_id: str) -> None:
        """Raise `Unauthorized` for a client id that this service does not accept."""
        if self._environment.has_control:  # production gives no hints
            notice(NAMED, Key(CLIENT, client_id, client_id))
        if not self._extensions.admits(client_id):
            raise refusals.not_registered(client_id=client_id)
        if not self._environment.is_strict and self._extensions.find(client_id) is None:
            parity.set_verdict(parity.REGISTRATION if self._extensions.current else parity.UNREGISTERED)


@lru_cache(maxsize=1024)
def _grant_of_secret(secret: str) -> Grant:
    """Return the grant of a self-signed token. All cached tokens of a secret share one, to save memory."""
    return Grant(secret)
