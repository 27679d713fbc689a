"""What every kind of site promises to the publish phase."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from nightdesk.languages import LANGUAGES
from nightdesk.publishing.port import Page, Placement, Site, content_sha256
from nightdesk.publishing.slugs import make_slug
from tests.contract.faulty import FAULTS, FaultyServer, faulty_server
from tests.contract.sites import FACTORIES, NewSite, a_page

TITLES = {
    "telugu": ("te", "కృత్రిమ మేధస్సు అంటే ఏమిటి?"),
    "serbian-cyrillic": ("sr-Cyrl", "Шта је вештачка интелигенција?"),
    "serbian-latin": ("sr-Latn", "Šta je veštačka inteligencija?"),
    "chinese": ("en", "人工智能是什么"),
    "300-characters": ("en", ("A title that goes on and on " * 11)[:300].strip()),
    "emoji": ("en", "Night trains 🚆 return"),
    "emoji-only": ("en", "🚆🌙"),
    "quotes": ("en", "\"Night\" & 'day' <b>trains</b> </title>"),
    "script": ("en", "</script><script>alert(1)</script><!-- x -->"),
    "punctuation-only": ("en", "?!…"),
    "number": ("en", "2026"),
    "reserved": ("en", "Feed"),
    "template": ("en", "{{ 7 * 7 }} {% raw %}"),
    "backslash": ("en", r"C:\new\table \u0041"),
}
MARKER = UUID("11111111-2222-4333-8444-555555555555")


@pytest.fixture(scope="module", params=sorted(FACTORIES))
def new_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewSite]:
    with FACTORIES[request.param](tmp_path_factory.mktemp("sites")) as new_site:
        yield new_site


@pytest.fixture
def site(new_site: NewSite) -> Site:
    return new_site()


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with faulty_server(MARKER) as server:
        yield server


async def fetched(url: str) -> str:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(url)
    assert answer.status_code == 200
    return answer.text


async def test_an_empty_site_passes_preflight_more_than_once(site: Site) -> None:
    await site.preflight()
    await site.preflight()


async def test_an_unknown_article_is_not_found(site: Site) -> None:
    assert await site.find(uuid4()) is None
    await site.publish(a_page())
    assert await site.find(uuid4()) is None


async def test_what_was_published_is_found_at_the_same_place(site: Site) -> None:
    page = a_page()
    placement = await site.publish(page)
    assert await site.find(page.marker) == placement
    assert placement.content_sha256 == content_sha256(page)
    assert placement.url.startswith(site.base_url)


async def test_what_was_published_is_live_for_an_anonymous_visitor(site: Site) -> None:
    page = a_page()
    placement = await site.publish(page)
    verification = await site.verify(placement, page.marker)
    assert verification.problem is None
    assert verification.ok
    assert verification.status == 200
    assert verification.url == placement.url


async def test_publishing_twice_gives_one_page_with_one_address(site: Site) -> None:
    page = a_page()
    first = await site.publish(page)
    assert await site.publish(page) == first
    # A second page would have been given the next slug.
    other = await site.publish(a_page())
    assert other.slug == f"{first.slug}-2"
    assert (await site.publish(page)).url == first.url


async def test_an_update_changes_the_text_and_keeps_the_address(site: Site) -> None:
    page = a_page()
    first = await site.publish(page)
    changed = replace(page, slug="quite-another", title="Sleeper trains", markdown="All new.")
    second = await site.publish(changed)
    assert second.url == first.url
    assert second.external_id == first.external_id
    assert second.content_sha256 != first.content_sha256
    html = await fetched(second.url)
    assert "All new." in html
    assert "Sleeper trains" in html
    assert "come back" not in html.split("<h1")[1]
    assert (await site.verify(second, page.marker)).ok
    assert await site.find(page.marker) == second


async def test_two_articles_with_one_title_get_two_addresses(site: Site) -> None:
    first, second = a_page(), a_page()
    places = [await site.publish(first), await site.publish(second)]
    assert places[0].url != places[1].url
    assert (await site.verify(places[0], first.marker)).ok
    assert (await site.verify(places[1], second.marker)).ok
    assert not (await site.verify(places[0], second.marker)).ok


async def test_articles_published_at_the_same_time_do_not_disturb_each_other(site: Site) -> None:
    pages = [a_page() for _ in range(6)]
    places = await asyncio.gather(*(site.publish(page) for page in [*pages, *pages]))
    assert len({place.url for place in places}) == len(pages)
    assert places[:6] == places[6:]
    for page, place in zip(pages, places[:6], strict=True):
        assert (await site.verify(place, page.marker)).ok


@pytest.mark.parametrize("name", sorted(TITLES))
async def test_every_title_is_shown_as_it_was_written(site: Site, name: str) -> None:
    tag, title = TITLES[name]
    page = a_page(language=LANGUAGES[tag], title=title, excerpt=title, meta_description=title)
    slug = make_slug(title, page.language, fallback=f"article-{page.marker.hex[:8]}")
    placement = await site.publish(replace(page, slug=slug))
    assert placement.slug == slug
    assert (await site.verify(placement, page.marker)).ok
    tree = LexborHTMLParser(await fetched(placement.url))
    assert [heading.text() for heading in tree.css("h1")] == [title]
    assert not tree.css("script:not([type='application/ld+json'])")
    assert tree.css(f'html[lang^="{page.language.base}"]')


async def test_a_page_without_any_usable_slug_gets_an_address_of_its_own(site: Site) -> None:
    page = a_page(slug="", title="🚆")
    placement = await site.publish(page)
    assert placement.slug
    assert (await site.verify(placement, page.marker)).ok
    assert (await site.publish(page)).url == placement.url


async def test_a_slug_never_leads_out_of_the_site(site: Site) -> None:
    page: Page = a_page(slug="../../etc/passwd")
    placement = await site.publish(page)
    assert "/" not in placement.slug
    assert ".." not in placement.slug
    assert (await site.verify(placement, page.marker)).ok


@pytest.mark.parametrize("fault", sorted(FAULTS))
async def test_what_is_not_live_is_never_verified(site: Site, faulty: FaultyServer, fault: str) -> None:
    url = faulty.url(fault)
    verification = await site.verify(Placement("1", url, fault, ""), MARKER)
    assert not verification.ok
    assert verification.url == url
    assert verification.problem
    assert FAULTS[fault] in verification.problem
    assert "\n" not in verification.problem


async def test_an_address_without_a_page_is_not_verified(site: Site) -> None:
    page = a_page()
    placement = await site.publish(page)
    nowhere = replace(placement, url=f"{site.base_url}/never-published/")
    verification = await site.verify(nowhere, page.marker)
    assert not verification.ok
    assert verification.status == 404


async def test_a_site_that_does_not_answer_is_not_verified(site: Site) -> None:
    verification = await site.verify(Placement("1", "http://127.0.0.1:1/x/", "x", ""), MARKER)
    assert not verification.ok
    assert verification.status is None
    assert verification.problem
    assert "could not be fetched" in verification.problem
