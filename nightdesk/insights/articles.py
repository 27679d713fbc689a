"""Articles: where they stand, and all that is known of one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Row, text
from sqlmodel import Session

from nightdesk.states import ArticleState


@dataclass(frozen=True, slots=True)
class ArticleSummary:
    """One article in a list."""

    id: uuid.UUID
    number: int
    topic: str
    site: str
    language: str
    priority: int
    state: ArticleState
    phase: str  #: where it stands
    words: int
    cost_usd: Decimal
    tokens: int
    prompt_version: str | None  #: of its draft
    url: str | None
    verified_at: datetime | None
    reasons: tuple[dict[str, str], ...]


_SUMMARIES = """
    SELECT a.id, a.number, a.topic, a.site, a.language, a.priority,
        CASE WHEN j.state = 'done' AND p.state = 'verified' THEN 'published'
             WHEN j.state IN ('leased', 'done') THEN 'working'
             WHEN j.state = 'ready' THEN 'queued'
             ELSE j.state END AS state,
        j.phase, coalesce(r.words, d.words, 0) AS words, coalesce(m.cost_usd, 0) AS cost_usd,
        coalesce(c.tokens, 0) AS tokens, d.prompt_version, p.url, p.verified_at,
        j.reason, j.reasons, j.error_class
    FROM nightdesk.articles a
    JOIN LATERAL (SELECT * FROM nightdesk.jobs WHERE article_id = a.id ORDER BY id DESC LIMIT 1) j ON true
    LEFT JOIN nightdesk.publications p ON p.article_id = a.id
    LEFT JOIN LATERAL (SELECT words, prompt_version FROM nightdesk.drafts WHERE article_id = a.id
                       ORDER BY round DESC LIMIT 1) d ON true
    LEFT JOIN LATERAL (SELECT words FROM nightdesk.revisions WHERE article_id = a.id
                       ORDER BY round DESC LIMIT 1) r ON true
    LEFT JOIN LATERAL (SELECT sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END) AS cost_usd
                       FROM nightdesk.ledger_entries WHERE article_id = a.id AND book = 'money') m ON true
    LEFT JOIN LATERAL (SELECT sum((usage->>'input_tokens')::bigint + (usage->>'output_tokens')::bigint)
                              AS tokens
                       FROM nightdesk.llm_calls WHERE article_id = a.id) c ON true
    {where}
    ORDER BY a.priority DESC, a.number LIMIT :limit
"""
_ALL = text(_SUMMARIES.format(where=""))
_SOME = text(_SUMMARIES.format(where="WHERE a.id = ANY(:ids)"))
_ONE = text(_SUMMARIES.format(where="WHERE a.number = :number"))


def articles(
    session: Session, ids: list[uuid.UUID] | None = None, *, limit: int = 1_000
) -> list[ArticleSummary]:
    """Articles with where they stand, the highest priority first; all, or those with these ids."""
    values: dict[str, Any] = {"limit": limit} if ids is None else {"limit": limit, "ids": ids}
    rows = session.connection().execute(_ALL if ids is None else _SOME, values)
    return [_summary(row) for row in rows]


def article(session: Session, number: int) -> ArticleSummary | None:
    """One article by its number."""
    row = session.connection().execute(_ONE, {"number": number, "limit": 1}).first()
    return None if row is None else _summary(row)


def _summary(row: Row[Any]) -> ArticleSummary:
    reasons = tuple(row.reasons or ())
    if not reasons and row.reason and row.state not in ("published", "working", "queued"):
        reasons = ({"rule": row.error_class or row.state, "message": row.reason, "passage": ""},)
    fields = {name: getattr(row, name) for name in ArticleSummary.__dataclass_fields__ if name != "reasons"}
    fields["state"] = ArticleState(row.state)
    return ArticleSummary(**fields, reasons=reasons)


_SHOWN = {
    "brief": ("briefs", "angle, audience, questions, facts, terms, notes"),
    "outline": ("outlines", "title, sections"),
    "draft": ("drafts", "title, introduction, sections, words"),
    "revision": (
        "revisions",
        "title, slug, excerpt, meta_description, markdown, words, changes, verdict, waived",
    ),
}


def article_detail(session: Session, number: int) -> dict[str, Any] | None:
    """All that is known of an article: ask, sources, outputs, verdict, publication, jobs, cost by phase."""
    summary = article(session, number)
    if summary is None:
        return None
    key = {"id": summary.id}

    def rows(query: str) -> list[dict[str, Any]]:
        return [dict(row._mapping) for row in session.connection().execute(text(query), key)]

    detail: dict[str, Any] = {
        "summary": summary,
        "ask": rows("SELECT * FROM nightdesk.articles WHERE id = :id")[0],
        "sources": rows(
            "SELECT url, final_url, via_feed, title, status, error, length(text) AS characters "
            "FROM nightdesk.sources WHERE article_id = :id ORDER BY position"
        ),
    }
    for name, (table, columns) in _SHOWN.items():
        found = rows(
            f"SELECT round, prompt_version, model, {columns} FROM nightdesk.{table} "  # noqa: S608  both are constants above
            "WHERE article_id = :id ORDER BY round DESC LIMIT 1"
        )
        detail[name] = found[0] if found else None
    publication = rows("SELECT * FROM nightdesk.publications WHERE article_id = :id")
    detail["publication"] = publication[0] if publication else None
    detail["jobs"] = rows(
        "SELECT id, phase, round, state, attempts, reason, error_class FROM nightdesk.jobs "
        "WHERE article_id = :id ORDER BY id"
    )
    detail["cost_by_phase"] = rows(
        "SELECT phase, sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END) AS cost_usd "
        "FROM nightdesk.ledger_entries WHERE article_id = :id AND book = 'money' "
        "GROUP BY phase ORDER BY min(id)"
    )
    detail["dead_letters"] = rows(
        "SELECT job_id, phase, error_class, message, cost_usd, layer, created_at, resolution "
        "FROM nightdesk.dead_letters WHERE article_id = :id ORDER BY id"
    )
    return detail


def money_usd(session: Session) -> Decimal:
    """All Money in the ledger."""
    query = "SELECT coalesce(sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END), 0) "
    query += "FROM nightdesk.ledger_entries WHERE book = 'money'"
    return session.connection().execute(text(query)).scalar_one()  # type: ignore[no-any-return]
