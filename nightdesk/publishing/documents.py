"""The files of a static site as text: pages, the list of articles, sitemap and feed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

import jinja2
import regex

from nightdesk.errors import Permanent
from nightdesk.languages import LANGUAGES, Language
from nightdesk.publishing.labels import labels_for
from nightdesk.publishing.port import Page, marker_comment
from nightdesk.publishing.records import Record
from nightdesk.publishing.render import markdown_to_html
from nightdesk.text import storable

_FEED_ENTRIES = 50
_SITEMAP_URLS = 50_000 - 1  # sitemaps.org allows 50,000 in a file; one is the front page
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPACES = regex.compile(r"\s+")
# XML 1.0 has no place for these two, not even escaped (production 2, Char).
_NOT_IN_XML = {0xFFFE: None, 0xFFFF: None}


@dataclass(frozen=True, slots=True)
class Imprint:
    """What every file of one site says about the site."""

    title: str
    base_url: str
    tagline: str = ""
    author: str = ""  #: empty: the site's title is used
    made_by: str | None = None  #: how articles are made; None: the standard sentence; "": nothing

    def url(self, slug: str) -> str:
        """The address of the article at `slug`."""
        return f"{self.base_url}/{slug}/"


def cleaned(page: Page) -> Page:
    """`page` with text that every file can hold, and one-line title and descriptions.

    Raises:
        Permanent: if nothing is left of the title.
    """
    title, excerpt, description = (
        _SPACES.sub(" ", storable(text).translate(_NOT_IN_XML)).strip()
        for text in (page.title, page.excerpt, page.meta_description)
    )
    if not title:
        raise Permanent(f"article {page.marker} has no title: give it one and publish again")
    body = storable(page.markdown).translate(_NOT_IN_XML)
    return replace(page, title=title, excerpt=excerpt, meta_description=description, markdown=body)


def article_page(page: Page, slug: str, site: Imprint) -> str:
    """`<slug>/index.html`, of a cleaned page."""
    url = site.url(slug)
    description = page.meta_description or page.excerpt
    author = site.author or site.title
    structured = {
        "@context": "https://schema.org",
        "@type": "Article",
        "headline": page.title,
        "description": description,
        "inLanguage": page.language.tag,
        "datePublished": _iso(page.published_at),
        "dateModified": _iso(page.updated_at),
        "mainEntityOfPage": url,
        "url": url,
        "author": {"@type": "Organization", "name": author},
        "publisher": {"@type": "Organization", "name": site.title},
    }
    return _render(
        "article.html.j2",
        page.language,
        site,
        page=page,
        url=url,
        description=description,
        structured=structured,
        marker=marker_comment(page.marker),
        body=markdown_to_html(page.markdown),
    )


def front_page(records: Sequence[Record], site: Imprint) -> str:
    """`index.html`: every article, newest first."""
    tags = Counter(record.language_tag for record in records)
    # The language most articles are in; ties go to the first in the alphabet.
    tag = min(tags, key=lambda tag: (-tags[tag], tag), default="en")
    return _render("index.html.j2", LANGUAGES[tag], site, records=newest_first(records))


def sitemap(records: Sequence[Record], site: Imprint) -> str:
    """`sitemap.xml`, after sitemaps.org 0.9."""
    newest = newest_first(records)
    return _template("sitemap.xml.j2").render(
        site=site, records=newest[:_SITEMAP_URLS], updated=_last_change(newest)
    )


def feed(records: Sequence[Record], site: Imprint) -> str:
    """`feed.xml`: the newest articles as Atom (RFC 4287)."""
    newest = newest_first(records)
    return _template("feed.xml.j2").render(
        site=site, records=newest[:_FEED_ENTRIES], updated=_last_change(newest) or _EPOCH
    )


def robots(site: Imprint) -> str:
    """`robots.txt`: everything may be read."""
    return f"User-agent: *\nAllow: /\n\nSitemap: {site.base_url}/sitemap.xml\n"


def stylesheet() -> str:
    """`style.css`."""
    source = files("nightdesk.publishing").joinpath("templates", "style.css")
    return source.read_text(encoding="utf-8")


def newest_first(records: Sequence[Record]) -> list[Record]:
    """By publication; the marker decides between articles of one moment."""
    return sorted(records, key=lambda record: (record.published_at, record.marker), reverse=True)


def _last_change(records: Sequence[Record]) -> datetime | None:
    return max((record.updated_at for record in records), default=None)


def _iso(moment: datetime) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def _render(name: str, language: Language, site: Imprint, **values: object) -> str:
    labels = labels_for(language)
    made_by = labels.made_by if site.made_by is None else site.made_by
    return _template(name).render(site=site, language=language, labels=labels, made_by=made_by, **values)


def _template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nightdesk.publishing"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(iso=_iso, day=_day)
    return environment
