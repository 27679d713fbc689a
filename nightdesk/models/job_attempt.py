"""Every try of a job keeps its own row."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import UniqueConstraint

from nightdesk.models.base import Table, created, identity, reference, timestamp


class JobAttempt(Table, table=True):
    """One claim: who, when, how it ended."""

    __tablename__ = "job_attempts"
    __table_args__ = (UniqueConstraint("job_id", "claim_no"),)

    id: int | None = identity()
    job_id: int = reference("jobs.id")
    claim_no: int
    run: str  #: the worker: a Prefect flow run id, or the id of a synchronous run
    started_at: datetime = created()
    ended_at: datetime | None = timestamp(nullable=True)
    outcome: str | None = None  #: the state the job went to, or `lease expired`
    counted: bool = True  #: false if the job was given back at no cost
    error_class: str | None = None
    error_message: str | None = None
    error_stack: str | None = None
    model: str | None = None
    prompt_version: str | None = None
