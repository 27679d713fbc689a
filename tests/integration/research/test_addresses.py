"""No request reaches an address that is not public, however it is named."""

from __future__ import annotations

import httpx
import pytest

from nightdesk.errors import Permanent
from nightdesk.research.addresses import AddressGuard
from nightdesk.research.transport import GuardedTransport
from tests.integration.research.conftest import Readers, WebSite, article

PRIVATE = [
    "127.0.0.1", "169.254.169.254", "[::1]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "10.0.0.1",
    "100.64.0.1", "192.0.0.8", "198.18.0.1", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[fd00::1]", "0.0.0.0",
    "[2002:7f00:1::]", "[fe80::1]", "224.0.0.1", "127.0.0.1.", "１２７.0.0.1",
]  # fmt: skip


@pytest.mark.parametrize("host", PRIVATE)
async def test_a_private_address_is_refused_directly_and_after_a_redirect(
    host: str, readers: Readers, site: WebSite
) -> None:
    direct = f"http://{host}/secret"
    url = site.redirect("/go", direct)
    first, second = await readers.reader().read([direct, url])
    for source in (first, second):
        assert source.error is not None
        assert source.text == ""
    assert second.final_url in (url, None)
    assert "/secret" not in site.paths


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LOCALHOST", "internal.example"])
async def test_a_name_with_a_private_address_is_refused(host: str, readers: Readers, site: WebSite) -> None:
    async def loopback(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    source = await readers.one(site.redirect("/go", f"http://{host}/secret"), loopback)
    assert "not public" in (source.error or "")


async def test_one_private_address_among_public_ones_refuses_the_name(readers: Readers) -> None:
    async def mixed(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.7"]

    source = await readers.one("http://mixed.example/", mixed)
    assert "10.0.0.7 is not public" in (source.error or "")


@pytest.mark.parametrize(
    "url", ["ftp://news.example/", "file:///etc/passwd", "http://me:pw@news.example/", "http://news.example:22/",
            "news.example", "", "http://", "http://a\\b/", "javascript:alert(1)"],
)  # fmt: skip
async def test_other_forms_are_refused_without_a_request(url: str, readers: Readers, site: WebSite) -> None:
    source = await readers.one(url)
    assert "is not fetched" in (source.error or "")
    assert site.heads == []


class _Wire(httpx.AsyncBaseTransport):
    """Notes where each connection goes."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, object]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append((request.url.host, request.headers["host"], request.extensions["sni_hostname"]))
        return httpx.Response(200)


async def test_a_name_that_is_rebound_is_asked_for_once_and_the_checked_address_is_used() -> None:
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"] if len(asked) == 1 else ["127.0.0.1"]

    wire = _Wire()
    transport = GuardedTransport(AddressGuard({}, rebinding), inner=wire)
    async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
        await client.get("https://rebound.example/a")
        assert asked == ["rebound.example"]
        assert wire.seen == [("93.184.216.34", "rebound.example", "rebound.example")]
        with pytest.raises(Permanent):
            await client.get("https://rebound.example/b")
    assert len(wire.seen) == 1


async def test_an_allowed_loopback_port_does_not_allow_the_next_one(readers: Readers, site: WebSite) -> None:
    site.add("/page", article("A plain sentence about moths."))
    reader = readers.reader(connect_to={site.address: site.address})
    allowed, refused = await reader.read(
        [f"http://{site.address}/page", f"http://127.0.0.1:{site.port + 1}/page"]
    )
    assert allowed.error is None
    assert "not named in `connect_to`" in (refused.error or "")


async def test_proxies_of_the_environment_are_not_used(
    readers: Readers, site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    source = await readers.one(site.add("/page", article("A plain sentence about moths.")))
    assert source.error is None


async def test_host_and_user_agent_are_sent_as_meant(readers: Readers, site: WebSite) -> None:
    await readers.one(site.add("/page", article("A plain sentence about moths.")))
    head = site.heads[-1].lower()
    assert "\r\nhost: news.example\r\n" in head
    assert "user-agent: nightdesk/0.1 (+https://example.org/contact)" in head
