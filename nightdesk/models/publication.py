"""Where an article is on its site."""

from __future__ import annotations

import uuid
from datetime import datetime
from enum import StrEnum

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from nightdesk.models.base import Table, created, identity, one_of, reference, timestamp


class PublicationState(StrEnum):
    """How far the page is."""

    CREATING = "creating"  #: committed before the site is asked to create anything
    PLACED = "placed"  #: the site answered; not yet proven
    VERIFIED = "verified"  #: the live page was fetched anonymously and carries the marker


class Publication(Table, table=True):
    """One row per article: an article is at most once on its site."""

    __tablename__ = "publications"
    __table_args__ = (UniqueConstraint("article_id"), one_of("state", PublicationState))

    id: int | None = identity()
    article_id: uuid.UUID = Field(foreign_key="nightdesk.articles.id")
    round: int
    job_id: int = reference("jobs.id")
    claim_no: int
    site: str
    state: str = PublicationState.CREATING
    started_at: datetime = created()
    published_at: datetime = created()  #: shown on the page; fixed by the first publication
    updated_at: datetime = created()
    external_id: str | None = None
    slug: str | None = None
    url: str | None = None
    content_sha256: str | None = None
    verified_at: datetime | None = timestamp(nullable=True)
