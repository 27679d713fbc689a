"""The queue: rows in Postgres, claimed in batches, every write fenced by the claim number.

Each function takes a session and leaves the commit to its caller. Writes by a worker end in
`Fenced` if its claim has ended in the meantime: then nothing of its transaction may stay.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import TextClause, text
from sqlmodel import Session

from nightdesk.db import bind_json
from nightdesk.desk.failure_record import MAX_MESSAGE, MAX_STACK, FailureRecord
from nightdesk.desk.idle import IS_THERE_WORK
from nightdesk.desk.policy import ATTEMPTS, MOST_DEATHS, Verdict
from nightdesk.errors import Fenced
from nightdesk.states import JobState, Phase
from nightdesk.text import shorten, storable

#: Reasons for a person that a job keeps.
MOST_REASONS = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may use over all its attempts."""

    max_tokens: int
    max_usd: Decimal
    max_attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True)
class Pin:
    """What a phase is done with; the first claim of a job keeps it for all its attempts."""

    provider: str | None = None
    model: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that this worker holds until its lease ends."""

    job_id: int
    claim_no: int
    run: str
    article_id: uuid.UUID
    phase: Phase
    round: int
    attempts: int
    max_attempts: int
    site: str
    provider: str | None
    model: str | None
    prompt_version: str | None


_ADD = text("""
    INSERT INTO nightdesk.jobs (article_id, phase, round, state, priority, claim_no, attempts, deaths, site,
        max_attempts, max_tokens, max_usd)
    SELECT a.id, :phase, :round, 'ready', a.priority, 0, 0, 0, a.site, :max_attempts, :max_tokens, :max_usd
    FROM nightdesk.articles a WHERE a.id = :article_id
    ON CONFLICT (article_id, phase, round) DO NOTHING
""")

# The rows are chosen in a materialised CTE: a plain sub-select may be evaluated again and lock more.
_CLAIM = """
    WITH chosen AS MATERIALIZED (
        SELECT id FROM nightdesk.jobs
        WHERE state = 'ready' AND phase = :phase AND site <> ALL(:closed_sites) AND deaths {deaths} {only}
        ORDER BY priority DESC, created_at, id
        LIMIT :limit FOR UPDATE SKIP LOCKED
    ), claimed AS (
        UPDATE nightdesk.jobs j
        SET state = 'leased', locked_by = :run, claim_no = claim_no + 1, attempts = attempts + 1,
            locked_until = nightdesk.now() + make_interval(secs => :lease_s),
            provider = coalesce(provider, :provider), model = coalesce(model, :model),
            prompt_version = coalesce(prompt_version, :prompt_version),
            reason = NULL, reasons = NULL, due_at = NULL, error_class = NULL, updated_at = nightdesk.now()
        FROM chosen WHERE j.id = chosen.id
        RETURNING j.id, j.claim_no, j.article_id, j.phase, j.round, j.attempts, j.max_attempts, j.site,
                  j.provider, j.model, j.prompt_version, j.priority, j.created_at
    ), attempt AS (
        INSERT INTO nightdesk.job_attempts (job_id, claim_no, run, counted, model, prompt_version)
        SELECT id, claim_no, :run, true, model, prompt_version FROM claimed
    )
    SELECT * FROM claimed ORDER BY priority DESC, created_at, id
"""
# What admission looks at: the same rows in the same order, locked, with the most that each may still spend.
_CANDIDATES = """
    SELECT j.id, j.site, greatest(j.max_usd - (
        SELECT coalesce(sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END), 0)
        FROM nightdesk.ledger_entries WHERE job_id = j.id AND book = 'money'), 0) AS left_usd
    FROM nightdesk.jobs j
    WHERE state = 'ready' AND phase = :phase AND site <> ALL(:closed_sites) AND deaths {deaths} {only}
      AND id <> ALL(:taken) AND priority >= :least_priority
    ORDER BY priority DESC, created_at, id
    LIMIT :limit FOR UPDATE OF j SKIP LOCKED
