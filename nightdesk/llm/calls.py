"""The rows of calls to models, and the Money that each of their ends books.

sent ─┬─ answered ─── rejected
      ├─ not_sent
      └─ unknown ─┬─ answered    (a late answer: the worst case is reversed, the cost booked)
                  └─ not_sent    (nothing was billed after all: the worst case is reversed)
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Row, text
from sqlmodel import Session

from nightdesk.db import bind_json
from nightdesk.llm.port import Billing, ModelReply
from nightdesk.spend.ledger import Entry, book_money, reverse
from nightdesk.spend.pricing import Cost, cost
from nightdesk.text import shorten, storable

_MAX_ERROR = 2_000


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call that is about to be sent."""

    id: uuid.UUID
    call_key: str
    ask_no: int
    job_id: int
    claim_no: int
    article_id: uuid.UUID
    phase: str
    provider: str
    model: str
    prompt_version: str
    worst_case_usd: Decimal
    max_output_tokens: int
    worst_case_tokens: int
    open_for_s: float


@dataclass(frozen=True, slots=True)
class JobUse:
    """What a job's calls took so far; calls without a known end count at their worst case."""

    tokens: int
    unknown_tokens: int
    unknown_usd: Decimal
    open_usd: Decimal  #: not booked yet


_OPEN = text("""
    INSERT INTO nightdesk.llm_calls (id, call_key, ask_no, job_id, claim_no, article_id, phase, provider,
        model, prompt_version, state, worst_case_usd, max_output_tokens, worst_case_tokens, deadline_at)
    VALUES (:id, :call_key, :ask_no, :job_id, :claim_no, :article_id, :phase, :provider,
        :model, :prompt_version, 'sent', :worst_case_usd, :max_output_tokens, :worst_case_tokens,
        nightdesk.now() + make_interval(secs => :open_for_s))
""")

_ANSWERED = text("""
    SELECT id, answer, stop FROM nightdesk.llm_calls
    WHERE call_key = :call_key AND ask_no = :ask_no AND state = 'answered' ORDER BY ended_at, id LIMIT 1
""")

_REJECTIONS = text("""
    SELECT ask_no, claim_no, error FROM nightdesk.llm_calls
    WHERE call_key = :call_key AND state = 'rejected' ORDER BY ask_no, ended_at, id
""")

_JOB_USE = text("""
    SELECT coalesce(sum(CASE
               WHEN usage IS NULL THEN worst_case_tokens
               ELSE (usage->>'input_tokens')::bigint + (usage->>'output_tokens')::bigint END), 0) AS tokens,
           coalesce(sum(worst_case_tokens) FILTER (WHERE state = 'unknown'), 0) AS unknown_tokens,
           coalesce(sum(worst_case_usd) FILTER (WHERE state = 'unknown'), 0) AS unknown_usd,
           coalesce(sum(worst_case_usd) FILTER (WHERE state = 'sent'), 0) AS open_usd
    FROM nightdesk.llm_calls WHERE job_id = :job_id AND state <> 'not_sent'
""")

_LOCK = text("""
    SELECT c.id, c.state, c.job_id, c.article_id, c.phase, c.provider, c.model, c.prompt_version,
           c.worst_case_usd, c.sent_at, j.site, nightdesk.now() AS now
    FROM nightdesk.llm_calls c JOIN nightdesk.jobs j ON j.id = c.job_id
    WHERE c.id = :id FOR UPDATE OF c
""")

_ANSWER = text("""
    UPDATE nightdesk.llm_calls
    SET state = 'answered', ended_at = nightdesk.now(), answer = :answer, stop = :stop,
        usage = cast(:usage AS jsonb), raw_usage = cast(:raw_usage AS jsonb), request_id = :request_id,
        error = NULL
    WHERE id = :id
""")

_END = text("""
    UPDATE nightdesk.llm_calls SET state = :state, ended_at = nightdesk.now(), error = :error
    WHERE id = :id
""")

_OVERDUE = text("""
    SELECT id FROM nightdesk.llm_calls
    WHERE state = 'sent' AND deadline_at <= nightdesk.now() ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
""")

_OF_RUN = text("""
    SELECT c.id FROM nightdesk.llm_calls c
    JOIN nightdesk.job_attempts a ON a.job_id = c.job_id AND a.claim_no = c.claim_no
    WHERE c.state = 'sent' AND a.run = :run ORDER BY c.id FOR UPDATE OF c SKIP LOCKED
""")


def open_call(session: Session, call: NewCall) -> None:
    """Add the row; the caller commits before it sends the request."""
    session.connection().execute(_OPEN, asdict(call))


def answered(session: Session, call_key: str, ask_no: int) -> Row[Any] | None:
    """The stored answer to a key (`id, answer, stop`), None if it was not bought yet."""
    values = {"call_key": call_key, "ask_no": ask_no}
    return session.connection().execute(_ANSWERED, values).first()


