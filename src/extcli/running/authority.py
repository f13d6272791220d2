"""An authority of this user, made once, which signs a certificate for each start of `extcli serve --tls`.

Its name constraints permit only this machine and private networks, so a stolen key cannot vouch for other sites.
Imported only to sign a certificate: `cryptography` takes a while.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import NamedTuple

import filelock
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from extcli import atomic_file, clock
from extcli.api.trust import authority

_AUTHORITY_DAYS, _SERVER_DAYS = 3_652, 825
"""Apple's systems refuse a server's certificate that is valid for longer."""
_NETWORKS = "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 ::1/128 fc00::/7 fe80::/10"
_DOMAINS = ("localhost", "local")
"""Permitted with all names below them. The Internet has none of them."""
_LOCAL = ("localhost", "*.localhost", "127.0.0.1", "::1")
_HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*")
_TOP_LEVEL = re.compile(r"[a-z]+|xn--.*")
"""Host names that may also be a domain of the Internet, such as `dev`; permitted, they would cover its sites."""
_SIGNS_CERTIFICATES = x509.KeyUsage(False, False, False, False, False, True, False, False, False)
_SIGNS_HANDSHAKES = x509.KeyUsage(True, False, False, False, False, False, False, False, False)


class _Signer(NamedTuple):
    """The authority."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey


def certificate_for(host: str) -> bytes:
    """Return a new key and its certificate, for this machine and for a host that a server listens on.

    Makes the authority first if there is none. Raises `OSError`, and `ValueError` for damaged files.
    """
    file = authority()
    file.parent.mkdir(0o700, parents=True, exist_ok=True)
    with filelock.FileLock(file.with_name("lock"), timeout=10):
        signer = _kept() or _made()
    permitted = signer.certificate.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees
    names = [each for each in map(_general_name, dict.fromkeys(_names(host))) if _is_among(each, permitted or [])]
    key = generate_private_key(SECP256R1())
    extensions = x509.BasicConstraints(False, None), _SIGNS_HANDSHAKES
    certificate = _signed("extcli serve", key, signer, _SERVER_DAYS, *extensions, x509.SubjectAlternativeName(names))
    return _text(key) + certificate.public_bytes(Encoding.PEM)


def _kept() -> _Signer | None:
    """Return the authority of this user; `None` if there is none, or if its time is over."""
    file = authority()
    if not file.exists():
        return None
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    key = load_pem_private_key(file.with_name("authority-key.pem").read_bytes(), None)
    if not isinstance(key, EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise ValueError("the key is not the one of the certificate")
    return _Signer(certificate, key) if certificate.not_valid_after_utc > _now() else None


def _made() -> _Signer:
    """Make an authority and keep it, the certificate last: it means that both are there."""
    name = socket.gethostname().lower()
    is_own = _HOST_NAME.fullmatch(name) and not _TOP_LEVEL.fullmatch(name)
    names = map(x509.DNSName, (*_DOMAINS, name) if is_own else _DOMAINS)
    networks = [x509.IPAddress(ip_network(each)) for each in _NETWORKS.split()]
    constraints = x509.NameConstraints([*names, *networks], None)
    key, file = generate_private_key(SECP256R1()), authority()
    extensions = x509.BasicConstraints(True, 0), _SIGNS_CERTIFICATES, constraints
    certificate = _signed("extcli local authority", key, None, _AUTHORITY_DAYS, *extensions)
    atomic_file.replace(file.with_name("authority-key.pem"), _text(key).decode(), keep_mode=False)
    atomic_file.replace(file, certificate.public_bytes(Encoding.PEM).decode(), keep_mode=False)
    return _Signer(certificate, key)


def _signed(
    name: str, key: EllipticCurvePrivateKey, signer: _Signer | None, days: int, *critical: x509.ExtensionType
) -> x509.Certificate:
    """Return a certificate of a server's key, or without a signer, of an authority's key by itself."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate, signing_key = signer or (None, key)
    own, issuer = key.public_key(), signing_key.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(certificate.subject if certificate else subject)
        .public_key(own)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - timedelta(days=1))  # some clients' clocks are late
        .not_valid_after(_now() + timedelta(days=days - 1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), False)
    )
    for extension in critical:
        builder = builder.add_extension(extension, True)
    return builder.sign(signing_key, hashes.SHA256())


def _text(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _now() -> datetime:
    return datetime.fromtimestamp(clock.now() // 1000, UTC)


def _names(host: str) -> Iterator[str]:
    """Yield the names and addresses of this machine, and those of a host to listen on."""
    own, host = socket.gethostname().lower(), host.lower().strip("[]")
    yield from _LOCAL
    yield from filter(_HOST_NAME.fullmatch, (own, f"{own.partition('.')[0]}.local", host))
    found = _addresses(host) if host else []
    yield from found
    if any(ip_address(each).is_unspecified for each in found):  # it listens on all addresses
        yield from _addresses(own)
        # A route to an address elsewhere begins at an address of this machine.
        for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
            with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))  # which sends nothing
                yield probe.getsockname()[0]


def _addresses(name: str) -> list[str]:
    with suppress(OSError, UnicodeError):
        return [str(each[4][0]).partition("%")[0] for each in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    return []


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _is_among(name: x509.GeneralName, permitted: list[x509.GeneralName]) -> bool:
    """Whether the permitted domains and networks have this name or address."""
    if isinstance(name, x509.IPAddress):
        networks = [ip_network(str(each.value)) for each in permitted if isinstance(each, x509.IPAddress)]
        return any(ip_address(str(name.value)) in each for each in networks)
    return any(f".{name.value}".endswith(f".{each.value}") for each in permitted)
