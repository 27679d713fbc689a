"""What a server may do with a body, and what becomes of it."""

from __future__ import annotations

import asyncio
import hashlib
import time

import pytest

from tests.integration.research.conftest import Readers, WebSite, article, zipped


async def test_a_page_gives_its_text_and_what_it_says_of_itself(readers: Readers, site: WebSite) -> None:
    head = '<meta property="article:published_time" content="2024-05-06T07:08:09Z">'
    page = article("Moths see ultraviolet light.", head)
    source = await readers.one(site.add("/page", page))
    assert source.error is None
    assert "Moths see ultraviolet light." in source.text
    assert (source.status, source.content_type, source.robots) == (200, "text/html", "allowed")
    assert (source.title, source.language, source.published) == ("Night moths", "en", "2024-05-06")
    assert source.sha256 == hashlib.sha256(page.encode()).hexdigest()


async def test_a_redirect_is_followed_and_reported(readers: Readers, site: WebSite) -> None:
    site.add("/new", article("Moths see ultraviolet light."))
    source = await readers.one(site.redirect("/old", "/new"))
    assert source.final_url == site.url("/new")
    assert source.error is None


async def test_a_redirect_loop_and_a_long_chain_end(readers: Readers, site: WebSite) -> None:
    loop = site.redirect("/a", "/b")
    site.redirect("/b", "/a")
    for number in range(9):
        site.redirect(f"/{number}", f"/{number + 1}")
    first, second = await readers.reader().read([loop, site.url("/0")])
    assert "circle" in (first.error or "")
    assert "more than 5 times" in (second.error or "")
    assert "/6" not in site.paths


async def test_a_body_that_drips_is_given_up(readers: Readers, site: WebSite) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        for _ in range(100):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    site.routes["/drip"] = drip
    started = time.monotonic()
    source = await readers.one(site.url("/drip"), total_timeout_s=0.5)
    assert "no whole answer within 0.5 s" in (source.error or "")
    assert time.monotonic() - started < 2


async def test_a_gzip_bomb_is_cut_off(readers: Readers, site: WebSite) -> None:
    site.add("/bomb", zipped(50_000_000), Content_Encoding="gzip")
    site.add("/small", zipped(5_000), "text/plain", Content_Encoding="gzip")
    site.add("/stacked", zipped(5_000), "text/plain", Content_Encoding="gzip, gzip")
    bomb, small, stacked = await readers.reader().read(
        [site.url("/bomb"), site.url("/small"), site.url("/stacked")]
    )
    assert "larger than 2000000 bytes" in (bomb.error or "")
    assert small.text == "a" * 5_000
    assert "not asked for" in (stacked.error or "")


async def test_a_page_of_five_megabytes_is_not_read_whole(readers: Readers, site: WebSite) -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while sent < 50_000_000:
            writer.write(b"<p>moths</p>" * 5_000)
            await writer.drain()
            sent += 60_000

    site.routes["/endless"] = endless
    declared = site.add("/declared", b"<p>moths</p>" * 420_000)
    first, second = await readers.reader().read([site.url("/endless"), declared])
    assert "larger than" in (first.error or "")
    assert "larger than" in (second.error or "")
    assert sent < 40_000_000


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        ("404 Not Found", "text/html", "404 Not Found"),
        ("503 Service Unavailable", "text/html", "wait 120 s"),
        ("200 OK", "application/pdf", "is application/pdf: only"),
        ("200 OK", "", "no content type"),
        ("200 OK", "image/svg+xml", "image/svg+xml"),
    ],
)
async def test_an_answer_without_a_page_is_told(
    status: str, kind: str, told: str, readers: Readers, site: WebSite
) -> None:
    url = site.add("/x", "nothing to read", kind, status, Retry_After="120")
    source = await readers.one(url)
    assert told in (source.error or "")
    assert source.text == ""
    assert source.status == int(status[:3])


