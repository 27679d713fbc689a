"""One publisher per site: a fenced lease on the site's row."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text
from sqlmodel import Session

LEASE_S = 600.0

_ROW = text("INSERT INTO nightdesk.site_leases (site, claim_no) VALUES (:site, 0) ON CONFLICT DO NOTHING")
_TAKE = text("""
    UPDATE nightdesk.site_leases
    SET locked_by = :holder, locked_until = nightdesk.now() + make_interval(secs => :lease_s),
        claim_no = claim_no + 1
    WHERE site = :site
      AND (locked_by IS NULL OR locked_by = :holder OR locked_until <= nightdesk.now())
    RETURNING claim_no
""")
_RENEW = text("""
    UPDATE nightdesk.site_leases SET locked_until = nightdesk.now() + make_interval(secs => :lease_s)
    WHERE site = :site AND claim_no = :claim_no AND locked_by IS NOT NULL
""")
_RELEASE = text("""
    UPDATE nightdesk.site_leases SET locked_by = NULL, locked_until = NULL
    WHERE site = :site AND claim_no = :claim_no
""")
_RELEASE_RUN = text("""
    UPDATE nightdesk.site_leases SET locked_by = NULL, locked_until = NULL
    WHERE starts_with(locked_by, :prefix)
""")


class SiteBusy(Exception):
    """Another worker publishes to the site; the job waits and no attempt is counted."""


@dataclass(frozen=True, slots=True)
class SiteClaim:
    """A site that this worker holds."""

    site: str
    claim_no: int


def take(session: Session, site: str, holder: str) -> SiteClaim | None:
    """The site's lease, None while somebody else has it. `holder` is `<run>/<job>`."""
    session.connection().execute(_ROW, {"site": site})
    values = {"site": site, "holder": holder, "lease_s": LEASE_S}
    claim_no = session.connection().execute(_TAKE, values).scalar()
    return None if claim_no is None else SiteClaim(site, claim_no)


def renew(session: Session, claim: SiteClaim) -> None:
    """Hold the site from now on for another lease.

    Raises:
        SiteBusy: if somebody else has it meanwhile; nothing of the caller's transaction may stay.
    """
    values = {"site": claim.site, "claim_no": claim.claim_no, "lease_s": LEASE_S}
    if session.connection().execute(_RENEW, values).rowcount == 0:
        raise SiteBusy(f"the lease on {claim.site} ended and another worker took the site")


def release(session: Session, claim: SiteClaim) -> None:
    """Give the site back, if it is still held by this claim."""
    session.connection().execute(_RELEASE, {"site": claim.site, "claim_no": claim.claim_no})


def release_run(session: Session, run: str) -> None:
    """Give back what a run holds that is known to be dead."""
    session.connection().execute(_RELEASE_RUN, {"prefix": f"{run}/"})
