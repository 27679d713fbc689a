from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from nightdesk.errors import Permanent
from nightdesk.languages import LANGUAGES
from nightdesk.publishing import documents
from nightdesk.publishing.documents import Imprint
from nightdesk.publishing.port import Page, content_sha256, marker_comment
from nightdesk.publishing.records import Record
from tests.contract.sites import a_page

SITE = Imprint("Night & Day", "https://example.org/n", "A <small> paper")
ATOM = "{http://www.w3.org/2005/Atom}"
NASTY = "</script><!--]]>&amp;<b>\"'{{ 7*7 }}\ufffe\uffff\x00\x1b\x85\ud800\u2028\r\n"
texts = st.text() | st.text(alphabet=NASTY)
titles = texts.map(lambda text: "T" + text)


def record(page: Page, slug: str = "night-trains") -> Record:
    return Record.of(documents.cleaned(page), slug, content_sha256(page), placed=True)


def html_of(site: Imprint = SITE, **changes: object) -> LexborHTMLParser:
    page = documents.cleaned(a_page(**changes))  # type: ignore[arg-type]
    return LexborHTMLParser(documents.article_page(page, "night-trains", site))


def attribute(tree: LexborHTMLParser, selector: str, name: str) -> str | None:
    (node,) = tree.css(selector)
    return node.attributes[name]


@settings(deadline=None)
@given(title=titles, excerpt=texts)
def test_sitemap_and_feed_are_well_formed_whatever_the_text(title: str, excerpt: str) -> None:
    records = [record(a_page(title=title, excerpt=excerpt))]
    ET.fromstring(documents.sitemap(records, SITE).encode())
    feed = ET.fromstring(documents.feed(records, SITE).encode())
    shown = feed.findtext(f"{ATOM}entry/{ATOM}title")
    assert shown == records[0].title


@settings(deadline=None)
@given(title=titles, body=texts, description=texts)
def test_a_page_is_one_article_whatever_the_text(title: str, body: str, description: str) -> None:
    page = documents.cleaned(a_page(title=title, markdown=body, meta_description=description))
    html = documents.article_page(page, "night-trains", SITE)
    assert html.count("<!-- nightdesk:") == html.count(marker_comment(page.marker)) == 1
    tree = LexborHTMLParser(html.encode())
    (heading,) = tree.css("h1")
    assert heading.text() == page.title
    (script,) = tree.css("script")
    assert json.loads(script.text())["headline"] == page.title
    assert len(tree.css("main > article > .prose")) == 1
    assert len(tree.css("body > footer")) == 1


def test_a_page_says_what_it_is_to_machines() -> None:
    tree = html_of(updated_at=datetime(2026, 12, 2, 8, 0, tzinfo=UTC))
    url = "https://example.org/n/night-trains/"
    assert attribute(tree, "html", "lang") == "en"
    assert attribute(tree, "html", "dir") == "ltr"
    assert attribute(tree, "link[rel=canonical]", "href") == url
    assert attribute(tree, "meta[name=description]", "content") == ("Why night trains come back to Europe.")
    assert attribute(tree, "meta[property='og:title']", "content") == "Night trains"
    assert attribute(tree, "meta[property='og:url']", "content") == url
    assert attribute(tree, "link[type='application/atom+xml']", "href") == ("https://example.org/n/feed.xml")
    (script,) = tree.css("script[type='application/ld+json']")
    article = json.loads(script.text())
    assert article["@type"] == "Article"
    assert article["datePublished"] == "2026-11-30T22:15:00Z"
    assert article["dateModified"] == "2026-12-02T08:00:00Z"
    times = [node.attributes["datetime"] for node in tree.css("time")]
    assert times == ["2026-11-30T22:15:00Z", "2026-12-02T08:00:00Z"]


def test_the_excerpt_stands_in_for_a_missing_description() -> None:
    tree = html_of(meta_description=" ")
    assert attribute(tree, "meta[name=description]", "content") == "Why they come back."


