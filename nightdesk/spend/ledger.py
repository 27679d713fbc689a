"""Booking: entries are added, never edited or deleted; a correction is a reversing entry.

    Money of an answered call     debit  work:<site>:<phase>      credit  provider:<name>
    Money that may have been      debit  unknown:<site>:<phase>   credit  provider:<name>
    a late answer                 the reversal of the above, then the real cost

The natural key makes booking idempotent: the same event cannot be booked twice.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.db import bind_json


@dataclass(frozen=True, slots=True)
class Entry:
    """One balanced entry: `amount_usd` moves from `credit` to `debit`."""

    natural_key: str
    debit: str
    credit: str
    amount_usd: Decimal
    occurred_at: datetime
    job_id: int | None = None
    article_id: uuid.UUID | None = None
    call_id: uuid.UUID | None = None
    site: str | None = None
    phase: str | None = None
    provider: str | None = None
    model: str | None = None
    prompt_version: str | None = None
    price: dict[str, Any] | None = None
    memo: str = ""


_BOOK = text("""
    INSERT INTO nightdesk.ledger_entries (natural_key, book, debit, credit, amount, unit, occurred_at,
        job_id, article_id, call_id, site, phase, provider, model, prompt_version, price, memo)
    VALUES (:natural_key, 'money', :debit, :credit, :amount_usd, 'USD', :occurred_at,
        :job_id, :article_id, :call_id, :site, :phase, :provider, :model, :prompt_version,
        cast(:price AS jsonb), :memo)
    ON CONFLICT (natural_key) DO NOTHING
""")

_REVERSE = text("""
    INSERT INTO nightdesk.ledger_entries (natural_key, book, debit, credit, amount, unit, occurred_at,
        reverses, job_id, article_id, call_id, site, phase, provider, model, prompt_version, price, memo)
    SELECT natural_key || :suffix, book, credit, debit, amount, unit, occurred_at,
        id, job_id, article_id, call_id, site, phase, provider, model, prompt_version, price, :memo
    FROM nightdesk.ledger_entries WHERE natural_key = :natural_key
    ON CONFLICT DO NOTHING
""")


def book_money(session: Session, entry: Entry) -> bool:
    """Add an entry to the Money book; False if its natural key was booked before."""
    if entry.amount_usd <= 0:
        raise ValueError(f"{entry.natural_key}: money that is booked is positive, not {entry.amount_usd}")
    values = {name: getattr(entry, name) for name in Entry.__dataclass_fields__}
    values["price"] = bind_json(entry.price)
    return bool(session.connection().execute(_BOOK, values).rowcount)


def reverse(session: Session, natural_key: str, memo: str) -> bool:
    """Reverse an entry, at the time of what it reverses; False if there is none or it was done before."""
    result = session.connection().execute(
        _REVERSE, {"natural_key": natural_key, "memo": memo, "suffix": ":reversed"}
    )
    return bool(result.rowcount)


def job_money_usd(session: Session, job_id: int) -> Decimal:
    """All Money booked to a job, unknown cost included."""
    return session.connection().execute(_JOB_MONEY, {"job_id": job_id}).scalar_one()  # type: ignore[no-any-return]


# An entry and its reversal cancel each other: the account of the provider tells the direction.
_JOB_MONEY = text("""
    SELECT coalesce(sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END), 0)
    FROM nightdesk.ledger_entries WHERE job_id = :job_id AND book = 'money'
""")
