"""Feeds, robots.txt, politeness, and many sources at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.research.conftest import Readers, WebSite, article

FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>Garden</title><language>en-gb</language>
<item><title>First</title><link>/one</link><pubDate>Mon, 06 May 2024 07:08:09 +0200</pubDate>
<description>&lt;p&gt;About moths&lt;/p&gt;&lt;p hidden&gt;INJECTED&lt;/p&gt;</description></item>
<item><title>Second</title><link>http://news.example/two</link></item>
<item><title>Again</title><link>/one</link></item>
<item><title>Script</title><link>http://127.0.0.1/secret</link></item>
<item><title>Fourth</title><link>/four</link></item></channel></rss>"""


@pytest.mark.parametrize("kind", ["application/rss+xml", "text/xml; charset=utf-8", "text/html"])
async def test_a_feed_gives_itself_and_its_first_articles(kind: str, readers: Readers, site: WebSite) -> None:
    site.add("/one", article("The first article is about moths."))
    feed = site.add("/feed", FEED, kind)
    found = await readers.reader().read([feed, site.url("/two")])
    assert [source.url for source in found] == [
        feed, site.url("/one"), "http://127.0.0.1/secret", site.url("/two"),
    ]  # fmt: skip
    about, first, secret, second = found
    assert (about.error, about.title, about.language, about.via_feed) == (None, "Garden", "en-gb", None)
    assert "About moths" in about.text
    assert "INJECTED" not in about.text
    assert "The first article" in first.text
    assert first.via_feed == secret.via_feed == feed
    assert first.published == "2024-05-06T05:08:09Z"
    assert "not public" in (secret.error or "")
    assert second.via_feed is None
    assert "404" in (second.error or "")


async def test_links_are_relative_to_where_the_feed_was_found(readers: Readers, site: WebSite) -> None:
    atom = (
        '<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title><entry><title>E</title>'
        '<link href="post"/></entry></feed>'
    )
    site.add("/blog/atom", atom, "application/atom+xml")
    site.add("/blog/post", article("Relative links are resolved."))
    _, post = await readers.reader().read([site.redirect("/feed", "/blog/atom")])
    assert post.url == site.url("/blog/post")
    assert post.error is None


async def test_entities_of_a_feed_neither_grow_nor_read_files(
    readers: Readers, site: WebSite, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("TOP-SECRET")
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(12))
    doctype = f'<!DOCTYPE rss [<!ENTITY l0 "ha">{laughs}<!ENTITY f SYSTEM "file://{secret}">]>'
    item = "<item><title>&l12;&f;</title><link>/one</link></item>"
    site.add("/feed", f'<?xml version="1.0"?>{doctype}<rss><channel>{item}</channel></rss>', "text/xml")
    site.add("/name", str(secret), "application/rss+xml")
    found = await readers.reader(extract_timeout_s=5).read([site.url("/feed"), site.url("/name")])
    assert all("TOP-SECRET" not in repr(source) for source in found)
    assert all(len(source.text) < 1000 for source in found)
    assert found[-1].error is not None


async def test_robots_rules_for_our_name_are_kept(readers: Readers, site: WebSite) -> None:
    site.add(
        "/robots.txt",
        "User-agent: *\nDisallow: /\n\nUser-agent: nightdesk\nDisallow: /private\n",
        "text/plain",
    )
    for path in ("/open", "/private/page", "/private/other"):
        site.add(path, "Moths see light.", "text/plain")
    site.redirect("/sneaky", "/private/other")
    found = await readers.reader().read([site.url(path) for path in ("/open", "/private/page", "/sneaky")])
    assert [source.robots for source in found] == ["allowed", "disallowed", "disallowed"]
    assert [source.error is None for source in found] == [True, False, False]
    assert "robots.txt of news.example does not allow Nightdesk" in (found[1].error or "")
    assert site.paths.count("/robots.txt") == 1
    assert not {"/private/page", "/private/other"} & set(site.paths)


@pytest.mark.parametrize(
    ("status", "allowed"), [("404 X", True), ("403 X", True), ("500 X", False), ("503 X", False)]
)
async def test_an_answer_without_rules_allows_or_forbids_as_rfc_9309_says(
    status: str, allowed: bool, readers: Readers, site: WebSite
) -> None:
    site.add("/robots.txt", status=status)
    source = await readers.one(site.add("/page", "Moths see light.", "text/plain"))
    assert (source.error is None) is allowed
    assert source.robots == ("allowed" if allowed else "disallowed")


async def test_every_further_request_to_a_host_waits(readers: Readers, site: WebSite) -> None:
    urls = [site.add(f"/{number}", status="404 Not Found") for number in range(3)]
    await readers.reader(per_host_delay_s=1.5).read(urls)
    assert readers.slept == [1.5] * 3  # robots.txt was the first request


async def test_order_is_kept_duplicates_go_and_failures_stay_alone(readers: Readers, site: WebSite) -> None:
    good = site.add("/good", "Moths see light.", "text/plain")
    urls = ["nonsense", good, "http://nowhere.example/", good, site.url("/missing"), "http://[", "\ud800"]
    found = await readers.reader().read(urls)
    assert [source.url for source in found] == list(dict.fromkeys(urls))
    assert [source.error is None for source in found] == [False, True, False, False, False, False]
    assert all("\n" not in (source.error or "") for source in found)
    assert await readers.reader().read([]) == []


async def test_a_server_that_is_gone_or_speaks_nonsense_is_told(readers: Readers, site: WebSite) -> None:
    site.routes["/nonsense"] = b"\x00\x01 not http\r\n\r\n"
    site.routes["/cut"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nabc"
    gone = {"gone.example": "127.0.0.1:1"}
    found = await readers.reader(connect_to=gone).read(
        ["http://gone.example/", site.url("/nonsense"), site.url("/cut")]
    )
    assert all(source.error for source in found)
    assert found[0].robots == "disallowed"