"""
_OF_ARTICLES = "AND article_id = ANY(:articles)"


def _variants(statement: str) -> dict[tuple[bool, bool], TextClause]:
    """By (suspects, only some articles). A job is a suspect after two runs died over it."""
    return {
        (suspects, some): text(
            statement.format(deaths=">= 2" if suspects else "< 2", only=_OF_ARTICLES if some else "")
        )
        for suspects in (False, True)
        for some in (False, True)
    }


_CLAIMS = _variants(_CLAIM)
_LOOKS = _variants(_CANDIDATES)

_CLAIM_THESE = text(_CLAIM.format(deaths=">= 0", only="AND id = ANY(:these)"))

_RENEW = text("""
    WITH held AS MATERIALIZED (
        SELECT j.id FROM unnest(cast(:job_ids AS bigint[]), cast(:claim_nos AS int[])) k (job_id, claim_no)
        JOIN nightdesk.jobs j ON j.id = k.job_id AND j.claim_no = k.claim_no AND j.state = 'leased'
        ORDER BY j.id FOR UPDATE OF j
    )
    UPDATE nightdesk.jobs j SET locked_until = nightdesk.now() + make_interval(secs => :lease_s)
    FROM held WHERE j.id = held.id RETURNING j.id
""")

_HAND_BACK = text("""
    WITH held AS MATERIALIZED (
        SELECT id FROM nightdesk.jobs
        WHERE state = 'leased' AND locked_by = :run AND id <> ALL(:at_work) ORDER BY id FOR UPDATE
    ), returned AS (
        UPDATE nightdesk.jobs j
        SET state = 'ready', attempts = attempts - 1, locked_by = NULL, locked_until = NULL,
            updated_at = nightdesk.now()
        FROM held WHERE j.id = held.id RETURNING j.id, j.claim_no
    ), ended AS (
        UPDATE nightdesk.job_attempts a
        SET ended_at = nightdesk.now(), outcome = 'ready', counted = false, error_message = 'given back'
        FROM returned r WHERE a.job_id = r.id AND a.claim_no = r.claim_no
    )
    SELECT count(*) FROM returned
""")

_RELEASE = text("""
    WITH released AS (
        UPDATE nightdesk.jobs
        SET state = :state, reason = :message, reasons = cast(:reasons AS jsonb), error_class = :error_class,
            due_at = nightdesk.now() + make_interval(secs => :wait_s),
            attempts = attempts - CASE WHEN :counted THEN 0 ELSE 1 END,
            locked_by = NULL, locked_until = NULL, updated_at = nightdesk.now()
        WHERE id = :job_id AND state = 'leased' AND claim_no = :claim_no
        RETURNING id, claim_no
    ), ended AS (
        UPDATE nightdesk.job_attempts a
        SET ended_at = nightdesk.now(), outcome = :state, counted = :counted, error_class = :error_class,
            error_message = :message, error_stack = :error_stack
        FROM released r WHERE a.job_id = r.id AND a.claim_no = r.claim_no
    )
    SELECT count(*) FROM released
""")

_WAKE = text("""
    WITH due AS MATERIALIZED (
        SELECT id FROM nightdesk.jobs WHERE state = 'waiting' AND due_at <= nightdesk.now()
          AND (cast(:phase AS text) IS NULL OR phase = :phase)
        ORDER BY due_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
    )
    UPDATE nightdesk.jobs j SET state = 'ready', due_at = NULL, reason = NULL, updated_at = nightdesk.now()
    FROM due WHERE j.id = due.id
""")

_WAKE_ARTICLE = text("""
    UPDATE nightdesk.jobs SET state = 'ready', due_at = NULL, reason = NULL, updated_at = nightdesk.now()
    WHERE article_id = :article_id AND state = 'waiting'
""")

# The rows are chosen first and their state is checked again in the update: a worker may have finished.
_RESCUE_EXPIRED = text("""
    WITH lost AS MATERIALIZED (
        SELECT id FROM nightdesk.jobs WHERE state = 'leased' AND locked_until <= nightdesk.now()
          AND (cast(:phase AS text) IS NULL OR phase = :phase)
        ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
    ), rescued AS (
        UPDATE nightdesk.jobs j
        SET state = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'ready' END,
            reason = 'the worker of attempt ' || attempts || ' ended without a word',
            error_class = CASE WHEN attempts >= max_attempts THEN 'lease_expired' END,
            locked_by = NULL, locked_until = NULL, updated_at = nightdesk.now()
        FROM lost WHERE j.id = lost.id AND j.state = 'leased'
        RETURNING j.id, j.claim_no
    ), ended AS (
        UPDATE nightdesk.job_attempts a
        SET ended_at = nightdesk.now(), outcome = 'lease expired', error_class = 'lease_expired',
            error_message = 'the worker ended without a word (killed, crashed or cut off)'
        FROM rescued r WHERE a.job_id = r.id AND a.claim_no = r.claim_no
    )
    SELECT id FROM rescued ORDER BY id