def rejections(session: Session, call_key: str) -> list[Row[Any]]:
    """The answers to a question that we refused (`ask_no, claim_no, error`), in order."""
    return list(session.connection().execute(_REJECTIONS, {"call_key": call_key}))


def job_use(session: Session, job_id: int) -> JobUse:
    """What a job used over all its attempts."""
    row = session.connection().execute(_JOB_USE, {"job_id": job_id}).one()
    return JobUse(int(row.tokens), int(row.unknown_tokens), row.unknown_usd, row.open_usd)


def answer(session: Session, call_id: uuid.UUID, reply: ModelReply) -> None:
    """Store an answer and book its cost, however late it comes. A second time changes nothing.

    Money is never fenced: what was spent is booked, whoever spent it. A reply without usage is
    booked at the call's worst case.
    """
    call = _locked(session, call_id)
    if call.state not in ("sent", "unknown"):
        return
    values = {
        "id": call_id,
        "answer": storable(reply.text),
        "stop": reply.stop,
        "usage": bind_json(reply.usage.as_json() if reply.usage else None),
        "raw_usage": bind_json(reply.raw_usage),
        "request_id": reply.request_id,
    }
    session.connection().execute(_ANSWER, values)
    if reply.usage is None:
        if call.state == "sent":
            _book_unknown(session, call, "the provider's answer has no usage")
        return
    if call.state == "unknown":
        reverse(session, f"call:{call_id}:unknown", "the answer came late")
    priced = cost(call.provider, call.model, reply.usage, at=call.sent_at)
    _book(session, call, f"call:{call_id}", "work", priced.amount_usd, priced, call.now)


def fail(session: Session, call_id: uuid.UUID, billing: Billing, why: str) -> None:
    """Record that a call gave no answer; if it may have been billed, book its worst case."""
    if billing is Billing.UNKNOWN:
        write_off(session, call_id, why)
        return
    state = _locked(session, call_id).state
    if state == "unknown":
        reverse(session, f"call:{call_id}:unknown", "it was not billed after all")
    if state in ("sent", "unknown"):
        _end(session, call_id, "not_sent", why)


def write_off(session: Session, call_id: uuid.UUID, why: str) -> None:
    """Nobody knows whether a call was billed: book its worst case."""
    call = _locked(session, call_id)
    if call.state == "sent":
        _end(session, call_id, "unknown", why)
        _book_unknown(session, call, why)


def reject(session: Session, call_id: uuid.UUID, why: str) -> None:
    """An answer cannot be used."""
    if _locked(session, call_id).state == "answered":
        _end(session, call_id, "rejected", why)


def write_off_overdue(session: Session, limit: int = 100) -> int:
    """Write off the calls past their deadline; returns how many."""
    return _write_off_all(session, _OVERDUE, {"limit": limit}, "no answer by its deadline")


def write_off_run(session: Session, run: str) -> int:
    """Write off what a run that is known to be dead had in flight; returns how many."""
    return _write_off_all(session, _OF_RUN, {"run": run}, "the process that asked has died")


def _write_off_all(session: Session, query: Any, values: dict[str, Any], why: str) -> int:
    ids = session.connection().execute(query, values).scalars().all()
    for call_id in ids:
        write_off(session, call_id, why)
    return len(ids)


def _locked(session: Session, call_id: uuid.UUID) -> Row[Any]:
    return session.connection().execute(_LOCK, {"id": call_id}).one()


def _end(session: Session, call_id: uuid.UUID, state: str, why: str) -> None:
    error = shorten(storable(why), _MAX_ERROR)
    session.connection().execute(_END, {"id": call_id, "state": state, "error": error})


def _book_unknown(session: Session, call: Row[Any], why: str) -> None:
    provenance = {"source": "worst case", "at": call.sent_at.isoformat()}
    priced = Cost(call.worst_case_usd, provenance)
    _book(session, call, f"call:{call.id}:unknown", "unknown", call.worst_case_usd, priced, call.now, why)


def _book(
    session: Session,
    call: Row[Any],
    natural_key: str,
    account: str,
    amount_usd: Decimal,
    priced: Cost,
    occurred_at: datetime,
    memo: str = "",
) -> None:
    book_money(
        session,
        Entry(
            natural_key=natural_key,
            debit=f"{account}:{call.site}:{call.phase}",
            credit=f"provider:{call.provider}",
            amount_usd=amount_usd,
            occurred_at=occurred_at,
            job_id=call.job_id,
            article_id=call.article_id,
            call_id=call.id,
            site=call.site,
            phase=call.phase,
            provider=call.provider,
            model=call.model,
            prompt_version=call.prompt_version,
            price=priced.provenance,
            memo=shorten(storable(memo), _MAX_ERROR),
        ),
    )
