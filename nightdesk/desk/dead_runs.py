"""What a run leaves that has died: its jobs, its calls to models, its sites."""

from __future__ import annotations

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.desk import queue, site_lease
from nightdesk.llm.calls import write_off_run

_HOLDERS = text("""
    SELECT DISTINCT locked_by FROM nightdesk.jobs
    WHERE state = 'leased' AND locked_by IS NOT NULL ORDER BY locked_by
""")


def take_back_run(session: Session, run: str) -> list[int]:
    """Take back at once what a run holds that is known to be dead; returns the jobs' ids.

    Calls in flight are booked at their worst case: a late answer corrects that. If the run lives on
    after all, its claims have ended and nothing that it writes about them is accepted.
    """
    write_off_run(session, run)
    jobs = queue.rescue_run(session, run)
    site_lease.release_run(session, run)
    return jobs


def holders(session: Session) -> list[str]:
    """The runs that hold jobs now."""
    return [str(run) for run in session.connection().execute(_HOLDERS).scalars()]
