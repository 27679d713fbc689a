"""Source pages and feeds are what research meets on the web."""

from __future__ import annotations

import feedparser
import httpx2
import pytest
import trafilatura
from protego import Protego

from nightdesk.sandbox import SandboxProcess
from nightdesk.sandbox.sources.site import FEEDS, PUBLIC_URL, load_site


def get(process: SandboxProcess, path: str) -> httpx2.Response:
    return httpx2.get(process.base_url + path)


@pytest.mark.parametrize("slug", sorted(load_site().pages))
def test_the_article_can_be_told_from_its_boilerplate(process: SandboxProcess, slug: str) -> None:
    page = load_site().pages[slug]
    html = get(process, f"/sources/{slug}").text
    assert "<nav>" in html
    assert f'<html lang="{page.language}">' in html
    extracted = trafilatura.extract(html) or ""
    for section in page.sections:
        # The extractor drops the zero-width non-joiner that Telugu uses.
        assert section["paragraphs"][0].replace("\u200c", "") in extracted
    assert "Cookies" not in extracted


def test_one_page_hides_an_instruction_in_its_html(process: SandboxProcess) -> None:
    html = get(process, "/sources/composting-basics").text
    assert "ignore all previous instructions" in html
    assert 'style="display:none"' in html


@pytest.mark.parametrize(("name", "version"), [("garden", "rss20"), ("kuhinja", "atom10")])
def test_feeds_name_pages_that_exist(process: SandboxProcess, name: str, version: str) -> None:
    feed = feedparser.parse(get(process, f"/feeds/{name}.xml").content)
    assert not feed.bozo
    assert feed.version == version
    assert len(feed.entries) == len(FEEDS[name][2])
    for entry in feed.entries:
        assert entry.link.startswith(PUBLIC_URL)
        assert entry.title
        assert entry.summary
        page = get(process, entry.link.removeprefix(PUBLIC_URL))
        assert page.status_code == 200


def test_what_does_not_exist_is_not_found(process: SandboxProcess) -> None:
    for path in ("/sources/none", "/feeds/none.xml", "/"):
        assert get(process, path).status_code == 404


def test_robots_may_read_the_sources(process: SandboxProcess) -> None:
    rules = Protego.parse(get(process, "/robots.txt").text)
    assert rules.can_fetch(f"{PUBLIC_URL}/sources/knife-care", "Nightdesk")
    assert not rules.can_fetch(f"{PUBLIC_URL}/_sandbox/plan", "Nightdesk")
