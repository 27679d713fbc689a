"""Jobs that were given up, with all that a person needs to judge them."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from nightdesk.models.base import Table, created, identity, json, reference, timestamp, usd


class DeadLetter(Table, table=True):
    """Unique by job and claim: three layers may bring it, one row stays."""

    __tablename__ = "dead_letters"
    __table_args__ = (UniqueConstraint("job_id", "claim_no"),)

    id: int | None = identity()
    job_id: int = reference("jobs.id")
    claim_no: int
    article_id: uuid.UUID = Field(foreign_key="nightdesk.articles.id")
    phase: str
    input: dict[str, Any] = json()
    error_class: str
    message: str
    stack: str
    attempts: list[dict[str, Any]] = json()
    cost_usd: Decimal = usd()  #: of the article so far
    run_url: str | None = None  #: the page of that run
    run: str | None = None
    layer: str  #: which layer brought it: `automation`, `event`, `sweep` or `runner`
    created_at: datetime = created()
    resolution: str | None = None  #: `requeued` or `discarded`
    resolved_by: str | None = None
    resolved_why: str | None = None
    resolved_at: datetime | None = timestamp(nullable=True)
