"""A pinned connection still checks the certificate for the name."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nightdesk.research import FetchPolicy, SourceReader
from tests.integration.research.conftest import WebSite, article


def _certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "news.example")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("news.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / "pair.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[tuple[WebSite, ssl.SSLContext, list[str]]]:
    path = _certificate(tmp_path)
    names: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.sni_callback = lambda _socket, name, _context: names.append(name)  # type: ignore[assignment]
    site = WebSite()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context)
    site.port = server.sockets[0].getsockname()[1]
    yield site, ssl.create_default_context(cafile=str(path)), names
    server.close()


async def test_the_name_is_sent_and_checked(secure: tuple[WebSite, ssl.SSLContext, list[str]]) -> None:
    site, trusted, names = secure
    site.add("/page", article("A plain sentence about moths."))
    connect_to = {"news.example": site.address, "other.example": site.address}
    reader = SourceReader(FetchPolicy("Nightdesk/0.1", connect_to, per_host_delay_s=0), verify=trusted)
    good, bad = await reader.read(["https://news.example/page", "https://other.example/page"])
    await reader.aclose()
    assert good.error is None
    assert "plain sentence" in good.text
    assert "certificate" in (bad.error or "").lower()
    assert {"news.example", "other.example"} == set(names)
