"""The queue: one row per article, phase and round."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Index, UniqueConstraint, text
from sqlmodel import Field

from nightdesk.models.base import Table, created, identity, json, one_of, timestamp, usd
from nightdesk.states import JobState, Phase


class Job(Table, table=True):
    """A piece of work. `claim_no` only grows: it is the fencing token of every write by a worker."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("article_id", "phase", "round"),
        one_of("state", JobState),
        one_of("phase", Phase),
        Index(
            "ix_jobs_ready",
            "phase",
            text("priority DESC"),
            "created_at",
            "id",
            postgresql_where=text("state = 'ready'"),
        ),
        # Two runs died over these: a tick takes them one at a time.
        Index(
            "ix_jobs_suspects",
            "phase",
            text("priority DESC"),
            "created_at",
            "id",
            postgresql_where=text("state = 'ready' AND deaths >= 2"),
        ),
        Index("ix_jobs_due", "due_at", postgresql_where=text("state = 'waiting'")),
        Index("ix_jobs_leased", "locked_until", postgresql_where=text("state = 'leased'")),
        Index("ix_jobs_failed", "updated_at", postgresql_where=text("state = 'failed'")),
        # Claims delete and re-insert index entries all the time: room on the page keeps them local.
        {"postgresql_with": {"fillfactor": "75", "autovacuum_vacuum_scale_factor": "0.01"}},
    )

    id: int | None = identity()
    article_id: uuid.UUID = Field(foreign_key="nightdesk.articles.id")
    phase: str
    round: int = 1
    state: str = JobState.READY
    reason: str | None = None  #: why it waits, failed or needs a person: one sentence
    reasons: list[dict[str, str]] | None = json(nullable=True)  #: for a person: rule, message, passage
    due_at: datetime | None = timestamp(nullable=True)
    priority: int = 0
    site: str
    provider: str | None = None  #: pinned by the first claim, like model and prompt version
    model: str | None = None
    prompt_version: str | None = None
    claim_no: int = 0
    attempts: int = 0
    max_attempts: int = 3
    deaths: int = 0  #: runs that died while they held it
    max_tokens: int
    max_usd: Decimal = usd(None)
    locked_by: str | None = None
    locked_until: datetime | None = timestamp(nullable=True)
    error_class: str | None = None
    created_at: datetime = created()
    updated_at: datetime = created()
