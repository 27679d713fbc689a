"""Lanes: pausing a provider or a site for everybody, and the breaker that says when it works again.

    works ── several tries of several jobs fail in a row, or Blocked ──▶ paused, unproven
    paused, unproven ── its time is over: one job tries it ──▶ works            (it got through)
                                                           └─▶ paused, longer   (it failed)

A pause that somebody else ended with a date (`ToldToWait`) is over at that date, without a trial. All of
it is rows, so that all workers see one state. Rows are locked in the order job, health, pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlmodel import Session

from nightdesk.desk.policy import BREAKER_WINDOW_S, PROBE_S, breaker_pause_s, is_down
from nightdesk.desk.queue import Claim
from nightdesk.errors import Lane, LaneKind
from nightdesk.models.lane_pause import LaneChange
from nightdesk.states import Phase

# A pause that is open is prolonged, never shortened: two jobs may report the same closed lane.
_PAUSE = text("""
    INSERT INTO nightdesk.lane_pauses (kind, name, reason, until, probe)
    VALUES (:kind, :name, :reason, nightdesk.now() + make_interval(secs => :pause_s), :probe)
    ON CONFLICT (kind, name) WHERE closed_at IS NULL
    DO UPDATE SET until = greatest(lane_pauses.until, excluded.until), reason = excluded.reason,
        probe = lane_pauses.probe AND excluded.probe
""")

_REOPEN = text("""
    UPDATE nightdesk.lane_pauses SET closed_at = nightdesk.now()
    WHERE closed_at IS NULL AND kind = :kind AND name = :name
""")

_END_DUE = text("""
    UPDATE nightdesk.lane_pauses SET closed_at = nightdesk.now()
    WHERE id IN (SELECT id FROM nightdesk.lane_pauses
                 WHERE closed_at IS NULL AND until <= nightdesk.now() FOR UPDATE SKIP LOCKED)
""")

_CLOSED = text("""
    SELECT kind, name FROM nightdesk.lane_pauses WHERE closed_at IS NULL AND until > nightdesk.now()
""")

_STATE = text("""
    SELECT p.reason, p.until, extract(epoch FROM p.until - nightdesk.now())::float8 AS left_s,
           coalesce(h.unproven, false) AS unproven,
           coalesce(h.probe_job_id = :job_id AND h.probe_claim_no = :claim_no, false) AS is_probe
    FROM (SELECT) one
    LEFT JOIN nightdesk.lane_pauses p
        ON p.kind = :kind AND p.name = :name AND p.closed_at IS NULL AND p.until > nightdesk.now()
    LEFT JOIN nightdesk.lane_health h ON h.kind = :kind AND h.name = :name
""")

_LOCK_HEALTH = text("SELECT true FROM nightdesk.lane_health WHERE kind = :kind AND name = :name FOR UPDATE")

# A probe lasts as long as its job's lease: a killed one is over when the job is taken back.
_IS_PROBED = text("""
    SELECT EXISTS (SELECT 1 FROM nightdesk.lane_health h JOIN nightdesk.jobs j
                   ON j.id = h.probe_job_id AND j.claim_no = h.probe_claim_no
                   WHERE h.kind = :kind AND h.name = :name
                     AND j.state = 'leased' AND j.locked_until > nightdesk.now())
""")

_TAKE_PROBE = text("""
    UPDATE nightdesk.lane_health SET probe_job_id = :job_id, probe_claim_no = :claim_no
    WHERE kind = :kind AND name = :name
""")

_END_PROBE = text("""
    UPDATE nightdesk.lane_pauses SET closed_at = nightdesk.now()
    WHERE closed_at IS NULL AND probe AND kind = :kind AND name = :name
""")

# Both arrays are cut to the window here, so that old failures are neither counted nor kept.
_FAILED = text("""
    INSERT INTO nightdesk.lane_health AS h (kind, name, failed_jobs, failed_at, unproven)
    VALUES (:kind, :name, ARRAY[cast(:job_id AS bigint)], ARRAY[nightdesk.now()], false)
    ON CONFLICT (kind, name) DO UPDATE SET (failed_jobs, failed_at) = (
        SELECT array_agg(job), array_agg(at)
        FROM unnest(h.failed_jobs || excluded.failed_jobs, h.failed_at || excluded.failed_at) f (job, at)
        WHERE at > nightdesk.now() - make_interval(secs => :window_s))
    RETURNING unproven, pause_s, cardinality(failed_jobs) AS attempts,
        (SELECT count(DISTINCT job) FROM unnest(failed_jobs) job) AS jobs
""")

_DOUBT = text("""
    INSERT INTO nightdesk.lane_health (kind, name, failed_jobs, failed_at, unproven)
    VALUES (:kind, :name, '{}', '{}', true)
    ON CONFLICT (kind, name) DO UPDATE SET unproven = true WHERE NOT lane_health.unproven
    RETURNING true
