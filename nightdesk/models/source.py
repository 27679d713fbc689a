"""What was read for an article: evidence for its facts, and no second fetch."""

from __future__ import annotations

import uuid
from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from nightdesk.models.base import Table, created, identity


class Source(Table, table=True):
    """One fetched address; `error` says why there is no text."""

    __tablename__ = "sources"
    __table_args__ = (UniqueConstraint("article_id", "url"),)

    id: int | None = identity()
    article_id: uuid.UUID = Field(foreign_key="nightdesk.articles.id")
    position: int
    url: str
    final_url: str | None = None
    via_feed: str | None = None
    fetched_at: datetime = created()
    status: int | None = None
    content_type: str | None = None
    sha256: str | None = None
    title: str | None = None
    published: str | None = None
    language: str | None = None
    robots: str = "unknown"
    text: str = ""
    error: str | None = None