""")

# A run that a person killed took several jobs with it: that is no failed attempt of theirs. A job that
# kills its runs is bounded all the same.
_RESCUE_RUN = text("""
    WITH lost AS MATERIALIZED (
        SELECT id FROM nightdesk.jobs WHERE state = 'leased' AND locked_by = :run
        ORDER BY id FOR UPDATE SKIP LOCKED
    ), rescued AS (
        UPDATE nightdesk.jobs j
        SET state = CASE WHEN deaths + 1 >= :most_deaths THEN 'failed' ELSE 'ready' END,
            reason = 'its run was killed (' || deaths + 1 || ' times so far)',
            error_class = CASE WHEN deaths + 1 >= :most_deaths THEN 'run_killed' END,
            attempts = attempts - 1, deaths = deaths + 1,
            locked_by = NULL, locked_until = NULL, updated_at = nightdesk.now()
        FROM lost WHERE j.id = lost.id AND j.state = 'leased'
        RETURNING j.id, j.claim_no
    ), ended AS (
        UPDATE nightdesk.job_attempts a
        SET ended_at = nightdesk.now(), outcome = 'run killed', counted = false, error_class = 'run_killed',
            error_message = 'the run was killed or crashed'
        FROM rescued r WHERE a.job_id = r.id AND a.claim_no = r.claim_no
    )
    SELECT id FROM rescued ORDER BY id
""")


def add_job(session: Session, article_id: uuid.UUID, phase: Phase, round: int, limits: Limits) -> None:
    """Add a ready job; a second one for the same article, phase and round changes nothing."""
    session.connection().execute(
        _ADD,
        {
            "article_id": article_id,
            "phase": phase,
            "round": round,
            "max_attempts": limits.max_attempts,
            "max_tokens": limits.max_tokens,
            "max_usd": limits.max_usd,
        },
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ready job that is locked and not claimed."""

    job_id: int
    site: str
    left_usd: Decimal  #: of its own limit


def claim(
    session: Session,
    *,
    run: str,
    phase: Phase,
    limit: int,
    lease_s: float,
    pin: Pin,
    articles: Sequence[uuid.UUID] | None = None,
    closed_sites: Sequence[str] = (),
    suspects: bool = False,
) -> list[Claim]:
    """Take up to `limit` ready jobs of a phase, the highest priority first, the oldest among equals.

    The attempt is counted here, so that a job which kills its worker is bounded. `articles`: only jobs
    of these; `closed_sites`: none of these. `suspects`: only jobs over which runs have died; each of them
    must be worked on alone in its process, so that it takes nobody with it.
    """
    values = _wanted(phase, limit, articles, closed_sites) | _claiming(run, lease_s, pin)
    return _claims(session, _CLAIMS[suspects, articles is not None], values, run)


def candidates(
    session: Session,
    *,
    phase: Phase,
    limit: int,
    articles: Sequence[uuid.UUID] | None = None,
    closed_sites: Sequence[str] = (),
    suspects: bool = False,
    taken: Sequence[int] = (),
    least_priority: int | None = None,
) -> list[Candidate]:
    """What `claim` would take, locked until the transaction ends; none of `taken`."""
    values = _wanted(phase, limit, articles, closed_sites) | {
        "taken": list(taken),
        "least_priority": -(2**31) if least_priority is None else least_priority,
    }
    return [
        Candidate(row.id, row.site, row.left_usd)
        for row in session.connection().execute(_LOOKS[suspects, articles is not None], values)
    ]


def claim_these(
    session: Session, jobs: Sequence[int], *, run: str, phase: Phase, lease_s: float, pin: Pin
) -> list[Claim]:
    """Take candidates that this transaction has locked."""
    values = _wanted(phase, len(jobs), None, ()) | {"these": list(jobs)} | _claiming(run, lease_s, pin)
    return _claims(session, _CLAIM_THESE, values, run) if jobs else []


def _wanted(
    phase: Phase, limit: int, articles: Sequence[uuid.UUID] | None, closed_sites: Sequence[str]
) -> dict[str, object]:
    given = {} if articles is None else {"articles": list(articles)}
    return {"phase": phase, "limit": limit, "closed_sites": list(closed_sites)} | given


def _claiming(run: str, lease_s: float, pin: Pin) -> dict[str, object]:
    return {
        "run": run,
        "lease_s": lease_s,
        "provider": pin.provider,
        "model": pin.model,
        "prompt_version": pin.prompt_version,
    }


