"""The authority of `extcli serve --tls` vouches for this machine and private networks, and for nothing else."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding

from extcli.running import certificates as authority
from support.authority import STATE, authority_in, trusting


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the authority of this test is kept."""
    monkeypatch.setenv(STATE, str(tmp_path))
    return tmp_path


def names_of(certificate: bytes) -> list[str]:
    """Return the names and addresses of a server's certificate."""
    extensions = x509.load_pem_x509_certificate(certificate).extensions
    found = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(each.value) for each in found]


def forged(name: str) -> bytes:
    """Return a key and a certificate for any name, which a thief signs with the key of the authority."""
    authority.certificate_for("")
    signer = authority._load_authority()
    try:
        general: x509.GeneralName = x509.IPAddress(ip_address(name))
    except ValueError:
        general = x509.DNSName(name)
    key = generate_private_key(SECP256R1())
    extensions = (
        x509.BasicConstraints(False, None), authority._SERVER_KEY_USAGE, x509.SubjectAlternativeName([general]),
    )  # fmt: skip
    certificate = authority._sign_certificate("thief", key, signer, 90, *extensions)
    return authority._private_key_pem(key) + certificate.public_bytes(Encoding.PEM)


def refusal(server: bytes, name: str, state: Path) -> str:
    """Return why a client that trusts the authority refuses a server with this certificate; empty if it does not."""
    file = state / "server.pem"
    file.write_bytes(server)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with theirs, suppress(OSError):  # the client may refuse it
            context.wrap_socket(theirs, server_side=True).close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        trusting(authority_in(state)).wrap_socket(ours, server_hostname=name).close()
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    finally:
        ours.close()
        thread.join()
    return ""


def test_a_strict_client_accepts_the_certificate_for_this_machine(monkeypatch: pytest.MonkeyPatch, state: Path):
    # A strict client accepts the certificate for this machine
    for name in ["localhost", "127.0.0.1", "::1"]:
        assert "" == refusal(authority.certificate_for(""), name, state)

    # A new host name of the machine does not break the certificate
    authority.certificate_for("")
    monkeypatch.setattr(socket, "gethostname", lambda: "renamed-9.example.net")

    assert "" == refusal(authority.certificate_for(""), "localhost", state)


def test_a_stolen_key_vouches_for_private_names_and_for_no_other_site(state: Path):
    # Private names and addresses could be signed
    for name in ["game.localhost", "studio.local", "10.1.2.3", "192.168.1.20", "fd00::1"]:
        assert "" == refusal(forged(name), name, state)

    # A stolen key vouches for no other site
    for name in ["example.com", "localhost.example.com", "notlocal", "203.0.113.7", "2001:db8::7"]:
        assert "permitted subtree violation" == refusal(forged(name), name, state)


@pytest.mark.parametrize(("host", "is_named"), [("studio-7", True), ("pc.example.org", True), ("dev", False)])
def test_a_host_name_that_may_be_a_domain_of_the_internet_is_left_out(
    monkeypatch: pytest.MonkeyPatch, host: str, is_named: bool
):
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    names = names_of(authority.certificate_for(""))

    assert is_named == (host in names)
    assert f"{host.partition('.')[0]}.local" in names


def test_a_host_to_listen_on_is_named_if_it_is_private():
    assert "192.168.7.7" in names_of(authority.certificate_for("192.168.7.7"))
    assert "fd00::7" in names_of(authority.certificate_for("[fd00::7]"))
    assert "stage.local" in names_of(authority.certificate_for("stage.local"))
    assert "203.0.113.7" not in names_of(authority.certificate_for("203.0.113.7"))
    assert "0.0.0.0" not in names_of(authority.certificate_for("0.0.0.0"))


def test_the_certificate_of_a_server_is_valid_for_no_longer_than_apple_allows():
    certificate = x509.load_pem_x509_certificate(authority.certificate_for(""))
    times = certificate.not_valid_after_utc - certificate.not_valid_before_utc

    assert 365 < times.days <= 825
