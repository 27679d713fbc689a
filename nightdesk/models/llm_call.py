"""A call to a model is a row before it is a request."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Index, text
from sqlmodel import Field

from nightdesk.models.base import Table, created, json, one_of, reference, timestamp, usd
from nightdesk.states import CallState


class LlmCall(Table, table=True):
    """One request to a provider; `id` is sent along and is the natural key of its Money."""

    __tablename__ = "llm_calls"
    __table_args__ = (
        one_of("state", CallState),
        Index("ix_llm_calls_call_key_ask_no", "call_key", "ask_no"),
        Index("ix_llm_calls_job_id", "job_id"),
        Index("ix_llm_calls_article_id", "article_id"),
        Index("ix_llm_calls_open", "deadline_at", postgresql_where=text("state = 'sent'")),
    )

    id: uuid.UUID = Field(primary_key=True)
    call_key: str  #: digest of article, phase, round, typed inputs, prompt version and model
    ask_no: int  #: 1 + answers to this key that were rejected
    job_id: int = reference("jobs.id")
    claim_no: int
    article_id: uuid.UUID = Field(foreign_key="nightdesk.articles.id")
    phase: str
    provider: str
    model: str
    prompt_version: str
    state: str = CallState.SENT
    worst_case_usd: Decimal = usd(None)
    max_output_tokens: int
    worst_case_tokens: int
    sent_at: datetime = created()
    deadline_at: datetime = timestamp()
    ended_at: datetime | None = timestamp(nullable=True)
    answer: str | None = None
    stop: str | None = None
    usage: dict[str, Any] | None = json(nullable=True)  #: normalised; see `spend.usage`
    raw_usage: dict[str, Any] | None = json(nullable=True)  #: as the provider sent it
    request_id: str | None = None  #: the provider's, as evidence
    error: str | None = None  #: why it was rejected, unknown or not sent
