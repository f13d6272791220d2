"""The certificate of `extcli serve`: from files of the user, or its own; and how browsers come to trust that one.

The own one is signed at each start by an authority of this user, which is made once. Its name constraints permit only
this machine and private networks, so a stolen key cannot vouch for other sites.
Imported only by a start with TLS: `cryptography` takes a while.
"""

from __future__ import annotations

import re
import socket
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import filelock
import psutil
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from emulator.contract.shell import quote_word
from extcli import atomic_file, clock
from extcli.api.connection import addresses_of, authority
from extcli.errors import UsageError

_AUTHORITY_DAYS, _SERVER_DAYS = 3_652, 825
"""Apple's systems refuse a server's certificate that is valid for longer."""
_PRIVATE_NETWORKS = "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 ::1/128 fc00::/7 fe80::/10"
_PRIVATE_DOMAINS = ("localhost", "local")
"""Permitted with all names below them. The Internet has none of them."""
_HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*")
_MAY_BE_PUBLIC = re.compile(r"[a-z]+|xn--.*")
"""Host names that may also be a domain of the Internet, such as `dev`; permitted, they would cover its sites."""
_AUTHORITY_KEY_USAGE = x509.KeyUsage(False, False, False, False, False, True, False, False, False)
_SERVER_KEY_USAGE = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
_TRUST_COMMANDS = {
    "darwin": "security add-trusted-cert -k ~/Library/Keychains/login.keychain-db",
    "win32": "certutil -user -addstore Root",
}
"""The beginning of the command that makes browsers trust an authority, by system."""
_CHROMIUM_TRUST_COMMAND = 'mkdir -p ~/.pki/nssdb; certutil -d "sql:$HOME/.pki/nssdb" -A -t C,, -n extcli -i'
"""The same for Chromium on all other systems. Without the folder, certutil makes no database."""


def tls_context_from_files(certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Return the context of a server with this certificate and key. Raises `UsageError`."""
    if certificate is None or key is None:
        given, missing = ("--tls-key", "--tls-cert") if certificate is None else ("--tls-cert", "--tls-key")
        raise UsageError(f"{given} {certificate or key}: needs {missing} too")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load_pem("--tls-cert", certificate, context.load_verify_locations, "is not a certificate in PEM format")
    # Without a password, OpenSSL would ask for one on the terminal.
    _load_pem(
        "--tls-key",
        key,
        lambda file: context.load_cert_chain(certificate, file, ""),
        "is not an unencrypted key in PEM format",
    )
    return context


def _load_pem(option: str, file: Path, load: Callable[[Path], object], otherwise: str) -> None:
    try:
        load(file)
    except ssl.SSLError as error:
        is_other = error.reason == "KEY_VALUES_MISMATCH"
        raise UsageError(f"{option} {file}: {'is not the key of --tls-cert' if is_other else otherwise}") from None
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from None


def own_tls_context(host: str) -> ssl.SSLContext:
    """Return the context of a server with a new certificate for the host that it listens on. Raises `UsageError`."""
    folder = authority().parent
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        text = certificate_for(host)
        with TemporaryDirectory(dir=folder) as private:
            file = Path(private, "server.pem")  # OpenSSL reads from files only
            file.write_bytes(text)
            context.load_cert_chain(file)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise UsageError(f"--tls: cannot use {folder}: {cause}; repair or delete it, or use --tls-cert") from None
    return context


def trust_advice() -> str:
    """Return lines that say how browsers of this user come to trust the authority."""
    file = str(authority())
    command = f"{_TRUST_COMMANDS.get(sys.platform, _CHROMIUM_TRUST_COMMAND)} {quote_word(file)}"
    return f"certificate authority: {file}\nto trust it in a browser, run once: {command}\n"


class _Authority(NamedTuple):
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
        signer = _load_authority() or _create_authority()
    names = list(_permitted_names(_host_names(host), signer.certificate))
    key = generate_private_key(SECP256R1())
    extensions = x509.BasicConstraints(False, None), _SERVER_KEY_USAGE, x509.SubjectAlternativeName(names)
    certificate = _sign_certificate("extcli serve", key, signer, _SERVER_DAYS, *extensions)
    return _private_key_pem(key) + certificate.public_bytes(Encoding.PEM)


def _load_authority() -> _Authority | None:
    """Return the authority of this user; `None` if there is none, or if its time is over."""
    file = authority()
    if not file.exists():
        return None
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    key = load_pem_private_key(file.with_name("authority-key.pem").read_bytes(), None)
    if not isinstance(key, EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise ValueError("the key does not belong to the certificate")
    return _Authority(certificate, key) if certificate.not_valid_after_utc > _now() else None


def _create_authority() -> _Authority:
    """Make an authority and keep it, the certificate last: it means that both are there."""
    name = socket.gethostname().lower()
    is_own = _HOST_NAME.fullmatch(name) and not _MAY_BE_PUBLIC.fullmatch(name)
    names = map(x509.DNSName, (*_PRIVATE_DOMAINS, name) if is_own else _PRIVATE_DOMAINS)
    networks = [x509.IPAddress(ip_network(each)) for each in _PRIVATE_NETWORKS.split()]
    constraints = x509.NameConstraints([*names, *networks], None)
    key, file = generate_private_key(SECP256R1()), authority()
    extensions = x509.BasicConstraints(True, 0), _AUTHORITY_KEY_USAGE, constraints
    certificate = _sign_certificate("extcli local authority", key, None, _AUTHORITY_DAYS, *extensions)
    atomic_file.replace_text(file.with_name("authority-key.pem"), _private_key_pem(key).decode(), keep_mode=False)
    atomic_file.replace_text(file, certificate.public_bytes(Encoding.PEM).decode(), keep_mode=False)
    return _Authority(certificate, key)


def _sign_certificate(
    name: str, key: EllipticCurvePrivateKey, signer: _Authority | None, days: int, *critical: x509.ExtensionType
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


def _private_key_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _now() -> datetime:
    return datetime.fromtimestamp(clock.now() // 1000, UTC)


def _host_names(host: str) -> Iterator[str]:
    """Yield the names and addresses of this machine, and those of a host to listen on."""
    own, host = socket.gethostname().lower(), host.lower().strip("[]")
    yield from ("localhost", "*.localhost", "127.0.0.1", "::1")
    yield from filter(_HOST_NAME.fullmatch, (own, f"{own.partition('.')[0]}.local", host))
    found = addresses_of(host)
    yield from found
    if any(ip_address(each).is_unspecified for each in found):  # it listens on all addresses
        for each in chain.from_iterable(psutil.net_if_addrs().values()):
            if each.family in (socket.AF_INET, socket.AF_INET6):
                yield each.address.partition("%")[0]


def _permitted_names(names: Iterable[str], certificate: x509.Certificate) -> Iterator[x509.GeneralName]:
    """Yield each of the names and addresses that the authority with this certificate may vouch for."""
    subtrees = certificate.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees or []
    domains = [each.value for each in subtrees if isinstance(each, x509.DNSName)]
    networks = [ip_network(str(each.value)) for each in subtrees if isinstance(each, x509.IPAddress)]
    for name in dict.fromkeys(names):
        try:
            address = ip_address(name)
        except ValueError:
            if any(f".{name}".endswith(f".{each}") for each in domains):
                yield x509.DNSName(name)
        else:
            if any(address in each for each in networks):
                yield x509.IPAddress(address)
