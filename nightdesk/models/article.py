"""What the user asked for."""

from __future__ import annotations

import uuid
from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Identity, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field

from nightdesk.models.base import Table, created


class Article(Table, table=True):
    """One topic for one site. `id` is also the marker that its live page carries."""

    __tablename__ = "articles"
    __table_args__ = (
        UniqueConstraint("site", "language", "topic_key"),
        CheckConstraint("btrim(topic) <> ''", name="topic"),
        CheckConstraint("btrim(keyword) <> ''", name="keyword"),
    )

    id: uuid.UUID = Field(primary_key=True)
    number: int | None = Field(
        default=None,
        sa_type=BigInteger,
        unique=True,
        sa_column_kwargs={"server_default": Identity(always=True), "nullable": False},
    )
    topic: str
    topic_key: str  #: the topic normalised: two spellings of one topic are one article
    site: str = Field(index=True)
    language: str
    keyword: str
    audience: str = ""
    min_words: int = 300
    priority: int = 0
    source_urls: list[str] = Field(default_factory=list, sa_type=ARRAY(Text))
    slug: str | None = None  #: fixed by the first publication
    created_at: datetime = created()