@pytest.mark.parametrize("body", ["", "   \n", "<html><body></body></html>", "<!-- only this -->", "\0\0"])
async def test_an_empty_page_is_an_error(body: str, readers: Readers, site: WebSite) -> None:
    source = await readers.one(site.add("/empty", body))
    assert "no text that can be read" in (source.error or "")


SERBIAN = "Ноћни лептири виде ултраљубичасто светло."


@pytest.mark.parametrize(
    ("codec", "kind", "head"),
    [
        ("utf-8", "text/html; charset=iso-8859-1", ""),
        ("utf-8", "text/html; charset=rot13", ""),
        ("cp1251", "text/html; charset=windows-1251", ""),
        ("cp1251", "text/html", '<meta charset="windows-1251">'),
        ("cp1251", "text/html; charset=no-such-thing", '<meta charset="windows-1251">'),
        ("utf-16", "text/html; charset=utf-8", ""),
    ],
)
async def test_the_charset_is_found(
    codec: str, kind: str, head: str, readers: Readers, site: WebSite
) -> None:
    site.add("/page", article(SERBIAN, head).encode(codec), kind)
    source = await readers.one(site.url("/page"))
    assert SERBIAN in source.text


async def test_nul_and_broken_bytes_leave_text_that_can_be_stored(readers: Readers, site: WebSite) -> None:
    site.add("/page", article("Moths\0 see \ufffe light.").encode() + b"\xff\xfe\xed\xa0\x80", "text/html")
    site.add("/plain", b"Moths\0 \x1b see\xff light.", "text/plain; charset=utf-8")
    page, plain = await readers.reader().read([site.url("/page"), site.url("/plain")])
    assert "Moths see" in page.text
    assert plain.text == "Moths  see\N{REPLACEMENT CHARACTER} light."
    assert not {"\0", "\x1b"} & set(page.text + plain.text)


HIDDEN = [
    "<p style='display : none'>INJECTED</p>", "<p hidden>INJECTED</p>", "<div aria-hidden='TRUE'><p>INJECTED</p></div>",
    "<!-- INJECTED -->", "<script>INJECTED</script>", "<style>INJECTED</style>", "<img src='a.png' alt='INJECTED'>",
    "<p style='font-size:0'>INJECTED</p>", "<p style='color:red;visibility:/**/hidden'>INJECTED</p>",
    "<p style='opacity:0.0'>INJECTED</p>", "<p style='position:absolute;left:-9999px'>INJECTED</p>",
    "<template><p>INJECTED</p></template>", "<noscript><p>INJECTED</p></noscript>",
    "<p>INJ\u200bECTED</p>".replace("INJ", "<span hidden>INJECTED</span>IN"),
    "<script type='application/ld+json'>{\"@type\":\"Article\",\"articleBody\":\"INJECTED\"}</script>",
    "<p title='INJECTED'>A moth.</p>", "<p style='display:none!important'>INJECTED</p>",
]  # fmt: skip


@pytest.mark.parametrize("markup", HIDDEN)
async def test_text_that_is_not_shown_is_not_in_the_text(
    markup: str, readers: Readers, site: WebSite
) -> None:
    seen = "<p style='color:black;opacity:0.9;font-size:0.8em'>Owls are heard, not seen, in this garden.</p>"
    long = article("Moths see light.", extra=markup + " A tail that is shown." + seen)
    site.add("/long", long)
    site.add("/short", f"<html><body><p>Moths see light.</p>{markup}</body></html>")
    for source in await readers.reader().read([site.url("/long"), site.url("/short")]):
        assert "INJECTED" not in source.text
        assert "Moths see light." in source.text
    assert "Owls are heard" in (await readers.one(site.url("/long"))).text


async def test_invisible_characters_are_dropped(readers: Readers, site: WebSite) -> None:
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore")
    source = await readers.one(site.add("/page", article(f"Mo\u200bths\u202e see{tags} light.")))
    assert "Moths see light." in source.text


async def test_the_text_has_a_limit(readers: Readers, site: WebSite) -> None:
    source = await readers.one(site.add("/plain", "moth " * 1000, "text/plain"), max_text_chars=100)
    assert len(source.text) == 100
