"""From `failed` to `dead`: one idempotent way, whoever brings the job."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, select

from nightdesk.db import bind_json
from nightdesk.desk.failure_record import record_failure
from nightdesk.desk.phases import MODEL_PHASES
from nightdesk.desk.phases.model_phase import Inputs
from nightdesk.desk.queue import Claim
from nightdesk.errors import InputError, InputProblem
from nightdesk.models.article import Article
from nightdesk.models.job import Job
from nightdesk.models.phase_outputs import RevisionRow
from nightdesk.states import JobState, Phase
from nightdesk.text import storable

log = logging.getLogger(__name__)

_FAILED = text("""
    SELECT id FROM nightdesk.jobs WHERE state = 'failed' AND id = ANY(:ids) ORDER BY id FOR UPDATE
""")

_ADD = text("""
    INSERT INTO nightdesk.dead_letters (job_id, claim_no, article_id, phase, input, error_class, message,
        stack, attempts, cost_usd, run, run_url, layer)
    SELECT j.id, j.claim_no, j.article_id, j.phase, cast(:input AS jsonb),
           coalesce(j.error_class, 'unknown'), coalesce(j.reason, ''), coalesce(last.error_stack, ''),
           (SELECT coalesce(jsonb_agg(to_jsonb(a) - 'id' ORDER BY a.claim_no), '[]')
            FROM nightdesk.job_attempts a WHERE a.job_id = j.id),
           (SELECT coalesce(sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END), 0)
            FROM nightdesk.ledger_entries WHERE article_id = j.article_id AND book = 'money'),
           last.run, :run_url, :layer
    FROM nightdesk.jobs j
    LEFT JOIN nightdesk.job_attempts last ON last.job_id = j.id AND last.claim_no = j.claim_no
    WHERE j.id = :job_id
    ON CONFLICT (job_id, claim_no) DO NOTHING
""")

_BURY = text("""
    UPDATE nightdesk.jobs SET state = 'dead', updated_at = nightdesk.now()
    WHERE id = :job_id AND state = 'failed'
""")


def route_failed(session: Session, job_ids: Sequence[int], layer: str, run_url: str | None = None) -> int:
    """Give every `failed` job among these a dead letter with its full context; returns how many.

    A second call, by this layer or another, changes nothing. A job that cannot be routed stays `failed`
    and stops no other.
    """
    failed = session.connection().execute(_FAILED, {"ids": list(job_ids)}).scalars().all()
    return sum(_route(session, job_id, layer, run_url) for job_id in failed)


def _route(session: Session, job_id: int, layer: str, run_url: str | None) -> bool:
    values = {"job_id": job_id, "layer": layer, "run_url": run_url}
    unreadable = None
    for _ in ("with its input", "without"):
        try:
            with session.begin_nested():
                given = job_input(session, job_id) if unreadable is None else {"unreadable": unreadable}
                session.connection().execute(_ADD, values | {"input": bind_json(given)})
                session.connection().execute(_BURY, {"job_id": job_id})
            return True
        except Exception as error:
            _raise_if_cut_off(error)
            log.exception("job %s cannot be given its dead letter", job_id)
            # A letter without the input is worth more than none: it has the error and every attempt.
            unreadable = record_failure(error).message
    return False


def _raise_if_cut_off(error: Exception) -> None:
    """A lost connection ends the whole transaction, and its own error says that it may be tried again."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        raise error


_FAILED_OF_RUN = text("""
    SELECT j.id FROM nightdesk.jobs j
    JOIN nightdesk.job_attempts a ON a.job_id = j.id AND a.claim_no = j.claim_no
    WHERE j.state = 'failed' AND a.run = :run ORDER BY j.id
""")
# Rows that another layer is at are left to it: two sweeps never wait for each other.
_FAILED_BEFORE = text("""
    SELECT j.id, a.run FROM nightdesk.jobs j
    LEFT JOIN nightdesk.job_attempts a ON a.job_id = j.id AND a.claim_no = j.claim_no
    WHERE j.state = 'failed' AND j.updated_at <= nightdesk.now() - make_interval(secs => :grace_s)
    ORDER BY j.updated_at LIMIT :limit FOR UPDATE OF j SKIP LOCKED
""")


def route_run(session: Session, run: str, layer: str, run_url: str | None = None) -> int:
    """Route the failed jobs whose last attempt was made by a run; returns how many."""
    jobs = session.connection().execute(_FAILED_OF_RUN, {"run": run}).scalars().all()
    return route_failed(session, jobs, layer, run_url)


def sweep_failed(
    session: Session,
    grace_s: float,
    layer: str,
    limit: int = 100,
    url_of_run: Callable[[str], str | None] | None = None,
) -> int:
    """Route failed jobs that nobody routed within the grace; returns how many."""
    rows = session.connection().execute(_FAILED_BEFORE, {"grace_s": grace_s, "limit": limit}).all()
    routed = 0
    for row in rows:
        url = url_of_run(row.run) if url_of_run is not None and row.run is not None else None
        routed += route_failed(session, [row.id], layer, url)
    return routed


