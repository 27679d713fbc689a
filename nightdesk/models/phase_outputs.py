"""The typed output of each phase: one row per article and round, upserted."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from nightdesk.models.base import Table, created, identity, json, reference


class PhaseOutput(Table):
    """Columns that every output has: whose it is, and what made it."""

    id: int | None = identity()
    article_id: uuid.UUID = Field(foreign_key="nightdesk.articles.id")
    round: int
    job_id: int = reference("jobs.id")
    claim_no: int
    prompt_version: str | None = None
    model: str | None = None
    created_at: datetime = created()


class BriefRow(PhaseOutput, table=True):
    """Research: the angle and the facts, each with the words of a stored source."""

    __tablename__ = "briefs"
    __table_args__ = (UniqueConstraint("article_id", "round"),)

    angle: str
    audience: str
    questions: list[str] = json()
    facts: list[dict[str, str]] = json()
    terms: list[str] = json()
    notes: str


class OutlineRow(PhaseOutput, table=True):
    """Outline: the title and the H2s."""

    __tablename__ = "outlines"
    __table_args__ = (UniqueConstraint("article_id", "round"),)

    title: str
    sections: list[dict[str, Any]] = json()


class DraftRow(PhaseOutput, table=True):
    """Draft: the whole text in sections."""

    __tablename__ = "drafts"
    __table_args__ = (UniqueConstraint("article_id", "round"),)

    title: str
    introduction: str
    sections: list[dict[str, str]] = json()
    words: int


class RevisionRow(PhaseOutput, table=True):
    """Optimize: the text as it is to be published, and the quality gate's verdict on it."""

    __tablename__ = "revisions"
    __table_args__ = (UniqueConstraint("article_id", "round"),)

    title: str
    slug: str
    excerpt: str
    meta_description: str
    introduction: str
    sections: list[dict[str, str]] = json()
    markdown: str  #: introduction and sections as one text; what is judged and published
    words: int
    changes: list[str] = json()
    verdict: dict[str, Any] | None = json(
        nullable=True
    )  #: written by publish: `ok`, `findings`, `gate_version`
    waived: list[str] = json()  #: rules that a person waived for this revision
