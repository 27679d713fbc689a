"""Reads the sources of a topic: pages, plain texts, and the newest articles of feeds."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import ssl
from collections.abc import Sequence

import httpx

from nightdesk.errors import Permanent
from nightdesk.research.addresses import AddressGuard, Resolver
from nightdesk.research.extract_child import MAX_LINK_CHARS, Extract, Item
from nightdesk.research.extraction import Extractor
from nightdesk.research.fetch import Fetcher, Visit
from nightdesk.research.policy import FetchPolicy
from nightdesk.research.source import FetchedSource
from nightdesk.research.transport import GuardedTransport
from nightdesk.research.web import Sleep, Web
from nightdesk.text import shorten, storable

_AT_ONCE = 8
_MAX_ERROR_CHARS = 500


class SourceReader:
    """Fetches sources and extracts their text.

    Args:
        policy: who asks, what may be reached, and how much is taken.
        resolve: names to addresses; the operating system's resolver if None.
        sleep: waits for a host's turn.
        verify: the certificates that are trusted.

    Raises:
        ConfigError: if a rule of the policy's `connect_to` is malformed.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        resolve: Resolver | None = None,
        sleep: Sleep = asyncio.sleep,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._guard = AddressGuard(policy.connect_to, resolve)
        self._web = Web(policy, GuardedTransport(self._guard, verify), sleep)
        self._fetcher = Fetcher(policy, self._guard, self._web)
        self._extractor = Extractor(policy)
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def read(self, urls: Sequence[str]) -> list[FetchedSource]:
        """Each address once, in order; a feed is followed by its articles.

        Never raises for a source that cannot be read: its `error` says why.
        """
        given = list(dict.fromkeys(urls))
        roots = await asyncio.gather(*(self._read_one(url) for url in given))
        known = {self._same(url) for url in given}
        wanted = list[list[tuple[str, Item]]]()
        for source, items in roots:
            fresh = [(source.url, item) for item in items if self._is_new(item["link"], known)]
            wanted.append(fresh)
        articles = iter(
            await asyncio.gather(*(self._article(feed, item) for group in wanted for feed, item in group))
        )
        found = list[FetchedSource]()
        for (source, _), group in zip(roots, wanted, strict=True):
            found += [source, *(next(articles) for _ in group)]
        return found

    async def aclose(self) -> None:
        """Close what is open."""
        await self._web.aclose()

    def _is_new(self, link: str, known: set[str]) -> bool:
        same = self._same(link)
        if same in known:
            return False
        known.add(same)
        return True

    def _same(self, url: str) -> str:
        try:
            return str(self._guard.check(url))
        except Permanent:
            return url

    async def _article(self, feed: str, item: Item) -> FetchedSource:
        source, items = await self._read_one(item["link"])
        if items:  # a feed in a feed is not followed
            source = dataclasses.replace(source, text="", error=f"{source.url} is a feed inside a feed")
        return dataclasses.replace(
            source,
            via_feed=feed,
            title=source.title or item["title"],
            published=source.published or item["published"],
        )

    async def _read_one(self, url: str) -> tuple[FetchedSource, list[Item]]:
        visit = Visit()
        try:
            async with self._turn:
                visit = await self._fetcher.visit(url)
                return await self._extracted(url, visit)
        except Exception as error:  # whatever a hostile page found: the other sources are still read
            why = str(error) if isinstance(error, Permanent) else f"{url} cannot be read: {error!r}"
            return _source(url, visit, error=why), []

    async def _extracted(self, url: str, visit: Visit) -> tuple[FetchedSource, list[Item]]:
        if visit.answer is None:
            return _source(url, visit, error=visit.error), []
        found = await self._extractor.extract(visit.answer)
        items = [item | {"link": _absolute(visit.answer.url, item["link"])} for item in found["items"]]
        items = [item for item in items if len(item["link"]) <= MAX_LINK_CHARS]
        error = None if found["text"] else f"{visit.answer.url} has no text that can be read"
        return _source(url, visit, found, error), items


def _absolute(base: httpx.URL, link: str) -> str:
    try:
        return str(base.join(link))
    except (httpx.InvalidURL, ValueError):
        return link  # its own fetch says what is wrong with it


def _source(url: str, visit: Visit, found: Extract | None = None, error: str | None = None) -> FetchedSource:
    body = visit.answer.body if visit.answer is not None else None
    return FetchedSource(
        url=url,
        final_url=visit.final_url,
        status=visit.status,
        error=shorten(" ".join(storable(error).split()), _MAX_ERROR_CHARS) if error else None,
        content_type=storable(visit.media_type) if visit.media_type else None,
        sha256=hashlib.sha256(body).hexdigest() if body is not None else None,
        title=found["title"] if found else None,
        published=found["published"] if found else None,
        language=found["language"] if found else None,
        text=found["text"] if found else "",
        robots=visit.robots,
    )
