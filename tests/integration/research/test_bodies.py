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


async def test_an_empty_page_is_an_error(readers: Readers, site: WebSite) -> None:
    bodies = ["", "   \n", "<html><body></body></html>", "<!-- only this -->", "\0\0"]
    urls = [site.add(f"/{number}", body) for number, body in enumerate(bodies)]
    for source in await readers.reader().read(urls):
        assert "no text that can be read" in (source.error or "")


async def test_the_charset_of_the_header_is_used(readers: Readers, site: WebSite) -> None:
    sentence = "Ноћни лептири виде ултраљубичасто светло."
    site.add("/page", article(sentence).encode("cp1251"), "text/html; charset=windows-1251")
    assert sentence in (await readers.one(site.url("/page"))).text


async def test_nul_and_broken_bytes_leave_text_that_can_be_stored(readers: Readers, site: WebSite) -> None:
    site.add("/page", article("Moths\0 see \ufffe light.").encode() + b"\xff\xfe\xed\xa0\x80", "text/html")
    site.add("/plain", b"Moths\0 \x1b see\xff light.", "text/plain; charset=utf-8")
    page, plain = await readers.reader().read([site.url("/page"), site.url("/plain")])
    assert "Moths see" in page.text
    assert plain.text == "Moths  see\N{REPLACEMENT CHARACTER} light."
    assert not {"\0", "\x1b"} & set(page.text + plain.text)


async def test_hidden_instructions_are_not_in_the_text(readers: Readers, site: WebSite) -> None:
    hidden = (
        "<p style='display:none'>INJECTED</p><!-- INJECTED --><img src='a.png' alt='INJECTED'>"
        "<script>INJECTED</script><p hidden>INJECTED</p><div aria-hidden='true'>INJECTED</div>"
    )
    source = await readers.one(site.add("/page", article("Moths see light.", extra=hidden)))
    assert "Moths see light." in source.text
    assert "INJECTED" not in repr(source)


async def test_invisible_characters_are_dropped(readers: Readers, site: WebSite) -> None:
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore")
    source = await readers.one(site.add("/page", article(f"Mo\u200bths\u202e see{tags} light.")))
    assert "Moths see light." in source.text


async def test_the_text_has_a_limit(readers: Readers, site: WebSite) -> None:
    source = await readers.one(site.add("/plain", "moth" * 1000, "text/plain"), max_text_chars=100)
    assert len(source.text) == 100