def test_dates_are_shown_in_utc() -> None:
    tree = html_of(published_at=datetime(2026, 12, 1, 0, 30, tzinfo=timezone(timedelta(hours=2))))
    assert tree.css("time")[0].attributes["datetime"] == "2026-11-30T22:30:00Z"


def test_a_page_asks_no_other_server_for_anything() -> None:
    tree = html_of(markdown="![x](https://elsewhere.example/x.png) <iframe src=//e.example>")
    assert [node.attributes["href"] for node in tree.css("link[rel=stylesheet]")] == ["../style.css"]
    assert not tree.css("img, iframe, script[src], object, embed")
    assert "url(" not in documents.stylesheet()
    assert "@import" not in documents.stylesheet()


def test_a_page_has_landmarks_and_a_way_past_the_header() -> None:
    tree = html_of()
    assert len(tree.css("body > header")) == len(tree.css("body > main#content")) == 1
    assert attribute(tree, "a.skip", "href") == "#content"
    assert [node.tag for node in tree.css("h1, h2, h3")] == ["h1", "h2"]


@pytest.mark.parametrize("tag", sorted(LANGUAGES))
def test_the_footer_says_how_it_was_made_in_the_language_of_the_article(tag: str) -> None:
    language = LANGUAGES[tag]
    footers = {
        html_of(language=language).css("footer")[0].text(),
        html_of().css("footer")[0].text(),
    }
    assert len(footers) == (1 if tag == "en" else 2)


def test_the_footer_can_be_replaced_or_left_out() -> None:
    own = Imprint("N", "https://example.org", made_by="By <Ana> and a machine")
    assert "By <Ana> and a machine" in html_of(own).css("footer")[0].text()
    none = Imprint("N", "https://example.org", made_by="")
    assert len(html_of(none).css("footer p")) == 1


def test_the_front_page_lists_the_newest_first_in_their_own_languages() -> None:
    day = datetime(2026, 11, 1, tzinfo=UTC)
    records = [
        record(
            a_page(title=f"No. {n}", published_at=day + timedelta(days=n), language=language),
            f"n-{n}",
        )
        for n, language in enumerate(LANGUAGES.values())
    ]
    tree = LexborHTMLParser(documents.front_page(records, SITE))
    assert [node.text() for node in tree.css("article h2")] == ["No. 3", "No. 2", "No. 1", "No. 0"]
    assert [node.attributes["lang"] for node in tree.css("article")] == list(LANGUAGES)[::-1]
    assert next(node.attributes["href"] for node in tree.css("h2 a")) == "n-3/"


def test_an_empty_site_has_lists_too() -> None:
    assert "Nothing has been published" in documents.front_page([], SITE)
    assert len(ET.fromstring(documents.sitemap([], SITE).encode())) == 1
    assert not ET.fromstring(documents.feed([], SITE).encode()).findall(f"{ATOM}entry")


def test_the_feed_ends_after_fifty_articles_and_the_sitemap_does_not() -> None:
    records = [record(a_page(), f"n-{n}") for n in range(60)]
    assert len(ET.fromstring(documents.feed(records, SITE)).findall(f"{ATOM}entry")) == 50
    assert len(ET.fromstring(documents.sitemap(records, SITE))) == 61


def test_an_article_without_a_title_is_refused_for_good() -> None:
    with pytest.raises(Permanent, match="has no title"):
        documents.cleaned(a_page(title=" \x00\ufffe\n"))


def test_a_date_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        a_page(published_at=datetime(2026, 11, 30))


def test_the_hash_follows_the_content_and_not_the_dates() -> None:
    marker: UUID = uuid4()
    page = a_page(marker)
    assert content_sha256(page) == content_sha256(
        a_page(marker, slug="x", updated_at=datetime(2027, 1, 1, tzinfo=UTC))
    )
    for changed in ("title", "excerpt", "meta_description", "markdown"):
        assert content_sha256(page) != content_sha256(a_page(marker, **{changed: "other"}))
