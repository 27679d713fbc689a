"""What a static site remembers about its articles: one small JSON file each, `<marker>.json`."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from nightdesk.errors import Blocked, Lane
from nightdesk.languages import Language, language
from nightdesk.publishing.files import write_atomically
from nightdesk.publishing.port import Page


class Record(BaseModel):
    """One article on the site. Written before its page to keep the slug, and again after it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    marker: UUID
    slug: str
    language_tag: str
    title: str
    excerpt: str
    published_at: AwareDatetime
    updated_at: AwareDatetime
    content_sha256: str
    placed: bool  #: False: only the slug is kept, the page was never completed

    @property
    def language(self) -> Language:
        return language(self.language_tag)

    @classmethod
    def of(cls, page: Page, slug: str, content_sha256: str, *, placed: bool) -> Record:
        """The record of `page` at `slug`."""
        return cls(
            marker=page.marker,
            slug=slug,
            language_tag=page.language.tag,
            title=page.title,
            excerpt=page.excerpt,
            published_at=page.published_at,
            updated_at=page.updated_at,
            content_sha256=content_sha256,
            placed=placed,
        )


class Records:
    """The records in a folder."""

    def __init__(self, folder: Path, lane: Lane) -> None:
        self._folder = folder
        self._lane = lane

    def read(self, marker: UUID) -> Record | None:
        """The record of one article.

        Raises:
            Blocked: if its file is damaged.
        """
        return self._load(self._path(marker))

    def read_all(self) -> dict[UUID, Record]:
        """Every record, by marker.

        Raises:
            Blocked: if a file is damaged.
        """
        found = (self._load(path) for path in sorted(self._folder.glob("*.json")))
        return {record.marker: record for record in found if record is not None}

    def write(self, record: Record) -> None:
        """Store a record; the caller holds the site's lock."""
        text = record.model_dump_json(indent=1) + "\n"
        write_atomically(self._path(record.marker), text.encode())

    def _path(self, marker: UUID) -> Path:
        return self._folder / f"{marker}.json"

    def _load(self, path: Path) -> Record | None:
        try:
            return Record.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise Blocked(
                f"{self._lane} has a damaged record {path}: restore it from a backup, or delete it "
                "and publish its article again",
                lane=self._lane,
            ) from error