""")

_SET_PAUSE = text("""
    UPDATE nightdesk.lane_health SET pause_s = :pause_s WHERE kind = :kind AND name = :name
""")

_IN_DOUBT = text("SELECT EXISTS (SELECT 1 FROM nightdesk.lane_health WHERE kind = :kind AND name = :name)")

# A stored answer, or a text that the quality gate sent back, says nothing of the lane.
_GOT_THROUGH = {
    LaneKind.PROVIDER: text("""
        SELECT EXISTS (SELECT 1 FROM nightdesk.llm_calls
            WHERE job_id = :job_id AND claim_no = :claim_no AND state IN ('answered', 'rejected'))
    """),
    LaneKind.SITE: text("""
        SELECT EXISTS (SELECT 1 FROM nightdesk.publications
            WHERE article_id = :article_id AND job_id = :job_id AND claim_no = :claim_no
              AND state = 'verified' AND verified_at >= started_at)
    """),
}

# What got through before the breaker opened, and ended after, is no proof: only the probe is.
_TRUST = text("""
    DELETE FROM nightdesk.lane_health
    WHERE kind = :kind AND name = :name
      AND (NOT unproven OR (probe_job_id = :job_id AND probe_claim_no = :claim_no))
    RETURNING unproven
""")

_TRUST_AGAIN = text("""
    DELETE FROM nightdesk.lane_health WHERE kind = :kind AND name = :name RETURNING unproven
""")

_ADD_TRANSITION = text("""
    INSERT INTO nightdesk.lane_transitions (kind, name, change, reason)
    VALUES (:kind, :name, :change, :reason)
""")

_UNTOLD = text("""
    SELECT id, kind, name, change, reason, at FROM nightdesk.lane_transitions
    WHERE told_at IS NULL ORDER BY id LIMIT :limit
""")

_TOLD = text("""
    UPDATE nightdesk.lane_transitions SET told_at = nightdesk.now() WHERE id = ANY(:ids) AND told_at IS NULL
""")


class Paused(Exception):
    """A lane that a job needs is closed; the job waits and no attempt is counted."""

    def __init__(self, lane: Lane, reason: str, until: datetime, left_s: float) -> None:
        self.lane = lane
        self.left_s = left_s
        super().__init__(f"{lane} is paused until {until:%Y-%m-%d %H:%M:%S} UTC: {reason}")


@dataclass(frozen=True, slots=True)
class Transition:
    """A lane's breaker opened, or closed again, and nobody was told yet."""

    id: int
    lane: Lane
    change: LaneChange
    reason: str
    at: datetime


def lane_of(claim: Claim) -> Lane:
    """The one lane that a job works on."""
    if claim.phase is Phase.PUBLISH:
        return Lane(LaneKind.SITE, claim.site)
    return Lane(LaneKind.PROVIDER, claim.provider or "")


# ── pauses ───────────────────────────────────────────────────────────────────────────────────────


def pause(session: Session, lane: Lane, reason: str, pause_s: float, *, unproven: bool = False) -> None:
    """Close a lane for everybody for `pause_s` seconds.

    Args:
        unproven: after that, one job at a time tries it until one gets through; false: it is over then.
    """
    if unproven:
        _doubt(session, lane, reason)
    session.connection().execute(
        _PAUSE, _values(lane) | {"reason": reason, "pause_s": pause_s, "probe": False}
    )


def closed(session: Session) -> set[Lane]:
    """The lanes that are closed now, those included that one job tries while the others wait."""
    return {Lane(LaneKind(row.kind), row.name) for row in session.connection().execute(_CLOSED)}


def end_due(session: Session) -> int:
    """Close the books on pauses whose time is over; returns how many."""
    return int(session.connection().execute(_END_DUE).rowcount)


def reopen(session: Session, lane: Lane) -> bool:
    """A person says that a lane works, and it is trusted at once; False if it was open."""
    trusted = session.connection().execute(_TRUST_AGAIN, _values(lane)).scalar()
    ended = session.connection().execute(_REOPEN, _values(lane)).rowcount
    if trusted:
        _tell(session, lane, LaneChange.CLOSED, "it was opened by hand")
    return bool(ended or trusted)


# ── the breaker ──────────────────────────────────────────────────────────────────────────────────


def enter(session: Session, claim: Claim) -> Paused | None:
    """Whether a claim may use its lane now: None if so. One that comes to an unproven lane first tries it.

    It is returned and not raised, since what is written here is to be committed either way.
    """
    lane = lane_of(claim)
    state = _state(session, lane, claim)
    if state.unproven and state.until is None and not state.is_probe:
        # Whoever waited for the lock may find another at it, or that it failed or got through.
        state = _locked_state(session, lane, claim)
        if state.unproven and state.until is None:
            return _probe(session, lane, claim)
    if state.until is None or (state.unproven and state.is_probe):
        return None
    return Paused(lane, state.reason, state.until, state.left_s)