def _claims(session: Session, query: TextClause, values: dict[str, object], run: str) -> list[Claim]:
    return [
        Claim(
            job_id=row.id,
            claim_no=row.claim_no,
            run=run,
            article_id=row.article_id,
            phase=Phase(row.phase),
            round=row.round,
            attempts=row.attempts,
            max_attempts=row.max_attempts,
            site=row.site,
            provider=row.provider,
            model=row.model,
            prompt_version=row.prompt_version,
        )
        for row in session.connection().execute(query, values)
    ]


def renew(session: Session, claim: Claim, lease_s: float) -> None:
    """Lengthen a lease from now.

    Raises:
        Fenced: if the claim has ended.
    """
    if not renew_all(session, [claim], lease_s):
        raise Fenced(claim.job_id, claim.claim_no)


def renew_all(session: Session, claims: Sequence[Claim], lease_s: float) -> set[int]:
    """Lengthen leases from now; returns the ids of the jobs that are still held."""
    values = {
        "job_ids": [claim.job_id for claim in claims],
        "claim_nos": [claim.claim_no for claim in claims],
        "lease_s": lease_s,
    }
    return set(session.connection().execute(_RENEW, values).scalars())


def hand_back_run(session: Session, run: str, at_work: Sequence[int] = ()) -> int:
    """Give back uncounted what a run holds and does not work on; returns how many jobs.

    A claim whose commit was cut off, or whose result was lost to a cancellation, leaves such jobs.
    """
    values = {"run": run, "at_work": list(at_work)}
    return int(session.connection().execute(_HAND_BACK, values).scalar_one())


def finish(session: Session, claim: Claim, note: str | None = None) -> None:
    """The job is done; the caller writes its output and the next job in the same transaction.

    Raises:
        Fenced: if the claim has ended; the caller's transaction must not be committed.
    """
    _release(session, claim, Verdict(JobState.DONE), FailureRecord(message=note or ""))


def give_up(session: Session, claim: Claim, verdict: Verdict, record: FailureRecord) -> None:
    """The attempt ended in an error: move the job to where the policy says.

    Raises:
        Fenced: if the claim has ended.
    """
    _release(session, claim, verdict, record)


def _release(session: Session, claim: Claim, verdict: Verdict, record: FailureRecord) -> None:
    # The last door before the rows: an end that cannot be written would leave the job leased.
    reasons = [
        {key: _bounded(value, MAX_MESSAGE) for key, value in reason.items()}
        for reason in record.reasons[:MOST_REASONS]
    ]
    values = {
        "job_id": claim.job_id,
        "claim_no": claim.claim_no,
        "state": verdict.state,
        "message": _bounded(record.message, MAX_MESSAGE) or None,
        "reasons": bind_json(reasons or None),
        "error_class": record.error_class,
        "error_stack": _bounded(record.stack, MAX_STACK) or None,
        "wait_s": verdict.wait_s,
        "counted": verdict.counted,
    }
    if not session.connection().execute(_RELEASE, values).scalar_one():
        raise Fenced(claim.job_id, claim.claim_no)


def _bounded(value: str, limit: int) -> str:
    return storable(shorten(value, limit))


_IS_THERE_WORK = text(IS_THERE_WORK.replace("%(phase)s", ":phase"))


def is_there_work(session: Session, phase: Phase) -> bool:
    """True if a tick of this phase would find something to do."""
    return bool(session.connection().execute(_IS_THERE_WORK, {"phase": phase}).scalar_one())


def wake_due(session: Session, phase: Phase | None = None, limit: int = 500) -> int:
    """Make waiting jobs ready whose time has come; returns how many."""
    values = {"limit": limit, "phase": phase}
    return int(session.connection().execute(_WAKE, values).rowcount)


def wake_article(session: Session, article_id: uuid.UUID) -> int:
    """A person wants an article's waiting jobs tried now; returns how many there were."""
    return int(session.connection().execute(_WAKE_ARTICLE, {"article_id": article_id}).rowcount)


def rescue_expired(session: Session, phase: Phase | None = None, limit: int = 500) -> list[int]:
    """Take back jobs whose lease ran out: ready again, or failed if no attempt is left. Returns their ids."""
    values = {"limit": limit, "phase": phase}
    return list(session.connection().execute(_RESCUE_EXPIRED, values).scalars())


def rescue_run(session: Session, run: str, most_deaths: int = MOST_DEATHS) -> list[int]:
    """Take back at once what a run holds that is known to be dead. Returns the jobs' ids.

    It costs no attempt: a run takes several jobs with it. After `most_deaths` runs a job is given up as
    their likely cause.
    """
    values = {"run": run, "most_deaths": most_deaths}
    return list(session.connection().execute(_RESCUE_RUN, values).scalars())
