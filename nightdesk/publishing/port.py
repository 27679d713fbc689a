"""What the publish phase asks of a site, whatever kind of site it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from nightdesk.languages import Language


@dataclass(frozen=True, slots=True)
class Page:
    """Everything needed to put one article on a site.

    Raises:
        ValueError: if a date carries no time zone.
    """

    marker: UUID  #: the article's id; the live page carries it (see `marker_comment`)
    slug: str  #: the wish; the site may have to add a suffix
    language: Language
    title: str  #: plain text
    excerpt: str  #: plain text
    meta_description: str  #: plain text; empty: the excerpt is used
    markdown: str  #: the body, without a level-1 heading
    published_at: datetime  #: aware; given by the caller, so that publishing again changes nothing
    updated_at: datetime  #: aware

    def __post_init__(self) -> None:
        for name, moment in (("published_at", self.published_at), ("updated_at", self.updated_at)):
            if moment.utcoffset() is None:
                raise ValueError(f"{name} of page {self.marker} has no time zone: give an aware UTC time")


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an article is on a site."""

    external_id: str  #: the site's own id for it
    url: str
    slug: str
    content_sha256: str  #: `content_sha256` of the page that was last published completely


@dataclass(frozen=True, slots=True)
class Verification:
    """What an anonymous visitor got."""

    ok: bool
    url: str
    status: int | None  #: HTTP status; None if no answer came
    problem: str | None  #: one plain sentence; None if `ok`


class Site(Protocol):
    """A place that articles are published to. One publisher per site works at a time."""

    name: str
    kind: str
    base_url: str  #: without a trailing slash

    async def preflight(self) -> None:
        """Check that publishing can work at all, before any article's attempt is spent.

        Raises:
            Blocked: with the site as lane, what is wrong, and the mend.
        """
        ...

    async def find(self, marker: UUID) -> Placement | None:
        """The article's page if the site has it completely, else None. Look before you create.

        Raises:
            Blocked: if the site cannot be asked.
        """
        ...

    async def publish(self, page: Page) -> Placement:
        """Create or update. The same marker keeps its URL for ever, also when the slug changes.

        Raises:
            Blocked: the site takes nothing at all.
            Transient: the site is busy; publishing again is safe.
            Permanent: the site can never take this page.
        """
        ...

    async def verify(self, placement: Placement, marker: UUID) -> Verification:
        """Look at the live page as an anonymous visitor; never raises for what the page does."""
        ...


def marker_comment(marker: UUID) -> str:
    """The HTML comment that proves which article a page shows."""
    return f"<!-- nightdesk:{marker} -->"


def content_sha256(page: Page) -> str:
    """SHA-256 (hex) of what a reader gets from the article; slug and dates do not count."""
    content = [
        page.language.tag,
        page.title,
        page.excerpt,
        page.meta_description,
        page.markdown,
    ]
    # ASCII escapes keep lone surrogates encodable.
    return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()