def _probe(session: Session, lane: Lane, claim: Claim) -> Paused | None:
    """Take the trial of a lane, or be held off by the one under way; its health is locked."""
    probed = session.connection().execute(_IS_PROBED, _values(lane)).scalar_one()
    end_due(session)
    session.connection().execute(
        _PAUSE,
        _values(lane) | {"reason": "one job tries whether it works", "pause_s": PROBE_S, "probe": True},
    )
    if not probed:
        session.connection().execute(_TAKE_PROBE, _values(lane) | _claim(claim))
        return None
    state = _state(session, lane, claim)
    return Paused(lane, state.reason, state.until, state.left_s)


def failed(session: Session, claim: Claim, lane: Lane, reason: str) -> float | None:
    """A claim's attempt ended in a transient error of a lane. The caller has locked its job.

    Returns:
        After how many seconds the job should come back, uncounted, because the lane is down; None if it
        is not known to be: then it is a failed attempt like any other.
    """
    noted = _values(lane) | {"job_id": claim.job_id, "window_s": BREAKER_WINDOW_S}
    health = session.connection().execute(_FAILED, noted).one()
    state = _state(session, lane, claim)
    if health.unproven and not state.is_probe:
        return max(state.left_s or 0.0, PROBE_S)
    if not health.unproven and not is_down(health.attempts, health.jobs):
        return None
    pause_s = breaker_pause_s(health.pause_s)
    pause(session, lane, reason, pause_s, unproven=True)
    session.connection().execute(_SET_PAUSE, _values(lane) | {"pause_s": pause_s})
    # The job that tried it in vain lets the others go first: it may be what fails, not the lane.
    return 2 * pause_s if state.is_probe else pause_s


def ended(session: Session, claim: Claim) -> None:
    """A claim's attempt ended, its lane not being what failed it.

    If it got through, the failures before it are forgotten, and a lane that it tried works again. A trial
    that never got to the lane leaves it to the next job. In the usual case this is one small read.
    """
    lane = lane_of(claim)
    if not session.connection().execute(_IN_DOUBT, _values(lane)).scalar_one():
        return
    fence = _claim(claim) | {"article_id": claim.article_id}
    if session.connection().execute(_GOT_THROUGH[lane.kind], fence).scalar_one():
        doubted = session.connection().execute(_TRUST, _values(lane) | _claim(claim)).scalar()
        if doubted:
            session.connection().execute(_END_PROBE, _values(lane))
            _tell(session, lane, LaneChange.CLOSED, f"job {claim.job_id} got through")
        return
    if _locked_state(session, lane, claim).is_probe:
        session.connection().execute(_END_PROBE, _values(lane))


# ── what is to be told ───────────────────────────────────────────────────────────────────────────


def transitions_to_tell(session: Session, limit: int = 100) -> list[Transition]:
    """What changed and was not told yet, in order.

    One sender at a time: tell them, then `mark_told` what was sent. A sender that is killed in between
    tells it again.
    """
    return [
        Transition(row.id, Lane(LaneKind(row.kind), row.name), LaneChange(row.change), row.reason, row.at)
        for row in session.connection().execute(_UNTOLD, {"limit": limit})
    ]


def mark_told(session: Session, transitions: Sequence[Transition]) -> int:
    """These were told and are not told again; returns how many were not marked before."""
    ids = [transition.id for transition in transitions]
    return int(session.connection().execute(_TOLD, {"ids": ids}).rowcount)


def _doubt(session: Session, lane: Lane, reason: str) -> None:
    if session.connection().execute(_DOUBT, _values(lane)).scalar():
        _tell(session, lane, LaneChange.OPENED, reason)


def _tell(session: Session, lane: Lane, change: LaneChange, reason: str) -> None:
    session.connection().execute(_ADD_TRANSITION, _values(lane) | {"change": change, "reason": reason})


def _locked_state(session: Session, lane: Lane, claim: Claim) -> Row[Any]:
    """The state of a lane whose health row is locked from now on, if there is one.

    Who waited for a row that was deleted meanwhile has locked nothing, although there may be a new one:
    to go on would take the pause before the health, and somebody else takes them the other way round.
    """
    while True:
        locked = session.connection().execute(_LOCK_HEALTH, _values(lane)).first() is not None
        state = _state(session, lane, claim)
        if locked or not state.unproven:
            return state


def _state(session: Session, lane: Lane, claim: Claim) -> Row[Any]:
    return session.connection().execute(_STATE, _values(lane) | _claim(claim)).one()


def _values(lane: Lane) -> dict[str, object]:
    return {"kind": lane.kind, "name": lane.name}


def _claim(claim: Claim) -> dict[str, object]:
    return {"job_id": claim.job_id, "claim_no": claim.claim_no}
