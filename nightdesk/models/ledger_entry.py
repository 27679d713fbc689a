"""The ledger: one row is one balanced entry, never edited, never deleted."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import CheckConstraint, Index, Numeric
from sqlmodel import Field

from nightdesk.models.base import Table, created, identity, json, reference


class LedgerEntry(Table, table=True):
    """`amount` of `unit` moves from account `credit` to account `debit`."""

    __tablename__ = "ledger_entries"
    __table_args__ = (
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("debit <> credit", name="two_accounts"),
        CheckConstraint("book IN ('money', 'promises', 'labour')", name="book"),
        CheckConstraint("book = 'labour' OR unit = 'USD'", name="unit"),
        Index("ix_ledger_entries_job_id_book", "job_id", "book"),
        Index("ix_ledger_entries_occurred_at", "occurred_at"),
    )

    id: int | None = identity()
    natural_key: str = Field(unique=True)  #: makes booking idempotent, e.g. `call:<uuid>`
    book: str
    debit: str
    credit: str
    amount: Decimal = Field(sa_type=Numeric(20, 10))
    unit: str = "USD"
    occurred_at: datetime = created()
    recorded_at: datetime = created()
    reverses: int | None = reference("ledger_entries.id", nullable=True, unique=True)
    job_id: int | None = reference("jobs.id", nullable=True)
    article_id: uuid.UUID | None = Field(default=None, index=True)
    call_id: uuid.UUID | None = None
    site: str | None = None
    phase: str | None = None
    provider: str | None = None
    model: str | None = None
    prompt_version: str | None = None
    price: dict[str, Any] | None = json(nullable=True)  #: the price row, its source and its date
    memo: str = ""
