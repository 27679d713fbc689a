"""A site that is a folder of files: the default site, and the one with nothing to configure.

    <slug>/index.html                the articles
    index.html sitemap.xml feed.xml  rebuilt from the records at every publication
    style.css robots.txt
    .site/articles/<marker>.json     what is where (`nightdesk.publishing.records`)
    .site/lock                       one writer at a time

The order of writing makes every kill harmless: the record first, only to keep the slug; then the
page; then the lists; then the record again, as placed. So `find` never reports a page that is not
there or lists that miss it, and a later attempt, with whatever slug, continues at the first slug.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from nightdesk.errors import Blocked, Lane, LaneKind
from nightdesk.publishing import documents
from nightdesk.publishing.documents import Imprint
from nightdesk.publishing.files import blocking, locked, make_folder, write_atomically
from nightdesk.publishing.port import (
    Page,
    Placement,
    Site,
    Verification,
    content_sha256,
    marker_comment,
)
from nightdesk.publishing.records import Record, Records
from nightdesk.publishing.slugs import make_slug, with_suffix
from nightdesk.publishing.verification import verify_live

_OURS = ("index.html", "sitemap.xml", "feed.xml", "style.css", "robots.txt")


class StaticSite(Site):
    """Articles as files in `folder`, which some web server shows under `base_url`."""

    kind = "static"

    def __init__(
        self,
        name: str,
        title: str,
        folder: Path,
        base_url: str,
        tagline: str = "",
        author: str = "",
        *,
        made_by: str | None = None,
        lock_wait_s: float = 30.0,
        verify_deadline_s: float = 20.0,
    ) -> None:
        """`made_by` is the footer's sentence: None for the standard one, "" for none."""
        self.name = name
        self.base_url = base_url.rstrip("/")
        self.folder = folder
        self._imprint = Imprint(title, self.base_url, tagline, author, made_by)
        self._lane = Lane(LaneKind.SITE, name)
        self._records = Records(folder / ".site" / "articles", self._lane)
        self._lock_wait_s = lock_wait_s
        self._verify_deadline_s = verify_deadline_s

    async def preflight(self) -> None:
        """Check address and folder, and write the lists, so that an empty site is a site too.

        Raises:
            Blocked: if the address is none, or the folder is somebody else's or cannot be written.
            Transient: if another publisher holds the site.
        """
        parts = urlsplit(self.base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
            raise Blocked(
                f"{self._lane} has the address '{self.base_url}': "
                "set its base_url to one like https://example.org/blog",
                lane=self._lane,
            )
        await asyncio.to_thread(self._lay_out)

    async def find(self, marker: UUID) -> Placement | None:
        """Where the article is; None unless both its record and its page say so."""
        return await asyncio.to_thread(self._find, marker)

    async def publish(self, page: Page) -> Placement:
        """Write the page and the lists; the same page again changes no byte.

        Raises:
            Blocked: if the folder cannot be written; nothing is half written.
            Transient: if another publisher holds the site.
            Permanent: if the page has no title.
        """
        return await asyncio.to_thread(self._publish, documents.cleaned(page), content_sha256(page))

    async def verify(self, placement: Placement, marker: UUID) -> Verification:
        """Fetch the page as an anonymous visitor."""
        return await verify_live(placement.url, marker, deadline_s=self._verify_deadline_s)

    def _lay_out(self) -> None:
        with self._writing():
            write_atomically(self.folder / ".site" / "probe", b"Nightdesk can write here.\n")
            (self.folder / ".site" / "probe").unlink()
            self._write_lists([*self._records.read_all().values()])

    def _find(self, marker: UUID) -> Placement | None:
        with blocking(self._lane, self.folder):
            record = self._records.read(marker)
            if record is None or not record.placed or not self._shows(record.slug, marker):
                return None
            return self._placement(record)

    def _publish(self, page: Page, sha256: str) -> Placement:
        with self._writing():
            records = self._records.read_all()
            known = records.get(page.marker)
            slug = known.slug if known else self._free_slug(page, records.values())
            if known is None:
                self._records.write(Record.of(page, slug, sha256, placed=False))
            path = self._page_path(slug)
            write_atomically(path, _encode(documents.article_page(page, slug, self._imprint)))
            record = Record.of(page, slug, sha256, placed=True)
            records[page.marker] = record
            self._write_lists([*records.values()])
            self._records.write(record)
            return self._placement(record)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with blocking(self._lane, self.folder):
            state = self.folder / ".site"
            foreign = [name for name in _OURS if (self.folder / name).exists()]
            if foreign and not state.is_dir():
                raise Blocked(
                    f"{self._lane} would overwrite {foreign[0]} in {self.folder}, which Nightdesk "
                    "did not write: give the site a folder of its own",
                    lane=self._lane,
                )
            make_folder(state / "articles")
            with locked(state / "lock", self._lane, self._lock_wait_s):
                yield

    def _write_lists(self, records: Sequence[Record]) -> None:
        placed = [record for record in records if record.placed]
        for name, text in (
            ("style.css", documents.stylesheet()),
            ("robots.txt", documents.robots(self._imprint)),
            ("sitemap.xml", documents.sitemap(placed, self._imprint)),
            ("feed.xml", documents.feed(placed, self._imprint)),
            ("index.html", documents.front_page(placed, self._imprint)),
        ):
            write_atomically(self.folder / name, _encode(text))

    def _free_slug(self, page: Page, records: Iterable[Record]) -> str:
        """The page's slug, or the first of `slug-2`, `slug-3` … that nobody has."""
        fallback = f"article-{page.marker.hex[:8]}"
        wish = make_slug(page.slug or page.title, page.language, fallback=fallback)
        taken = {record.slug for record in records}
        slug, number = wish, 1
        while slug in taken or self._is_foreign(slug, page.marker):
            number += 1
            slug = with_suffix(wish, f"-{number}")
        return slug

    def _is_foreign(self, slug: str, marker: UUID) -> bool:
        # A page of ours without a record (deleted by hand) is taken over, so that it keeps its URL.
        return (self.folder / slug).exists() and not self._shows(slug, marker)

    def _shows(self, slug: str, marker: UUID) -> bool:
        try:
            return marker_comment(marker).encode() in self._page_path(slug).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _page_path(self, slug: str) -> Path:
        return self.folder / slug / "index.html"

    def _placement(self, record: Record) -> Placement:
        return Placement(
            external_id=f"{record.slug}/index.html",
            url=self._imprint.url(record.slug),
            slug=record.slug,
            content_sha256=record.content_sha256,
        )


def _encode(text: str) -> bytes:
    return text.encode("utf-8")
