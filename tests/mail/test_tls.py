"""TLS is what the URL says and nothing less: a server that offers none, or shows another certificate, gets no mail."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast.mail import MailNotSent
from holdfast.mail.addresses import Address
from holdfast.mail.letter import Letter
from holdfast.mail.settings import place
from holdfast.mail.smtp import SmtpCarrier
from tools.mail_server import MailServer

LETTER = Letter(message_id="<1@x>", at=0.0, sender=Address("shop@example.org"), subject="Hi", text="Hi")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """For localhost, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return file


def carrier(server, scheme, *, ca=None, login="", host="localhost"):
    suffix = "" if ca is None else f"?ca={ca}"
    return SmtpCarrier(place(f"{scheme}://{login}{host}:{server.port}{suffix}"), timeout=5)


@pytest.mark.parametrize(("scheme", "kind"), [("smtps", "smtps"), ("smtp+starttls", "starttls")])
async def test_mail_goes_over_tls_with_a_login(certificate, scheme, kind):
    with MailServer(certificate=certificate, tls=kind, login=("shop", "s@fe")) as server:
        await carrier(server, scheme, ca=certificate, login="shop:s%40fe@").carry(LETTER, "ada@example.org")
        assert len(server.taken) == 1
        with pytest.raises(MailNotSent, match="does not let us in: 535") as refused:
            await carrier(server, scheme, ca=certificate, login="shop:geheim@").carry(LETTER, "a@example.org")
        assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(("scheme", "kind"), [("smtps", "smtps"), ("smtp+starttls", "starttls")])
async def test_a_certificate_that_nobody_vouches_for_gets_no_mail(certificate, scheme, kind):
    with MailServer(certificate=certificate, tls=kind) as server:
        with pytest.raises(MailNotSent, match="certificate"):
            await carrier(server, scheme).carry(LETTER, "ada@example.org")
        with pytest.raises(MailNotSent, match=r"127\.0\.0\.1|IP address"):
            await carrier(server, scheme, ca=certificate, host="127.0.0.1").carry(LETTER, "ada@example.org")
        assert server.taken == []


async def test_a_server_without_starttls_gets_no_mail(certificate):
    """Nobody in between can talk us out of it."""
    with MailServer() as server:
        with pytest.raises(MailNotSent):
            await carrier(server, "smtp+starttls", ca=certificate).carry(LETTER, "ada@example.org")
        assert server.taken == []
