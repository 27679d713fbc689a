"""Pausing a provider or a site for everybody."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.errors import Lane, LaneKind

# A pause that is open is prolonged, never shortened: two jobs may report the same closed lane.
_PAUSE = text("""
    INSERT INTO nightdesk.lane_pauses (kind, name, reason, until)
    VALUES (:kind, :name, :reason, nightdesk.now() + make_interval(secs => :pause_s))
    ON CONFLICT (kind, name) WHERE closed_at IS NULL
    DO UPDATE SET until = greatest(lane_pauses.until, excluded.until), reason = excluded.reason
""")

_PAUSED = text("""
    SELECT kind, name, reason, until, extract(epoch FROM until - nightdesk.now())::float8 AS left_s
    FROM nightdesk.lane_pauses
    WHERE closed_at IS NULL AND until > nightdesk.now()
      AND ((kind = 'provider' AND name = :provider) OR (kind = 'site' AND name = :site))
    ORDER BY until DESC LIMIT 1
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


class Paused(Exception):
    """A lane that a job needs is closed; the job waits and no attempt is counted."""

    def __init__(self, lane: Lane, reason: str, until: datetime, left_s: float) -> None:
        self.lane = lane
        self.left_s = left_s
        super().__init__(f"{lane} is paused until {until:%Y-%m-%d %H:%M:%S} UTC: {reason}")


def pause(session: Session, lane: Lane, reason: str, pause_s: float) -> None:
    """Close a lane for everybody for `pause_s` seconds."""
    values = {"kind": lane.kind, "name": lane.name, "reason": reason, "pause_s": pause_s}
    session.connection().execute(_PAUSE, values)


def closed(session: Session) -> set[Lane]:
    """The lanes that are closed now."""
    return {Lane(LaneKind(row.kind), row.name) for row in session.connection().execute(_CLOSED)}


def require_open(session: Session, *, provider: str | None, site: str | None) -> None:
    """Raise `Paused` if one of the lanes is closed now."""
    row = session.connection().execute(_PAUSED, {"provider": provider, "site": site}).first()
    if row is not None:
        raise Paused(Lane(LaneKind(row.kind), row.name), row.reason, row.until, row.left_s)


def end_due(session: Session) -> int:
    """Close the books on pauses whose time is over; returns how many."""
    return int(session.connection().execute(_END_DUE).rowcount)


def reopen(session: Session, lane: Lane) -> bool:
    """Open a lane again, because something worked on it or a person says so; False if it was open."""
    values = {"kind": lane.kind, "name": lane.name}
    return bool(session.connection().execute(_REOPEN, values).rowcount)