_LETTER = text("""
    SELECT d.id, d.resolution, d.resolved_by, d.claim_no, j.id AS job_id, j.state, j.claim_no AS job_claim_no
    FROM nightdesk.dead_letters d JOIN nightdesk.jobs j ON j.id = d.job_id
    WHERE d.id = :id FOR UPDATE OF j, d
""")
# `claim_no` stays: a zombie of the first life must not match the second.
_REQUEUE = text("""
    UPDATE nightdesk.jobs
    SET state = 'ready', attempts = 0, deaths = 0, reason = NULL, reasons = NULL, error_class = NULL,
        due_at = NULL, max_usd = greatest(max_usd, coalesce(:max_usd, max_usd)),
        max_tokens = greatest(max_tokens, coalesce(:max_tokens, max_tokens)), updated_at = nightdesk.now()
    WHERE id = :job_id AND state = 'dead'
""")
_CANCEL = text("""
    UPDATE nightdesk.jobs SET state = 'cancelled', updated_at = nightdesk.now()
    WHERE id = :job_id AND state = 'dead'
""")
_RESOLVE = text("""
    UPDATE nightdesk.dead_letters
    SET resolution = :resolution, resolved_by = :who, resolved_why = :why, resolved_at = nightdesk.now()
    WHERE id = :id
""")


def requeue(
    session: Session,
    letter_id: int,
    *,
    who: str,
    why: str,
    max_usd: Decimal | None = None,
    max_tokens: int | None = None,
) -> None:
    """Try a dead job again, with all its attempts and, if given, higher limits; the letter stays.

    Raises:
        InputError: if there is no such letter, it was dealt with, no reason is given, or a limit is none.
    """
    for name, limit in (("max_usd", max_usd), ("max_tokens", max_tokens)):
        if limit is not None and not (Decimal(limit).is_finite() and limit > 0):
            raise InputError(name, [InputProblem(f"{limit} is no limit: give a number above 0")])
    job_id = _resolve(session, letter_id, "requeued", who, why)
    values = {"job_id": job_id, "max_usd": max_usd, "max_tokens": max_tokens}
    session.connection().execute(_REQUEUE, values)


def discard(session: Session, letter_id: int, *, who: str, why: str) -> None:
    """Give up a dead job's article for good; the letter stays.

    Raises:
        InputError: if there is no such letter, it was dealt with, or no reason is given.
    """
    job_id = _resolve(session, letter_id, "discarded", who, why)
    session.connection().execute(_CANCEL, {"job_id": job_id})


def _resolve(session: Session, letter_id: int, resolution: str, who: str, why: str) -> int:
    letter = session.connection().execute(_LETTER, {"id": letter_id}).first()
    who, why = storable(who).strip(), storable(why).strip()
    problem = None
    if letter is None:
        problem = f"there is no dead letter {letter_id}"
    elif letter.resolution is not None:
        problem = f"dead letter {letter_id} was {letter.resolution} by {letter.resolved_by} already"
    elif letter.state != JobState.DEAD or letter.job_claim_no != letter.claim_no:
        problem = f"the job of dead letter {letter_id} is {letter.state} by now: there is nothing to decide"
    elif not why or not who:
        problem = "say who decides, and why: the letter keeps both"
    if problem is not None:
        raise InputError(f"dead letter {letter_id}", [InputProblem(problem)])
    assert letter is not None
    values = {"id": letter_id, "resolution": resolution, "who": who, "why": why}
    session.connection().execute(_RESOLVE, values)
    return int(letter.job_id)


def job_input(session: Session, job_id: int) -> dict[str, Any]:
    """All that a job was given: the article's ask and the phase's typed input, as far as it exists."""
    job = session.exec(select(Job).where(Job.id == job_id)).one()
    article = session.exec(select(Article).where(Article.id == job.article_id)).one()
    given: dict[str, Any] = {"article": article.model_dump(mode="json")}
    try:
        with session.begin_nested():
            given["phase"] = _phase_input(session, job)
    except Exception as error:
        _raise_if_cut_off(error)
        # The input may be what broke the job: the letter must be written all the same.
        given["phase"] = f"could not be read: {type(error).__name__}: {error}"
    return given


def _phase_input(session: Session, job: Job) -> dict[str, Any]:
    assert job.id is not None
    phase = Phase(job.phase)
    if phase is Phase.PUBLISH:
        rows = session.exec(select(RevisionRow).where(RevisionRow.article_id == job.article_id)).all()
        return {"revisions": [row.model_dump(mode="json") for row in rows]}
    inputs: Inputs = MODEL_PHASES[phase].inputs(session, _as_claim(job, job.id))
    return inputs.model_dump(mode="json")


def _as_claim(job: Job, job_id: int) -> Claim:
    return Claim(
        job_id=job_id,
        claim_no=job.claim_no,
        run="",
        article_id=uuid.UUID(str(job.article_id)),
        phase=Phase(job.phase),
        round=job.round,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        site=job.site,
        provider=job.provider,
        model=job.model,
        prompt_version=job.prompt_version,
    )
