"""The desk: what waits, what is at work, what died, what is closed."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Row, text
from sqlmodel import Session


@dataclass(frozen=True, slots=True)
class LetterSummary:
    """One dead letter in a list."""

    id: int
    article_id: uuid.UUID
    number: int
    topic: str
    phase: str
    error_class: str
    message: str
    attempts: int
    cost_usd: Decimal
    layer: str
    run_url: str | None
    created_at: datetime
    resolution: str | None


@dataclass(frozen=True, slots=True)
class DeskStatus:
    """The desk at a glance, in one snapshot."""

    now: datetime
    jobs: dict[str, dict[str, int]]  #: phase → state → how many; done ones of the last 24 h only
    oldest_ready_s: float | None
    closed_lanes: tuple[dict[str, Any], ...]
    open_letters: int
    published_24h: int
    spent_24h_usd: Decimal
    open_calls: int


_LETTERS = """
    SELECT d.id, d.article_id, a.number, a.topic, d.phase, d.error_class, d.message,
           jsonb_array_length(d.attempts) AS attempts, d.cost_usd, d.layer, d.run_url,
           d.created_at, d.resolution
    FROM nightdesk.dead_letters d JOIN nightdesk.articles a ON a.id = d.article_id
    WHERE {which} ORDER BY d.id DESC LIMIT :limit
"""
_OPEN_LETTERS = text(_LETTERS.format(which="d.resolution IS NULL"))
_ALL_LETTERS = text(_LETTERS.format(which="true"))

_JOBS = text("""
    SELECT j.id, a.number, a.topic, j.site, j.phase, j.round, j.state, j.priority, j.attempts, j.max_attempts,
           j.deaths, j.due_at, j.reason, j.error_class, j.locked_by, j.locked_until
    FROM nightdesk.jobs j JOIN nightdesk.articles a ON a.id = j.article_id
    WHERE j.state = ANY(:states) AND (cast(:phase AS text) IS NULL OR j.phase = :phase)
    ORDER BY j.priority DESC, j.created_at, j.id LIMIT :limit
""")

# Finished jobs pile up for ever; those of a day are enough, and the index on articles finds the rest.
_COUNTS = text("""
    SELECT phase, state, count(*) AS jobs,
           extract(epoch FROM nightdesk.now() - min(updated_at) FILTER (WHERE state = 'ready'))::float8
               AS oldest_s
    FROM nightdesk.jobs
    WHERE state NOT IN ('done', 'cancelled') OR updated_at > nightdesk.now() - interval '24 hours'
    GROUP BY phase, state
""")
_LANES = text("""
    SELECT kind, name, reason, opened_at, until FROM nightdesk.lane_pauses
    WHERE closed_at IS NULL AND until > nightdesk.now() ORDER BY kind, name
""")
_REST = text("""
    SELECT nightdesk.now() AS now,
        (SELECT count(*) FROM nightdesk.dead_letters WHERE resolution IS NULL) AS open_letters,
        (SELECT count(*) FROM nightdesk.publications
         WHERE state = 'verified' AND verified_at > nightdesk.now() - interval '24 hours') AS published_24h,
        (SELECT coalesce(sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END), 0)
         FROM nightdesk.ledger_entries
         WHERE book = 'money' AND occurred_at > nightdesk.now() - interval '24 hours') AS spent_24h_usd,
        (SELECT count(*) FROM nightdesk.llm_calls WHERE state = 'sent') AS open_calls
""")


def letters(session: Session, *, resolved: bool = False, limit: int = 100) -> list[LetterSummary]:
    """Dead letters, the newest first; `resolved`: those that somebody has dealt with too."""
    rows = session.connection().execute(_ALL_LETTERS if resolved else _OPEN_LETTERS, {"limit": limit})
    return [LetterSummary(**row._mapping) for row in rows]


def letter(session: Session, letter_id: int) -> dict[str, Any] | None:
    """One dead letter with its whole context."""
    query = text("""
        SELECT d.*, a.number, a.topic, a.site FROM nightdesk.dead_letters d
        JOIN nightdesk.articles a ON a.id = d.article_id WHERE d.id = :id
    """)
    row = session.connection().execute(query, {"id": letter_id}).first()
    return None if row is None else dict(row._mapping)


def job_list(
    session: Session, *, states: list[str], phase: str | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    """Jobs in these states, in the order in which they would be claimed."""
    values = {"states": states, "phase": phase, "limit": limit}
    return [dict(row._mapping) for row in session.connection().execute(_JOBS, values)]


def desk_status(session: Session) -> DeskStatus:
    """The desk at a glance."""
    jobs: dict[str, dict[str, int]] = {}
    oldest: list[float] = []
    for row in session.connection().execute(_COUNTS):
        jobs.setdefault(row.phase, {})[row.state] = row.jobs
        oldest += [row.oldest_s] if row.oldest_s is not None else []
    rest: Row[Any] = session.connection().execute(_REST).one()
    return DeskStatus(
        now=rest.now,
        jobs=jobs,
        oldest_ready_s=max(oldest, default=None),
        closed_lanes=tuple(dict(row._mapping) for row in session.connection().execute(_LANES)),
        open_letters=rest.open_letters,
        published_24h=rest.published_24h,
        spent_24h_usd=rest.spent_24h_usd,
        open_calls=rest.open_calls,
    )
